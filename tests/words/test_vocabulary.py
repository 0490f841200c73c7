import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pictopic import Vocabulary

TAGS = [["sky", "sea"], ["sky", "sea", "sea"], ["sky", "boat"], ["sky", "sea", "Überfluß"], []]


@given(
    n_visual_words=st.integers(0, 20),
    n_regions=st.integers(1, 6),
    annotations=st.lists(st.text(max_size=4), unique=True, max_size=10),
)
def test_every_column_goes_to_its_word_and_back(n_visual_words, n_regions, annotations):
    vocabulary = Vocabulary(n_visual_words, n_regions, annotations)
    assert len(vocabulary) == n_visual_words * n_regions + len(annotations)
    for column in range(len(vocabulary)):
        kind, word, region = vocabulary[column]
        assert (column < vocabulary.n_pairs) == (kind == "visual")
        found = vocabulary.index(word, region) if kind == "visual" else vocabulary.index(word)
        assert found == column


def test_rare_tags_are_left_out_and_frequent_ones_come_first():
    assert Vocabulary.from_tags(TAGS, min_count=3).annotations == ("sky", "sea")
    assert Vocabulary.from_tags(TAGS, min_count=1).annotations == ("sky", "sea", "boat", "Überfluß")


def test_only_the_most_frequent_tags_are_kept():
    assert Vocabulary.from_tags(TAGS, min_count=1, max_words=1).annotations == ("sky",)


def test_a_tag_counts_once_a_picture():
    assert "sea" not in Vocabulary.from_tags(TAGS, min_count=4)


def test_counts_of_tags_leave_unknown_ones_out():
    vocabulary = Vocabulary.from_tags(TAGS, min_count=3, n_visual_words=5)
    assert vocabulary.count_tags(TAGS).toarray().tolist() == [[1, 1], [1, 2], [1, 0], [1, 1], [0, 0]]


def test_vocabulary_is_the_same_after_saving(tmp_path):
    vocabulary = Vocabulary.from_tags(TAGS, min_count=1, n_visual_words=240, n_regions=4)
    vocabulary.save(tmp_path / "vocabulary.json")
    assert Vocabulary.load(tmp_path / "vocabulary.json") == vocabulary
    first = (tmp_path / "vocabulary.json").read_bytes()
    vocabulary.save(tmp_path / "vocabulary.json")
    assert (tmp_path / "vocabulary.json").read_bytes() == first


def _json(**changes):
    content = {"format_version": 1, "n_visual_words": 2, "n_regions": 1, "annotations": ["sea"]}
    return json.dumps(content | changes)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is damaged"),
        ("[]", "not a JSON object"),
        ('{"format_version": 99}', "newer pictopic"),
        ('{"format_version": 1}', "'n_visual_words' is missing"),
        (_json(n_visual_words=-1), "'n_visual_words' must be"),
        (_json(n_visual_words=2**40), "'n_visual_words' must be"),
        (_json(n_visual_words=2**20, n_regions=2**20), "more than 2147483647 words"),
        (_json(n_regions=True), "'n_regions' must be"),
        (_json(annotations="sea"), "'annotations' must be"),
        (_json(annotations=["sea", 1]), "'annotations' must be"),
        (_json(annotations=["sea", "sea"]), "the same text twice"),
    ],
)
def test_file_that_is_no_vocabulary_is_refused(tmp_path, content, message):
    (tmp_path / "v.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        Vocabulary.load(tmp_path / "v.json")


def test_saved_file_is_json_that_people_can_read(tmp_path):
    Vocabulary.from_tags(TAGS, min_count=1).save(tmp_path / "v.json")
    text = (tmp_path / "v.json").read_text(encoding="utf-8")
    assert "Überfluß" in text
    assert json.loads(text)["format_version"] == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda v: v.index("moon"),
        lambda v: v.index(240),
        lambda v: v.index(0, region=4),
        lambda v: v[len(v)],
        lambda v: Vocabulary(-1),
        lambda v: Vocabulary(1, 0),
        lambda v: Vocabulary(annotations=["a", "a"]),
    ],
)
def test_words_outside_are_refused(call):
    with pytest.raises((ValueError, IndexError)):
        call(Vocabulary(240, 4, ["sky"]))

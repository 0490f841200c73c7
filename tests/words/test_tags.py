"""Tags: one spelling, lists in all forms, rules."""

import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pictopic.words.tags import (
    MAX_TAG_LENGTH,
    MAX_TAGS,
    TagRules,
    cell_text,
    normalise_tag,
    split_cell,
    split_tags,
    within_limits,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Sea", "sea"),
        ("  night \t\n sky ", "night sky"),
        ("\uff37\uff29\uff24\uff25", "wide"),
        ("cafe\u0301", "café"),
        ("a\x00b\x07", "ab"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("no\u00a0break", "no break"),
        ("Straße", "straße"),
        ("\u0130stanbul", "i\u0307stanbul"),
        ("half \ud83d", "half"),
        ("\U0001f468\u200d\U0001f469", "\U0001f468\u200d\U0001f469"),
        ("   ", ""),
        ("\x00", ""),
        ("", ""),
    ],
)
def test_tags_have_one_spelling(text, expected):
    assert normalise_tag(text) == expected


def test_every_single_character_is_normalised_once_and_for_all():
    changed = [c for c in map(chr, range(sys.maxunicode + 1)) if normalise_tag(normalise_tag(c)) != normalise_tag(c)]
    assert changed == []


@given(st.text(st.characters(), max_size=20))
def test_normalised_tags_stay_as_they_are(text):
    tag = normalise_tag(text)
    assert normalise_tag(tag) == tag


@given(st.text(st.characters(), max_size=20))
def test_normalised_tags_can_be_written_and_have_no_control_characters(text):
    tag = normalise_tag(text)
    assert tag.encode("utf-8").decode("utf-8") == tag
    assert all(unicodedata.category(letter) != "Cc" for letter in tag)


# Limits.


def test_the_limits_are_those_that_are_documented():
    assert (MAX_TAGS, MAX_TAG_LENGTH) == (1_000, 200)


@pytest.mark.parametrize("cell", [[f"tag {k}" for k in range(5_000)], ";".join(f"tag {k}" for k in range(5_000))])
def test_a_cell_has_its_first_thousand_tags(cell):
    assert split_tags(cell) == [f"tag {k}" for k in range(1_000)]


def test_a_thousand_different_tags_are_taken_whatever_is_repeated():
    cell = [f"tag {k // 3}" for k in range(3_000)]
    assert split_tags(cell) == [f"tag {k}" for k in range(1_000)]


def test_a_tag_has_its_first_two_hundred_characters():
    assert split_tags(["x" * 201, "y" * 200]) == ["x" * 200, "y" * 200]


def test_a_tag_of_megabytes_is_not_normalised_as_a_whole():
    marks = "\u0301\u0316" * 1_000_000  # to sort these takes time that grows with their number squared
    assert len(split_tags(["e" + marks])[0]) == 200


@given(st.lists(st.text(st.characters(), min_size=150, max_size=400), max_size=5))
def test_tags_within_limits_stay_as_they_are(texts):
    tags = split_tags(texts)
    assert split_tags(tags) == tags == within_limits(tags)
    assert all(0 < len(tag) <= 200 for tag in tags)


@pytest.mark.parametrize(
    "text", ["[" + "+1" * 50_000 + "]", "[" * 50_000 + "]" * 50_000, "[" + "1," * 3_000_000 + "]x]"]
)
def test_text_that_only_looks_like_a_list_is_text(text):
    assert isinstance(split_cell(text), list)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("a;b", ["a", "b"]),
        ("a,b", ["a", "b"]),
        ("a|b", ["a", "b"]),
        ("New York, NY; night", ["new york, ny", "night"]),
        ("a|b,c", ["a", "b,c"]),
        (" one tag ", ["one tag"]),
        (";;a; ;b;", ["a", "b"]),
        ('["a", "b, c", 3, null]', ["a", "b, c", "3"]),
        ("['a', 'b, c']", ["a", "b, c"]),
        ("[unfinished", ["[unfinished"]),
        ("[red] car, blue", ["[red] car", "blue"]),
        ("[not json]", ["[not json]"]),
        ("[]", []),
        (["B", "a", "b"], ["b", "a"]),
        (("a", None, ""), ["a"]),
        (np.array(["a", "b"], object), ["a", "b"]),
        (None, []),
        (float("nan"), []),
        (np.float32("nan"), []),
        ("", []),
        (" \t", []),
        (b"a;b", ["a", "b"]),
        (5, ["5"]),
        (5.0, ["5"]),
    ],
)
def test_cells_are_split_into_tags(cell, expected):
    assert split_tags(cell) == expected


def test_other_separators_can_be_given():
    assert split_tags("a b,c", separators=" ") == ["a", "b,c"]


def test_entries_keep_their_case_and_their_duplicates():
    assert split_cell("Sea; sea;Sea") == ["Sea", "sea", "Sea"]


def test_halves_of_characters_are_replaced():
    assert cell_text("a\ud800é") == "a?é"


@pytest.mark.parametrize(("cell", "expected"), [(True, "true"), (np.int64(3), "3"), (2.5, "2.5"), (np.float64(4), "4")])
def test_numbers_become_text(cell, expected):
    assert cell_text(cell) == expected


@given(st.text() | st.none() | st.lists(st.text()) | st.floats() | st.integers())
def test_any_cell_gives_distinct_tags(cell):
    tags = split_tags(cell)
    assert len(set(tags)) == len(tags)
    assert "" not in tags


def _write(path, content):
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_rules_are_read_and_normalised(tmp_path):
    stop = _write(tmp_path / "stop.txt", "\ufeffNikon\n\n D300 \r\n")
    rename = _write(tmp_path / "rename.csv", '\ufefffrom,to\nNYC,New York\n"a, b",c\n')
    rules = TagRules.read(stop, rename)
    assert rules == TagRules(frozenset({"nikon", "d300"}), {"nyc": "new york", "a, b": "c"})


def test_no_files_are_no_rules():
    assert TagRules.read().apply(["b", "a"]) == ["b", "a"]


def test_tags_are_stopped_under_both_names():
    rules = TagRules(stop=frozenset({"old", "new"}), rename={"old": "kept", "x": "new"})
    assert rules.apply(["old", "x", "y"]) == ["y"]


def test_renames_are_not_chained():
    assert TagRules(rename={"a": "b", "b": "a"}).apply(["a", "b"]) == ["b", "a"]


def test_merged_tags_are_there_once():
    assert TagRules(rename={"cats": "cat"}).apply(["cats", "dog", "cat"]) == ["cat", "dog"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("old,new\na,b\n", "row 1: needs the columns from and to, has old, new"),
        ("", "row 1: needs the columns"),
        ("from,to\na,b\na,c\n", "row 3: 'a' was renamed to 'b' before"),
        ("from,to\na,\n", "row 2: needs an old and a new name"),
        ("from,to\na\n", "row 2: needs an old and a new name"),
        (b"from,to\na,b\n\xe9,c\n", "row 3: not UTF-8"),
    ],
)
def test_mistakes_in_the_rename_table_name_file_and_row(tmp_path, content, message):
    with pytest.raises(ValueError, match=rf"rename\.csv, {message}"):
        TagRules.read(rename=_write(tmp_path / "rename.csv", content))


def test_a_stop_list_that_is_not_utf8_names_file_and_row(tmp_path):
    with pytest.raises(ValueError, match=r"stop\.txt, row 2: not UTF-8"):
        TagRules.read(stop=_write(tmp_path / "stop.txt", b"a\n\xff\n"))

import numpy as np
import pytest
from PIL import Image

from pictopic import PictureModel
from pictopic.words.pictures import PictureError
from tests.support.patterns import QUICK, pattern, write_patterns

NEW = range(200, 212)


def names(answer):
    return [name for name, _ in answer]


def forms_of(pixels, folder):
    """The same picture in all forms in which it can be given."""
    Image.fromarray(pixels).save(folder / "a.png")
    return [folder / "a.png", str(folder / "a.png"), (folder / "a.png").read_bytes(), Image.fromarray(pixels), pixels]


@pytest.mark.parametrize("kind", ["model", "deep_model"])
def test_new_pictures_get_their_tags(kind, request):
    found = request.getfixturevalue(kind).annotate([pattern(number)[0] for number in NEW], k=2)
    right = [set(names(own)) == set(pattern(number)[2]) for own, number in zip(found, NEW, strict=True)]
    # Colours are in the global features, which only deep models take.
    least = 0.9 if kind == "deep_model" else 0.3
    assert np.mean(right) >= least
    assert np.mean([pattern(number)[2][0] in names(own) for own, number in zip(found, NEW, strict=True)]) >= 0.9


@pytest.mark.parametrize("kind", ["model", "deep_model"])
def test_new_pictures_get_their_class(kind, request):
    found = request.getfixturevalue(kind).classify([pattern(number)[0] for number in NEW])
    assert np.mean([own[0][0] == pattern(number)[1] for own, number in zip(found, NEW, strict=True)]) >= 0.9


def test_pictures_are_taken_in_any_form(model, tmp_path):
    answers = [model.classify(form) for form in forms_of(pattern(201)[0], tmp_path)]
    assert all(own == answers[0] for own in answers)


def test_many_pictures_get_the_same_answers_as_one_after_the_other(model):
    some = [pattern(number)[0] for number in NEW]
    together, alone = model.annotate(some), [model.annotate(one) for one in some]
    assert [names(own) for own in together] == [names(own) for own in alone]


def test_a_thousand_known_tags_are_looked_at(model):
    unknown = [f"unknown {k}" for k in range(1_000)]
    picture = pattern(201)[0]
    assert model.annotate(picture, k=4, tags=[*unknown, "lines"]) == model.annotate(picture, k=4)
    assert "lines" not in names(model.annotate(picture, k=4, tags=[*unknown[:999], "lines"]))


def test_annotate_gives_exactly_k_tags_with_shares_of_one(model):
    answer = model.annotate(pattern(201)[0], k=4)
    assert len(answer) == 4
    assert sum(score for _, score in answer) == pytest.approx(1, abs=1e-6)
    assert [score for _, score in answer] == sorted((score for _, score in answer), reverse=True)


def test_known_tags_are_not_given_again(model):
    assert "lines" not in names(model.annotate(pattern(201)[0], k=4, tags=["Lines "]))


def test_thresholds_give_the_tags_one_can_believe(deep_model):
    right = wrong = 0
    for number in NEW:
        found = set(names(deep_model.annotate(pattern(number)[0], thresholds=True)))
        right += len(found & set(pattern(number)[2]))
        wrong += len(found - set(pattern(number)[2]))
    assert right >= 20
    assert wrong <= 4


def test_probabilities_of_classes_sum_to_one(model):
    assert sum(p for _, p in model.classify(pattern(201)[0])) == pytest.approx(1)


def test_a_picture_like_nothing_else_is_not_classified_unasked(model, monkeypatch):
    monkeypatch.setattr(model._fitted.head, "sure_from", 1.1)
    noise = np.random.RandomState(0).randint(256, size=(64, 64, 3), dtype=np.uint8)
    assert model.classify(noise, dont_know=True)[0][0] == "don't know"
    assert "don't know" not in names(model.classify(noise))


def test_an_unreadable_picture_is_an_error_that_names_it(model, tmp_path):
    (tmp_path / "bad.jpg").write_bytes(b"nothing")
    with pytest.raises(PictureError, match=r"bad\.jpg: not a picture"):
        model.annotate(tmp_path / "bad.jpg")


def test_an_unreadable_one_of_many_is_a_warning_and_an_empty_answer(model, tmp_path):
    (tmp_path / "bad.jpg").write_bytes(b"nothing")
    with pytest.warns(UserWarning, match=r"bad\.jpg: not a picture"):
        answers = model.annotate([pattern(201)[0], tmp_path / "bad.jpg", pattern(202)[0]])
    assert [len(own) for own in answers] == [4, 0, 4]


def test_a_picture_without_texture_gets_an_answer(model):
    black = np.zeros((64, 64, 3), np.uint8)
    assert len(model.annotate(black)) == 4
    assert len(model.classify(black)) == 2


def test_similar_pictures_are_of_the_same_kind(deep_model):
    found = deep_model.search(pattern(201)[0], k=8)
    assert np.mean([pattern(int(name.split(".")[0]))[1] == "stripes" for name, _ in found]) > 0.8


def test_a_picture_of_the_collection_is_not_found_by_itself(model, patterns):
    for query in ("17.png", patterns / "17.png"):
        assert "17.png" not in names(model.search(query, k=99))
    assert len(model.search("17.png", k=200)) == 99


def test_search_by_tags_finds_pictures_with_them(deep_model):
    found = names(deep_model.search(tags=["lines"], k=10))
    assert np.mean(["lines" in pattern(int(name.split(".")[0]))[2] for name in found]) >= 0.9


def test_search_filters_by_label_and_tag(model):
    found = names(model.search(pattern(201)[0], k=100, label="dots", tag="Red"))
    expected = {f"{k}.png" for k in range(100) if pattern(k)[1] == "dots" and "red" in pattern(k)[2]}
    assert set(found) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "a picture, tags, or both"),
        ({"tags": ["unknown"]}, "no picture of the collection has the tag 'unknown'"),
        ({"tags": ["red"], "label": "cubes"}, "there is no class 'cubes'; there are dots, stripes"),
    ],
)
def test_searches_that_cannot_be_answered_say_why(model, arguments, message):
    with pytest.raises(ValueError, match=message):
        model.search(**arguments)


def test_similar_tags_are_tags_of_the_collection(model):
    found = model.similar_tags("RED")
    assert sorted(names(found)) == ["blue", "lines", "spots"]
    with pytest.raises(ValueError, match="'purple'"):
        model.similar_tags("purple")


def test_duplicates_are_copies(tmp_path):
    folder = write_patterns(tmp_path / "photos", range(24))
    Image.fromarray(np.minimum(pattern(5)[0], 250) + 5).save(folder / "6.png")
    assert PictureModel(**QUICK).fit(folder).duplicates(similarity=0.9) == [["5.png", "6.png"]]


def test_explanation_shows_the_places_that_spoke_for_it(model):
    half = pattern(201)[0].copy()
    half[:, 32:] = 120  # the stripes are in the left half
    found = model.explain(half, "stripes")
    assert found.name == "stripes"
    assert found.overlay.size == (64, 64)
    assert np.abs(found.heat[:, :24]).mean() > np.abs(found.heat[:, 48:]).mean()


def test_contributions_are_what_the_score_loses(model):
    picture = pattern(201)[0]
    found = model.explain(picture, "lines")
    assert len(found.words) > 1
    assert found.score == pytest.approx(np.log(dict(model.annotate(picture, k=4))["lines"]), abs=1e-4)


def test_without_a_name_the_class_is_explained(model):
    assert model.explain(pattern(202)[0]).name == "dots"


def test_what_is_neither_class_nor_tag_is_not_explained(model):
    with pytest.raises(ValueError, match="'cube' is neither a class nor a tag"):
        model.explain(pattern(202)[0], "cube")


def test_a_model_that_has_not_learnt_says_so():
    with pytest.raises(ValueError, match="is not fitted yet: call fit"):
        PictureModel().annotate("a.jpg")


# ---- describing once -------------------------------------------------------------------------------------------------


def asked(model, picture):
    """Answers to all that can be asked about a picture."""
    return [
        model.annotate(picture, 4), model.annotate(picture, thresholds=True), model.annotate(picture, tags=["red"]),
        model.classify(picture), model.search(picture, k=5), model.search(picture, tags=["red"], k=5),
    ]  # fmt: skip


@pytest.mark.parametrize("several", [False, True])
def test_a_described_picture_gets_the_same_answers(deep_model, several):
    picture = [pattern(number)[0] for number in NEW] if several else pattern(201)[0]
    assert asked(deep_model, deep_model.describe(picture)) == asked(deep_model, picture)


def test_a_described_picture_is_explained_in_the_same_way(deep_model):
    picture = pattern(201)[0]
    for name in (None, "stripes", "red"):
        ours, expected = deep_model.explain(deep_model.describe(picture), name), deep_model.explain(picture, name)
        assert ours[:3] == expected[:3]
        assert np.array_equal(ours.overlay, expected.overlay)


def test_a_described_picture_is_not_described_again(model, monkeypatch):
    described = model.describe(pattern(201)[0])
    monkeypatch.setattr("pictopic.tasks.reading.make_chunk", None)  # cannot be called
    assert len(asked(model, described)) == 6
    assert model.explain(described, "stripes").name == "stripes"


def test_a_described_picture_of_the_collection_is_not_found_by_itself(model):
    described = model.describe(model.corpus_.paths[3])
    assert model.corpus_.file_names[3] not in names(model.search(described, k=99))


def test_of_described_pictures_those_that_cannot_be_read_have_no_answer(model):
    with pytest.warns(UserWarning, match="a bytes"):
        described = model.describe([pattern(201)[0], b"no picture"])
    assert [len(own) for own in model.classify(described)] == [2, 0]


def test_a_picture_described_with_other_words_is_refused(model):
    described = model.describe(pattern(201)[0])
    other = described._replace(visual=described.visual[:, :5])
    with pytest.raises(ValueError, match="other visual words"):
        model.classify(other)


def test_only_one_picture_is_explained(model):
    with pytest.raises(ValueError, match="one picture"):
        model.explain([pattern(201)[0], pattern(202)[0]])


@pytest.mark.parametrize("kind", ["model", "deep_model"])
@pytest.mark.parametrize("tags", [(), ("lines", "unknown")])
def test_a_query_gets_the_answers_of_its_picture(kind, tags, request):
    model, pixels = request.getfixturevalue(kind), pattern(203)[0]
    query = model.query(pixels, tags)
    assert model.annotate(query, 4) == model.annotate(pixels, 4, tags=tags)
    assert model.annotate(query, thresholds=True) == model.annotate(pixels, tags=tags, thresholds=True)
    assert model.tag_probabilities(query) == model.tag_probabilities(pixels, tags=tags)
    assert model.classify(query) == model.classify(pixels, tags=tags)
    assert model.search(query, k=5) == model.search(pixels, tags, k=5)
    assert model.explain(model.query(pixels)).words == model.explain(pixels).words


def test_the_tags_of_a_query_are_part_of_it(model):
    with pytest.raises(ValueError, match="a query has its tags already"):
        model.annotate(model.query(pattern(203)[0]), tags=["lines"])

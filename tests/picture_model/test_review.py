from collections import Counter

import numpy as np
import pytest

from pictopic import PictureModel
from pictopic.tasks.annotate import tag_proba
from tests.corpus.conftest import write_metadata
from tests.support.patterns import QUICK, pattern, write_patterns


def test_alike_pictures_lie_near_each_other_on_the_map(deep_model):
    places = deep_model.map()
    own = np.array(["".join(tags) for tags in deep_model.corpus_.tags])
    distances = np.linalg.norm(places[:, None] - places[None], axis=2)
    same = own[:, None] == own[None]
    np.fill_diagonal(same, False)
    assert distances[same].mean() < 0.7 * distances[own[:, None] != own[None]].mean()
    assert np.array_equal(places, deep_model.map())


@pytest.mark.parametrize("kind", ["model", "deep_model"])
def test_confusion_is_that_of_the_figures(kind, request):
    model = request.getfixturevalue(kind)
    found = model.quality()
    counts = found.confusion.counts
    assert found.n_held_out == model.n_held_out == counts.sum()
    assert np.trace(counts) / counts.sum() == pytest.approx(model.figures_["classes"])


def test_rows_of_the_confusion_are_the_held_out_pictures_of_a_class(deep_model):
    found = deep_model.quality().confusion
    rows = deep_model._fitted.held_out.rows
    expected = Counter(deep_model.corpus_.label_lists[row][0] for row in rows)
    assert dict(zip(found.classes, found.counts.sum(axis=1), strict=True)) == expected
    assert sorted(row for own in found.pictures.values() for row, _ in own) == rows.tolist()


def test_scores_of_tags_count_what_was_held_out(deep_model):
    found = deep_model.quality().tags
    expected = Counter(tag for row in deep_model._fitted.held_out.rows for tag in deep_model.corpus_.tags[row])
    assert {own.name: own.count for own in found} == expected
    assert np.mean([own.f for own in found]) > 0.8  # patterns are easy


def test_odd_pictures_have_tags_that_annotate_finds_improbable(deep_model):
    corpus, found = deep_model.corpus_, deep_model.odd(None)
    assert "given the picture" in deep_model.odd_means
    assert len(found) == len(corpus)
    assert found[:10] == deep_model.odd()
    for name, value in [*found[:5], found[-1]]:
        row = corpus.file_names.index(name)
        p = dict(deep_model.annotate(corpus.paths[row], k=len(corpus.vocabulary.annotations)))
        assert value == pytest.approx(np.mean([np.log(p[tag]) for tag in corpus.tags[row]]), abs=1e-4)
    assert [value for _, value in found] == sorted(value for _, value in found)


def _all_sure(model, names):
    """Calibrated probability of a tag for each picture of the collection, by the pictures themselves."""
    p = tag_proba(model.estimator_, model._reader.rows(*model.describe(names)[2:4], ()))
    return model._fitted.thresholds.probabilities(p)


def test_missing_and_doubtful_are_ranked_as_the_pictures_themselves_are(deep_model):
    corpus = deep_model.corpus_
    p = _all_sure(deep_model, corpus.paths)[:, deep_model.tag_number("red")]
    has_tag = np.array(["red" in tags for tags in corpus.tags])
    for found, expected in (
        (deep_model.missing("Red ", 20), np.sort(p[~has_tag])[::-1][:20]),
        (deep_model.doubtful("red", 20), np.sort(p[has_tag])[:20]),
    ):
        assert [value for _, value in found] == pytest.approx(expected, abs=1e-4)
    assert all("red" not in corpus.tags[corpus.file_names.index(name)] for name, _ in deep_model.missing("red", 200))


def test_a_tag_that_annotate_gives_to_a_picture_without_it_is_missing_first(deep_model):
    [(name, probability)] = deep_model.missing("lines", 1)
    corpus = deep_model.corpus_
    given = deep_model.annotate(corpus.paths[corpus.file_names.index(name)], thresholds=True)
    threshold = deep_model._fitted.thresholds.thresholds[deep_model.tag_number("lines")]
    assert ("lines" in dict(given)) == (probability >= threshold)


def test_a_tag_that_the_model_does_not_know_is_an_error(model):
    with pytest.raises(ValueError, match="does not know the tag 'nosuchtag'"):
        model.missing("nosuchtag")


def test_what_was_worked_out_is_forgotten_when_the_model_learns_again(model, tmp_path):
    again = PictureModel(**QUICK, model="shallow").fit(model.corpus_[:70])
    before = again.missing("red", 500)
    again.fit(model.corpus_)
    assert len(again.missing("red", 500)) > len(before)


def test_several_labels_a_picture_have_no_confusion(tmp_path):
    folder = write_patterns(tmp_path / "photos", range(90))
    rows = [{"file_name": f"{k}.png", "tags": pattern(k)[1], "labels": ";".join(pattern(k)[2])} for k in range(90)]
    write_metadata(folder, rows)
    several = PictureModel(**QUICK, model="shallow").fit(folder)
    assert several.corpus_.multi_label
    assert several.quality().confusion is None
    assert several.quality().tags


def test_few_pictures_hold_nothing_out(model):
    few = PictureModel(**QUICK, model="shallow").fit(model.corpus_[:20])
    found = few.quality()
    assert (found.n_held_out, found.confusion, found.tags, found.figures) == (0, None, [], {})
    assert len(few.odd(None)) == 20

import numpy as np
import pytest
from PIL import Image

from pictopic.tasks.reading import PictureReader, Query, is_one
from tests.support.patterns import pattern


@pytest.fixture
def reader(model):
    return PictureReader(model.corpus_, n_jobs=1)


@pytest.mark.parametrize("picture", [None, "a.jpg", b"bytes", np.zeros((4, 4, 3)), Image.new("RGB", (4, 4))])
def test_what_is_one_picture(picture):
    assert is_one(picture)
    assert not is_one([picture])


def test_pictures_of_the_collection_get_the_words_they_have_there(reader, model):
    described = reader.describe(model.corpus_.paths[:3])
    n_pairs = model.corpus_.vocabulary.n_pairs
    assert np.array_equal(described.visual.toarray(), model.corpus_.X[:3, :n_pairs].toarray())
    assert not described.is_one


def test_a_picture_may_be_given_by_its_name_in_the_collection(reader, model):
    name = model.corpus_.file_names[2]
    assert reader.row_of(name) == 2
    assert reader.row_of(model.corpus_.paths[2]) == 2
    assert reader.row_of("elsewhere.jpg") is None
    described = reader.describe(name)
    assert described.is_one
    assert np.array_equal(described.visual.toarray(), reader.describe(model.corpus_.paths[2]).visual.toarray())


def test_tags_are_counted_in_their_columns(reader, model):
    vocabulary = model.corpus_.vocabulary
    tag = vocabulary.annotations[1]
    X = Query(reader, model.estimator_, pattern(201)[0], [tag]).rows.read().toarray()
    assert X.shape == (1, len(vocabulary))
    assert X[0, vocabulary.n_pairs :].tolist() == [int(name == tag) for name in vocabulary.annotations]
    without = Query(reader, model.estimator_, pattern(201)[0]).rows.read().toarray()
    assert np.array_equal(without[:, : vocabulary.n_pairs], X[:, : vocabulary.n_pairs])
    assert not without[:, vocabulary.n_pairs :].any()


def test_an_unreadable_picture_among_others_costs_a_warning_and_has_an_empty_answer(reader, model):
    with pytest.warns(UserWarning, match="bytes"):
        query = Query(reader, model.estimator_, [pattern(201)[0], b"no picture", pattern(202)[0]])
    assert query.readable == [0, 2]
    assert query.answers([[("a", 1.0)], [("b", 1.0)]]) == [[("a", 1.0)], [], [("b", 1.0)]]


def test_representations_are_those_of_the_estimator(reader, model):
    query = Query(reader, model.estimator_, [pattern(201)[0], pattern(202)[0]])
    assert np.array_equal(query.hidden, model.estimator_.transform(query.rows))
    assert query.hidden is query.hidden  # computed once
    assert np.allclose(query.tag_proba.sum(axis=1), 1)

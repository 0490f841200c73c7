import numpy as np
import pytest
from scipy import sparse

from pictopic import Corpus
from pictopic.demo.scenes import write_scenes
from pictopic.paper.experiments.split import CorpusSplit


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("split")
    return Corpus.build(write_scenes(folder / "scenes", n=16), folder / "corpus", n_words=10, regions="2x2", n_jobs=1)


def split(corpus, **options):
    return CorpusSplit(str(corpus.folder), str(corpus.folder.parent / "scenes"), corpus.file_names[:10], **options)


def test_training_pictures_are_those_named_and_all_others_are_for_the_test(corpus):
    parts = split(corpus)
    assert parts.train.file_names == corpus.file_names[:10]
    assert parts.test.file_names == corpus.file_names[10:]
    assert parts.y.tolist() == [str(label) for label in corpus.labels[:10]]
    assert parts.y_test.tolist() == [str(label) for label in corpus.labels[10:]]


def test_test_pictures_have_no_tags_and_training_pictures_do(corpus):
    parts, n_pairs = split(corpus), corpus.vocabulary.n_pairs
    X = sparse.csr_array(corpus.X).toarray()
    assert np.array_equal(parts.X.toarray(), X[:10])
    assert np.array_equal(parts.X_without_tags.toarray()[:, :n_pairs], X[:10, :n_pairs])
    assert np.array_equal(parts.X_test.toarray()[:, :n_pairs], X[10:, :n_pairs])
    assert X[10:, n_pairs:].any()
    assert not parts.X_test.toarray()[:, n_pairs:].any()
    assert np.array_equal(parts.Y_test, X[10:, n_pairs:] > 0)


def test_in_one_region_the_words_of_all_regions_are_added_up(corpus):
    one, four = split(corpus, regions="1x1"), split(corpus)
    visual = four.X.toarray()[:, : corpus.vocabulary.n_pairs]
    assert np.array_equal(one.X.toarray()[:, :10], visual.reshape(10, 4, 10).sum(axis=1))
    assert np.array_equal(one.X.toarray()[:, 10:], four.X.toarray()[:, corpus.vocabulary.n_pairs :])

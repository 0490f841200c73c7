import numpy as np
import pytest

from pictopic.tasks.metrics import retrieval_precision


def test_precision_equals_a_plain_loop(rng):
    queries, collection = rng.normal(size=(30, 5)), rng.normal(size=(101, 5))
    query_labels, labels = rng.randint(3, size=30), rng.randint(3, size=101)
    shares = []
    for query, label in zip(queries, query_labels, strict=True):
        cosine = [query @ d / np.linalg.norm(query) / np.linalg.norm(d) for d in collection]
        nearest = np.argsort(cosine)[::-1][:10]
        shares.append(np.mean(labels[nearest] == label))
    found = retrieval_precision(queries, query_labels, collection, labels, fraction=0.1, batch_size=7)
    assert found == pytest.approx(np.mean(shares))


def test_at_least_one_neighbour_counts(rng):
    collection = rng.normal(size=(10, 4))
    assert retrieval_precision(collection, range(10), collection, range(10), fraction=0.001) == 1


@pytest.mark.parametrize("fraction", [0, 1.5])
def test_fraction_outside_its_range_is_refused(rng, fraction):
    with pytest.raises(ValueError, match="fraction"):
        retrieval_precision(np.ones((1, 2)), [0], np.ones((1, 2)), [0], fraction=fraction)

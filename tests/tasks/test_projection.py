import numpy as np
import pytest

from pictopic.tasks.projection import project


def clusters(n: int, n_clusters: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows around some centres, and which of them each is around."""
    rng = np.random.RandomState(seed)
    own = np.arange(n) % n_clusters
    return rng.normal(scale=3, size=(n_clusters, 12))[own] + rng.normal(scale=0.5, size=(n, 12)), own


def share_of_near_ones(places: np.ndarray, own: np.ndarray) -> float:
    """How often the nearest other place is of the same cluster."""
    distances = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    return float(np.mean(own[distances.argmin(axis=1)] == own))


@pytest.mark.parametrize("n_landmarks", [2000, 50])
def test_rows_of_a_cluster_lie_together(n_landmarks):
    vectors, own = clusters(200)
    assert share_of_near_ones(project(vectors, n_landmarks), own) > 0.95


def test_a_row_lies_near_the_landmarks_it_is_most_like():
    vectors, own = clusters(300)
    places = project(vectors, n_landmarks=60)
    middles = np.stack([places[own == k].mean(axis=0) for k in range(4)])
    nearest = np.linalg.norm(places[:, None] - middles[None], axis=2).argmin(axis=1)
    assert np.mean(nearest == own) > 0.95


def test_the_map_is_always_the_same():
    vectors, _ = clusters(80)
    assert np.array_equal(project(vectors, 40), project(vectors, 40))
    assert not np.array_equal(project(vectors, 40), project(vectors, 40, random_state=1))


@pytest.mark.parametrize(
    "vectors",
    [
        np.zeros((0, 5)), np.ones((1, 5)), np.eye(2, 5), np.eye(3, 5), np.eye(4, 5), np.ones((40, 8)), np.eye(10, 3),
        np.repeat(np.eye(2, 4), 5, axis=0), np.arange(7.0)[:, None],
    ],
    ids=["none", "one", "two", "three", "four", "all equal", "many equal", "two places", "one column"],
)  # fmt: skip
def test_few_or_equal_rows_have_places_within_the_map(vectors):
    places = project(vectors)
    assert places.shape == (len(vectors), 2)
    assert places.dtype == np.float32
    assert np.all((places >= 0) & (places <= 1))
    assert len(np.unique(places, axis=0)) == len(vectors)  # each can be seen


def test_the_map_is_filled():
    vectors, _ = clusters(120)
    low, high = project(vectors).min(axis=0), project(vectors).max(axis=0)
    assert max(high - low) > 0.95

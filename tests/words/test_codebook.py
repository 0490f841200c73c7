import numpy as np
import pytest
from scipy.spatial.distance import cdist

from pictopic.words.codebook import Codebook, Drawn, Patch, Sample


def drawn(descriptors, pictures=None, seed=0):
    n = len(descriptors)
    keys = np.random.default_rng(seed).random(n)
    pictures = np.zeros(n, np.int64) if pictures is None else np.asarray(pictures)
    return Drawn(keys, np.asarray(descriptors, np.float32), np.tile(np.float32([1, 2, 4]), (n, 1)), pictures)


def blobs(rng, n_blobs, n_each=50, spread=0.01):
    centres = rng.uniform(size=(n_blobs, 128))
    return centres, np.repeat(centres, n_each, axis=0) + rng.normal(0, spread, (n_blobs * n_each, 128))


@pytest.mark.parametrize("n_words", [1, 63, 64, 65, 300])
def test_nearest_word_is_the_one_at_the_smallest_distance(rng, n_words):
    centres, descriptors = rng.uniform(size=(n_words, 128)), rng.uniform(size=(700, 128))
    words, distances = Codebook(centres).quantise(descriptors)
    expected = cdist(descriptors, centres, "sqeuclidean")
    np.testing.assert_array_equal(words, expected.argmin(axis=1))
    np.testing.assert_allclose(distances, expected.min(axis=1), rtol=1e-3)


def test_faiss_finds_the_same_words(rng):
    faiss = pytest.importorskip("faiss")
    centres, descriptors = rng.uniform(size=(100, 128)).astype(np.float32), rng.uniform(size=(500, 128))
    index = faiss.IndexFlatL2(128)
    index.add(centres)
    _, expected = index.search(descriptors.astype(np.float32), 1)
    np.testing.assert_array_equal(Codebook(centres).predict(descriptors), expected[:, 0])


def test_words_are_the_centres_of_clusters(rng):
    centres, descriptors = blobs(rng, 5)
    # Random starting points may share a cluster; a sixth to tenth word are there to be sure that each has one.
    codebook = Codebook.learn(drawn(descriptors), 10, {0: "a.jpg"})
    assert cdist(centres, codebook.centres).min(axis=1).max() < 0.2


def test_the_same_sample_gives_the_same_words(rng):
    sample = drawn(rng.uniform(size=(2000, 128)))
    first, second = (Codebook.learn(sample, 20, {0: "a.jpg"}, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.centres, second.centres)
    assert first.examples == second.examples


def test_no_word_is_empty(rng):
    """Most descriptors are alike: without new seeds many words would have none."""
    descriptors = np.vstack([np.ones((500, 128)) + rng.normal(0, 1e-4, (500, 128)), rng.uniform(size=(60, 128))])
    codebook = Codebook.learn(drawn(descriptors), 40, {0: "a.jpg"})
    assert len(np.unique(codebook.predict(descriptors))) == 40


def test_fewer_different_patches_than_words_give_fewer_words(rng):
    descriptors = np.repeat(rng.uniform(size=(3, 128)), 10, axis=0)
    with pytest.warns(UserWarning, match="only 3 different patches"):
        codebook = Codebook.learn(drawn(descriptors), 5, {0: "a.jpg"})
    assert len(codebook) == 3


def test_without_patches_there_are_no_words():
    with pytest.raises(ValueError, match="no patch to learn visual words from"):
        Codebook.learn(Drawn.nothing(), 5, {})


def test_examples_are_the_nearest_patches_of_different_pictures(rng):
    _, descriptors = blobs(rng, 1, n_each=40, spread=0.2)
    pictures = np.repeat(np.arange(20), 2)
    codebook = Codebook.learn(drawn(descriptors, pictures), 1, {k: f"{k}.jpg" for k in range(20)})
    distances = cdist(descriptors, codebook.centres)[:, 0]
    nearest = sorted(range(20), key=lambda k: distances[2 * k : 2 * k + 2].min())[:16]
    assert codebook.examples[0] == [Patch(f"{k}.jpg", 1, 2, 4) for k in nearest]


def test_a_saved_codebook_is_read_again(rng, tmp_path):
    _, descriptors = blobs(rng, 3)
    codebook = Codebook.learn(drawn(descriptors), 3, {0: "bücher/ä.jpg"})
    codebook.save(tmp_path / "codebook.safetensors")
    again = Codebook.load(tmp_path / "codebook.safetensors")
    np.testing.assert_array_equal(again.centres, codebook.centres)
    assert again.examples == codebook.examples


def test_what_is_no_codebook_is_refused(tmp_path):
    (tmp_path / "a").write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match="is damaged"):
        Codebook.load(tmp_path / "a")


def test_descriptors_of_another_size_are_refused():
    with pytest.raises(ValueError, match="expected descriptors of 128 numbers"):
        Codebook(np.eye(128)).predict(np.zeros((3, 64)))


def sample_of(parts, size, order, seed=0):
    sample = Sample(size)
    for k in order:
        sample.add(Drawn.of([parts[k]], k, seed, sample.limit))
    return sample.drawn()


def test_a_sample_does_not_depend_on_the_order_of_pictures(rng):
    parts = [(rng.uniform(size=(n, 128)).astype(np.float32), np.zeros((n, 3))) for n in (50, 1, 300, 20)]
    a, b = (sample_of(parts, 60, order) for order in ([0, 1, 2, 3], [3, 2, 0, 1]))
    for first, second in zip(a, b, strict=True):
        np.testing.assert_array_equal(first, second)


def test_a_sample_is_uniform_over_descriptors_not_pictures(rng):
    parts = [(np.zeros((n, 128), np.float32), np.zeros((n, 3))) for n in (1000, 3000)]
    shares = [np.mean(sample_of(parts, 200, [0, 1], seed).pictures) for seed in range(20)]
    assert np.mean(shares) == pytest.approx(0.75, abs=0.03)


def test_a_sample_of_few_descriptors_is_all_of_them(rng):
    parts = [(rng.uniform(size=(5, 128)).astype(np.float32), np.zeros((5, 3)))]
    assert len(sample_of(parts, 60, [0]).keys) == 5


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("centres", lambda a: a[:, 0]),
        ("centres", lambda a: a * np.float32(np.nan)),
        ("centres", lambda a: a.astype(np.float64)),
        ("centres", lambda a: a[:0]),
        ("example_pictures", lambda a: a + 1),
        ("example_pictures", lambda a: a - 2),
        ("example_pictures", lambda a: a[:1]),
        ("example_places", lambda a: a[:, :1]),
        ("example_places", lambda a: a + np.float32(np.inf)),
    ],
)
def test_a_codebook_with_a_wrong_array_is_refused(tmp_path, name, change):
    from safetensors.numpy import load_file, save_file

    path = tmp_path / "codebook.safetensors"
    Codebook(np.eye(3), [[Patch("a.jpg", 1, 2, 4)], [], []]).save(path)
    arrays = load_file(path)
    arrays[name] = np.ascontiguousarray(change(arrays[name]))
    save_file(arrays, path, {"pictures": '["a.jpg"]'})
    with pytest.raises(ValueError, match=r"^[^\n]*codebook\.safetensors is not a codebook: [^\n]*$"):
        Codebook.load(path)


@pytest.mark.parametrize("pictures", [None, "", "[", "{}", "[1]", "[" * 100_000])
def test_a_codebook_with_wrong_names_of_pictures_is_refused(tmp_path, pictures):
    from safetensors.numpy import load_file, save_file

    path = tmp_path / "codebook.safetensors"
    Codebook(np.eye(3)).save(path)
    save_file(load_file(path), path, None if pictures is None else {"pictures": pictures})
    with pytest.raises(ValueError, match=r"is not a codebook: "):
        Codebook.load(path)

import shutil
import uuid
from pathlib import Path

import fsspec
import numpy as np
import pytest

import pictopic
from pictopic import Checkpoint, Corpus, DeepDocNADE, Run
from pictopic.storage import Store, cache_folder, is_remote, local
from pictopic.tasks.pretraining import load_pretrained, pretrain, save_pretrained
from tests.corpus.conftest import WORDS, photos  # noqa: F401 - a fixture
from tests.support.small_deep import small


@pytest.fixture(params=["file", "memory"])
def url(request, tmp_path):
    """A folder of its own in a store."""
    return f"file://{tmp_path}/store" if request.param == "file" else f"memory://{uuid.uuid4().hex}/store"


@pytest.fixture
def memory():
    return f"memory://{uuid.uuid4().hex}/store"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PICTOPIC_CACHE", str(tmp_path / "cache"))


def flip(path, place=-1):
    content = bytearray(Path(path).read_bytes())
    content[place] ^= 1
    Path(path).unlink()  # a hole in the old file would be seen through maps
    Path(path).write_bytes(content)


@pytest.mark.parametrize(
    ("place", "remote"),
    [("s3://b/c", True), ("memory://x", True), ("file:///x", False), ("a/b", False), ("C:/x", False)],
)
def test_what_is_elsewhere(place, remote):
    assert is_remote(place) == remote


def test_a_file_url_is_a_path():
    assert local("file:///data/a%20b") == Path("/data/a b")


def test_two_urls_have_two_caches():
    assert cache_folder("s3://a/corpus") != cache_folder("s3://b/corpus")
    assert cache_folder("s3://a/corpus") == cache_folder("s3://a/corpus/")


def test_a_name_cannot_lead_out_of_a_folder(memory, tmp_path):
    with pytest.raises(ValueError, match="is not the name of a file"):
        Store(memory).get("../other", tmp_path / "other")


def test_the_file_that_counts_is_uploaded_last(memory, tmp_path, monkeypatch):
    (tmp_path / "new" / "sub").mkdir(parents=True)
    for name in ("a", "sub/b", "z"):
        (tmp_path / "new" / name).write_text(name)
    order, put = [], Store.put
    monkeypatch.setattr(Store, "put", lambda self, path, name: order.append(name) or put(self, path, name))
    store = Store(memory)
    store.upload(tmp_path / "new", last="a")
    assert order == ["sub/b", "z", "a"]
    assert store.names() == ["a", "sub/b", "z"]


def test_a_corpus_is_built_and_opened_elsewhere(photos, tmp_path, url):  # noqa: F811
    here = Corpus.build(photos, tmp_path / "corpus", **WORDS)
    there = Corpus.build(photos, url, **WORDS)
    assert (there.X != here.X).nnz == 0
    shutil.rmtree(tmp_path / "cache", ignore_errors=True)  # as on another machine
    again = Corpus.open(url)
    assert (again.X != here.X).nnz == 0
    assert again.tags == here.tags
    assert [path.resolve() for path in again.paths] == [path.resolve() for path in here.paths]
    with pytest.raises(ValueError, match="holds a corpus already"):
        Corpus.build(photos, url, **WORDS)


def test_where_there_is_no_corpus(url):
    with pytest.raises(ValueError, match=r"is not a corpus: it has no corpus\.json"):
        Corpus.open(url)


def test_an_upload_that_was_cut_off_is_no_corpus_and_goes_on(photos, memory, monkeypatch):  # noqa: F811
    put, done = Store.put, []

    def failing(self, path, name):
        if len(done) == 4:
            raise OSError("connection lost")
        done.append(name)
        put(self, path, name)

    monkeypatch.setattr(Store, "put", failing)
    with pytest.raises(OSError, match="connection lost"):
        Corpus.build(photos, memory, **WORDS)
    monkeypatch.setattr(Store, "put", put)
    with pytest.raises(ValueError, match="is not a corpus"):
        Corpus.open(memory)
    monkeypatch.setattr("pictopic.corpus.build.Build.begin", lambda *_, **__: pytest.fail("built twice"))
    assert len(Corpus.build(photos, memory, **WORDS, resume=True)) == 12


def test_a_corpus_is_downloaded_once(photos, memory, monkeypatch):  # noqa: F811
    Corpus.build(photos, memory, **WORDS)
    Corpus.open(memory)
    get, names = Store.get, []
    monkeypatch.setattr(Store, "get", lambda self, name, path: names.append(name) or get(self, name, path))
    Corpus.open(memory)
    assert names == ["corpus.json"]


@pytest.mark.parametrize("name", ["counts.npy", "rows.parquet"])
def test_a_damaged_copy_is_fetched_again(photos, memory, name):  # noqa: F811
    corpus = Corpus.build(photos, memory, **WORDS)
    before = corpus.X.toarray()
    flip(next((corpus.folder / "shards").iterdir()) / name)
    whole = Corpus.open(memory)[2:5].verified()
    np.testing.assert_array_equal(whole.X.toarray(), before[2:5])
    assert whole.verified() is whole


def test_a_shard_that_is_damaged_in_its_store_is_named(photos, memory, tmp_path):  # noqa: F811
    corpus = Corpus.build(photos, memory, **WORDS)
    shard = f"{memory}/shards/{next((corpus.folder / 'shards').iterdir()).name}/counts.npy"
    with fsspec.open(shard, "rb") as file:
        content = bytearray(file.read())
    content[-1] ^= 1
    with fsspec.open(shard, "wb") as file:
        file.write(bytes(content))
    shutil.rmtree(tmp_path / "cache")
    with pytest.raises(ValueError, match=r"shards/[0-9a-f]+/counts\.npy is damaged"):
        Corpus.open(memory).verified()


def test_a_damaged_shard_of_this_machine_is_named_before_training(photos, tmp_path):  # noqa: F811
    corpus = Corpus.build(photos, tmp_path / "corpus", **WORDS)
    flip(next((corpus.folder / "shards").iterdir()) / "counts.npy")
    with pytest.raises(ValueError, match=r"corpus/shards/[0-9a-f]+/counts\.npy is damaged: it is not what was written"):
        pretrain(Corpus.open(tmp_path / "corpus"), sizes=(4,), epochs=1)


def test_a_copy_cannot_be_changed(photos, memory):  # noqa: F811
    with pytest.raises(ValueError, match="is a copy of memory://"):
        Corpus.build(photos, memory, **WORDS).remove(["0.jpg"])


def test_a_model_is_saved_and_loaded_elsewhere(topics, url):
    model = small().fit(topics[0])
    model.save(url)
    np.testing.assert_array_equal(pictopic.load(url).components_, model.components_)
    other = small(random_state=1).fit(topics[0])
    other.save(url)
    np.testing.assert_array_equal(pictopic.load(url).components_, other.components_)
    names = Store(url).names()
    assert sorted(names)[:2] == ["README.md", "config.json"]
    assert len(names) == 4


def test_something_else_is_not_overwritten(topics, memory):
    with fsspec.open(f"{memory}/letter.txt", "w") as file:
        file.write("precious")
    with pytest.raises(ValueError, match="holds something else"):
        small().fit(topics[0]).save(memory)


def test_a_pretrained_model_takes_its_words_along(photos, tmp_path, url):  # noqa: F811
    corpus = Corpus.build(photos, tmp_path / "corpus", **WORDS)
    model = pretrain(corpus, sizes=(4,), epochs=1)
    save_pretrained(model, corpus, url)
    np.testing.assert_array_equal(load_pretrained(url, corpus).components_, model.components_)


def test_a_run_goes_on_from_a_checkpoint_elsewhere(topics, url):
    options = {"n_components": (6, 5), "random_state": 3, "batch_size": 16}
    DeepDocNADE(**options, max_iter=2).fit(topics[0], run=Run(Checkpoint(url, epochs=1)))
    assert len(Checkpoint(url).names()) == 2
    longer = DeepDocNADE(**options, max_iter=5).fit(topics[0], run=Run(Checkpoint(url, epochs=1)))
    whole = DeepDocNADE(**options, max_iter=5).fit(topics[0])
    assert longer.history_["nll"] == whole.history_["nll"]
    np.testing.assert_array_equal(longer.components_, whole.components_)


def test_the_one_before_a_damaged_checkpoint_elsewhere_is_used(topics, memory):
    checkpoint = Checkpoint(memory, epochs=1)
    small(max_iter=2).fit(topics[0], run=Run(checkpoint))
    newest = checkpoint.names()[0]
    with fsspec.open(f"{memory}/{newest}", "wb") as file:
        file.write(b"half")
    with pytest.warns(UserWarning, match="is damaged"):
        _, state = checkpoint.load()
    assert state["run"]["epoch"] == 1

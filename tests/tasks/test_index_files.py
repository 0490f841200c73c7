import hashlib
import json
import os

import numpy as np
import pytest

from pictopic.tasks.search import Index
from tests.support.vectors import made


def test_what_was_saved_finds_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr("pictopic.corpus.readers._IN_MEMORY", 0)  # as if it were large
    vectors, queries = made(300, 16), made(20, 16, seed=1)
    index = Index.build(vectors)
    index.save(tmp_path / "index")
    loaded = Index.load(tmp_path / "index")
    assert (loaded.kind, loaded.recall_) == ("exact", 1.0)
    assert isinstance(loaded.vectors.base, np.memmap)
    for one, other in zip(index.search(queries), loaded.search(queries), strict=True):
        assert np.array_equal(one, other)


def test_an_index_that_is_built_in_a_folder_is_mapped_and_saved(tmp_path, monkeypatch):
    monkeypatch.setattr("pictopic.corpus.readers._IN_MEMORY", 0)  # as if it were large
    vectors = made(50, 8)
    index = Index.build(vectors, folder=tmp_path / "index")
    assert isinstance(index.vectors.base, np.memmap)
    assert np.array_equal(index.vectors, Index.build(vectors).vectors)
    assert np.array_equal(Index.load(tmp_path / "index").vectors, index.vectors)


def test_saving_again_replaces_the_files(tmp_path):
    Index.build(made(50, 8)).save(tmp_path)
    Index.load(tmp_path).save(tmp_path)
    Index.build(made(40, 8)).save(tmp_path)
    assert len(Index.load(tmp_path)) == 40
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("call", range(3))
def test_a_save_that_is_interrupted_leaves_the_old_index(tmp_path, monkeypatch, call):
    Index.build(made(50, 8)).save(tmp_path)
    replace, calls = os.replace, []

    def interrupted(source, target):
        calls.append(target)
        if len(calls) > call:
            raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", interrupted)
        if call < 2:
            with pytest.raises(KeyboardInterrupt):
                Index.build(made(40, 8)).save(tmp_path)
        else:
            Index.build(made(40, 8)).save(tmp_path)
    assert len(Index.load(tmp_path)) == (50 if call < 2 else 40)
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]
    Index.build(made(30, 8)).save(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_folder_with_something_else_is_left_alone(tmp_path):
    (tmp_path / "photo.jpg").write_bytes(b"mine")
    with pytest.raises(ValueError, match="not a search index"):
        Index.build(np.eye(2)).save(tmp_path)
    with pytest.raises(ValueError, match="not a search index"):
        Index.build(np.eye(2), folder=tmp_path)
    with pytest.raises(ValueError, match=r"there is no index\.json"):
        Index.load(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["photo.jpg"]


def change(path, position=-1) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(bytes(content))


def test_changed_vectors_are_refused(tmp_path):
    Index.build(made(50, 8)).save(tmp_path)
    change(next(tmp_path.glob("vectors-*.npy")))
    with pytest.raises(ValueError, match="damaged or was changed"):
        Index.load(tmp_path)
    assert len(Index.load(tmp_path, verify=False)) == 50


def test_truncated_and_missing_vectors_are_refused(tmp_path):
    Index.build(made(50, 8)).save(tmp_path)
    path = next(tmp_path.glob("vectors-*.npy"))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="damaged"):
        Index.load(tmp_path, verify=False)
    path.unlink()
    with pytest.raises(ValueError, match="there is no vectors-"):
        Index.load(tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("shape", [51, 8], "should be of shape"),
        ("shape", [50], "'shape' is missing or wrong"),
        ("vectors", "../vectors-0123456789abcdef.npy", "'vectors' is missing or wrong"),
        ("kind", "pickle", "'kind' is missing or wrong"),
        ("kind", "ivf", "'clusters' is missing or wrong"),
        ("shape", [50, True], "'shape' is missing or wrong"),
        ("shape", [50, 2**40], "'shape' is missing or wrong"),
        ("vectors_sha256", "", "'vectors_sha256' is missing or wrong"),
        ("recall", 2, "'recall' is missing or wrong"),
        ("format_version", 3, "reads up to 2"),
        ("format_version", None, "no format_version"),
    ],
)
def test_a_wrong_index_json_is_refused(tmp_path, key, value, message):
    Index.build(made(50, 8)).save(tmp_path)
    path = tmp_path / "index.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(ValueError, match=message):
        Index.load(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_damaged_index_json_is_refused(tmp_path, text):
    (tmp_path / "index.json").write_text(text)
    with pytest.raises(ValueError, match=r"index\.json is"):
        Index.load(tmp_path)


@pytest.mark.usefixtures("faiss")
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("numbers", lambda a: a + 1000),
        ("numbers", lambda a: a - 1),
        ("numbers", lambda a: a[:-1]),
        ("numbers", lambda a: a.astype(np.int64)),
        ("centres", lambda a: a[:, :-1]),
        ("centres", lambda a: a[:0]),
        ("centres", lambda a: a * np.float32(np.nan)),
        ("ranges", lambda a: a[:1]),
        ("ranges", lambda a: a + np.float32(np.inf)),
    ],
)
def test_wrong_clusters_are_refused(tmp_path, name, change):
    from safetensors.numpy import load_file, save

    Index.build(made(500, 12), kind="ivf").save(tmp_path)
    path = next(tmp_path.glob("clusters-*.safetensors"))
    arrays = load_file(path)
    content = save(arrays | {name: np.ascontiguousarray(change(arrays[name]))})
    path.write_bytes(content)
    with pytest.raises(ValueError, match="damaged or was changed"):
        Index.load(tmp_path)
    meta = json.loads((tmp_path / "index.json").read_text())
    meta["clusters_sha256"] = hashlib.sha256(content).hexdigest()
    (tmp_path / "index.json").write_text(json.dumps(meta))
    with pytest.raises(ValueError, match=r"clusters-\w+\.safetensors is damaged: "):
        Index.load(tmp_path)
    path.unlink()
    with pytest.raises(ValueError, match="there is no clusters-"):
        Index.load(tmp_path)

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pictopic import Corpus
from pictopic.corpus import store
from pictopic.corpus.store import SCHEMA
from pictopic.processes import LockedError
from pictopic.storage import sha256
from pictopic.words.tags import split_tags
from tests.corpus.conftest import WORDS, write_metadata, write_pictures


def more(tmp_path, n=5):
    folder = tmp_path / "more"
    rows = write_pictures(folder, n, first=100)
    rows[0]["tags"] = "all;new"
    write_metadata(folder, rows)
    return folder


def test_appended_pictures_are_counted_with_the_same_words(corpus, tmp_path):
    larger = corpus.append(more(tmp_path), n_jobs=1)
    extractor = corpus.extractor
    assert larger.file_names[12:] == [f"{k}.jpg" for k in range(100, 105)]
    expected = [extractor.count(extractor.open(tmp_path / "more" / name)) for name in larger.file_names[12:]]
    np.testing.assert_array_equal(larger.X[12:, :24].toarray(), expected)
    assert larger.vocabulary == corpus.vocabulary
    assert all(path.is_file() for path in larger.paths)


def test_new_tags_become_words_at_the_end_if_wanted(corpus, tmp_path):
    larger = corpus.append(more(tmp_path), n_jobs=1, new_tags=True)
    assert larger.vocabulary.annotations == (*corpus.vocabulary.annotations, "new")
    assert larger.X[:, [-1]].toarray().ravel().tolist() == [0] * 12 + [1] + [0] * 4
    assert (larger.X[:12, :-1] != corpus.X).nnz == 0


def test_pictures_that_are_there_are_not_appended_again(photos, corpus):
    again = corpus.append(photos, n_jobs=1)
    assert len(again) == 12
    assert set(again.skipped) == {(f"{k}.jpg", "already in the corpus") for k in range(12)}


def test_own_features_of_appended_pictures_are_missing_unless_given(photos, tmp_path):
    np.save(tmp_path / "own.npy", np.ones((12, 2)))
    corpus = Corpus.build(photos, tmp_path / "own", **WORDS, features_file=tmp_path / "own.npy")
    features = np.asarray(corpus.append(more(tmp_path), n_jobs=1).global_features)
    assert np.isnan(features[12:]).all()


def test_own_features_of_another_number_are_not_appended(photos, tmp_path):
    np.save(tmp_path / "two.npy", np.ones((12, 2)))
    np.save(tmp_path / "three.npy", np.ones((5, 3)))
    corpus = Corpus.build(photos, tmp_path / "own", **WORDS, features_file=tmp_path / "two.npy")
    with pytest.raises(ValueError, match="has 3 features, but the corpus has 2"):
        corpus.append(more(tmp_path), n_jobs=1, features_file=tmp_path / "three.npy")


def test_a_source_of_another_kind_is_not_appended(corpus, tmp_path):
    (tmp_path / "tags.csv").write_text("tags,label\nall,round\n")
    with pytest.raises(ValueError, match="was made from pictures; the new source is of another kind"):
        corpus.append(tmp_path / "tags.csv")


def test_removed_pictures_are_gone_and_the_others_unchanged(sharded):
    X, tags, features = sharded.X.toarray(), sharded.tags, np.asarray(sharded.global_features)
    smaller = sharded.remove(["5.jpg", "4.jpg", "11.jpg"])
    kept = [0, 1, 2, 3, 6, 7, 8, 9, 10]
    assert smaller.file_names == [f"{k}.jpg" for k in kept]
    np.testing.assert_array_equal(smaller.X.toarray(), X[kept])
    np.testing.assert_array_equal(np.asarray(smaller.global_features), features[kept])
    assert smaller.tags == [tags[k] for k in kept]
    assert len(list((sharded.folder / "shards").iterdir())) == 3


def test_removing_what_is_not_there_is_refused(corpus):
    with pytest.raises(ValueError, match=r"'99\.jpg' is not in the collection"):
        corpus.remove(["0.jpg", "99.jpg"])


def test_removing_everything_leaves_an_empty_corpus(corpus):
    empty = corpus.remove(corpus.file_names)
    assert len(empty) == 0
    assert empty.X.shape == (0, 28)


def test_a_corpus_that_grew_meanwhile_keeps_what_is_new(corpus, tmp_path):
    larger = corpus.append(more(tmp_path), n_jobs=1, new_tags=True)
    smaller = corpus.remove(["0.jpg"])
    np.testing.assert_array_equal(smaller.X.toarray(), larger.X.toarray()[1:])


def test_other_tags_give_what_a_corpus_built_with_them_has(photos, sharded, tmp_path):
    # Each tag as often as before, so that the words are in the same order.
    changed = {"4.jpg": ["tag2", "all"], "5.jpg": ["tag1"], "9.jpg": [], "11.jpg": ["tag2", "all", "tag0"]}
    rows = [
        row | {"tags": ";".join(changed.get(row["file_name"], split_tags(row["tags"])))}
        for row in write_pictures(photos, 12)
    ]
    write_metadata(photos, rows)
    expected = Corpus.build(
        photos, tmp_path / "anew", **WORDS, codebook=sharded.codebook, split_column="part", features=("cld",)
    )
    assert expected.vocabulary == sharded.vocabulary
    found = sharded.retag(changed)
    np.testing.assert_array_equal(found.X.toarray(), expected.X.toarray())
    assert found.table().equals(expected.table())
    np.testing.assert_array_equal(np.asarray(found.global_features), np.asarray(expected.global_features))
    assert found.paths == expected.paths
    assert Corpus.open(sharded.folder).tags == expected.tags


def test_tags_that_are_no_words_are_kept_but_not_counted(corpus):
    before = corpus.X.toarray()
    found = corpus.retag({"0.jpg": [*corpus.tags[0], "  New  THING ", "new thing"]})
    assert found.tags[0] == [*corpus.tags[0], "new thing"]
    np.testing.assert_array_equal(found.X.toarray(), before)
    assert found.vocabulary == corpus.vocabulary


def test_only_the_shards_of_other_tags_are_written_again(sharded):
    before = {path.name for path in (sharded.folder / "shards").iterdir()}
    sharded.retag({"5.jpg": ["all"], "0.jpg": sharded.tags[0]})
    after = {path.name for path in (sharded.folder / "shards").iterdir()}
    assert len(before & after) == 2
    assert len(after) == 3


def test_the_same_tags_change_nothing_on_disk(corpus):
    before = {path: path.stat().st_mtime_ns for path in corpus.folder.rglob("*")}
    corpus.retag({"0.jpg": corpus.tags[0]})
    assert {path: path.stat().st_mtime_ns for path in corpus.folder.rglob("*")} == before


def test_a_corpus_that_shares_its_files_is_not_changed_with_the_other(corpus, tmp_path):
    tags, X = corpus.tags, corpus.X.toarray()
    shutil.copytree(corpus.folder, tmp_path / "linked", copy_function=os.link)
    assert Corpus.open(tmp_path / "linked").retag({"0.jpg": []}).tags[0] == []
    again = Corpus.open(corpus.folder)
    assert again.tags == tags
    np.testing.assert_array_equal(again.X.toarray(), X)


def test_counts_that_came_without_tags_stay_when_a_tag_is_added(tmp_path):
    """As in MIR Flickr, where tags are counts only."""
    folder = tmp_path / "counts"
    corpus = Corpus.build(_tags_only(tmp_path), folder, pictures="none")
    shard = next((folder / "shards").iterdir())
    table = pq.read_table(shard / "rows.parquet")
    place = table.schema.get_field_index("tags")
    nothing = pa.array([[] for _ in range(len(table))], pa.list_(pa.string()))
    pq.write_table(table.set_column(place, SCHEMA.field("tags"), nothing), shard / "rows.parquet", use_dictionary=False)
    manifest = json.loads((folder / "corpus.json").read_text())
    manifest["shards"][0]["sha256"]["rows.parquet"] = sha256(shard / "rows.parquet")
    (folder / "corpus.json").write_text(json.dumps(manifest))
    expected = corpus.X.toarray()
    expected[0, corpus.vocabulary.index("boat")] = 1
    np.testing.assert_array_equal(Corpus.open(folder).retag({"1": ["boat"]}).X.toarray(), expected)


def _tags_only(folder):
    (folder / "metadata.csv").write_text("tags\nsea;sky\ntree;boat\n")
    return folder / "metadata.csv"


def test_other_tags_of_what_is_not_there_are_refused(corpus):
    with pytest.raises(ValueError, match=r"'99\.jpg' is not in the collection"):
        corpus.retag({"0.jpg": ["all"], "99.jpg": ["all"]})


def test_other_tags_that_were_cut_off_leave_the_corpus_as_it_was(sharded, monkeypatch):
    tags, X = sharded.tags, sharded.X.toarray()
    monkeypatch.setattr(store.Manifest, "write", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        sharded.retag({"5.jpg": []})
    monkeypatch.undo()
    again = Corpus.open(sharded.folder)
    assert again.tags == tags
    np.testing.assert_array_equal(again.X.toarray(), X)
    assert again.retag({"5.jpg": []}).tags[5] == []


@pytest.mark.parametrize("change", [lambda part: part.remove(["0.jpg"]), lambda part: part.retag({"0.jpg": []})])
def test_a_part_cannot_be_changed(corpus, change):
    with pytest.raises(ValueError, match="part of a corpus"):
        change(corpus[:3])


def test_a_change_that_was_cut_off_leaves_the_corpus_as_it_was(corpus, tmp_path, monkeypatch):
    before = corpus.X.toarray()
    monkeypatch.setattr(store.Manifest, "write", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        corpus.append(more(tmp_path), n_jobs=1, new_tags=True)
    monkeypatch.undo()
    again = Corpus.open(corpus.folder)
    np.testing.assert_array_equal(again.X.toarray(), before)
    assert again.vocabulary == corpus.vocabulary
    assert len(again.append(tmp_path / "more", n_jobs=1, new_tags=True, resume=True)) == 17


# ---- several at once -------------------------------------------------------------------------------------------------


def _retag_some(folder, first):
    for k in range(first, 12, 2):
        Corpus.open(folder).retag({f"{k}.jpg": [f"by{first}"]})


def _read_often(folder, is_done, torn):
    while not is_done.is_set():
        corpus = Corpus.open(folder)
        try:
            if len(corpus.tags) != len(corpus) or corpus.X.shape[0] != len(corpus):
                torn.put("rows do not agree")
        except ValueError as error:
            if "changed since it was opened" not in str(error):
                torn.put(str(error))


def test_processes_that_change_a_corpus_lose_nothing_and_readers_never_see_half(sharded):
    context = multiprocessing.get_context("fork")
    is_done, torn = context.Event(), context.Queue()
    reader = context.Process(target=_read_often, args=(sharded.folder, is_done, torn))
    writers = [context.Process(target=_retag_some, args=(sharded.folder, first)) for first in (0, 1)]
    for process in (reader, *writers):
        process.start()
    for process in writers:
        process.join(120)
    is_done.set()
    reader.join(30)
    assert [process.exitcode for process in (reader, *writers)] == [0, 0, 0]
    assert torn.empty(), torn.get()
    assert Corpus.open(sharded.folder).tags == [[f"by{k % 2}"] for k in range(12)]


def test_who_holds_the_lock_is_named(corpus, monkeypatch):
    monkeypatch.setattr("pictopic.processes._LOCK_SECONDS", 0.2)
    code = """
        import sys, time
        from pathlib import Path
        from pictopic.corpus.store import corpus_lock
        with corpus_lock(Path(sys.argv[1])):
            print("locked", flush=True)
            time.sleep(60)
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(corpus.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"locked\n"
        try:
            with pytest.raises(LockedError, match=rf"is being changed by process {holder.pid} on \S+: try again"):
                corpus.retag({"0.jpg": []})
        finally:
            holder.kill()
    assert corpus.retag({"0.jpg": []}).tags[0] == []  # the lock died with its process


# ---- what a manifest may say -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["../../precious", "../precious", "/precious", "..", ".", "", "precious", 7, None])
def test_a_manifest_cannot_make_a_change_remove_anything_else(corpus, tmp_path, name):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "diary.txt").write_text("mine")
    path = corpus.folder / "corpus.json"
    manifest = json.loads(path.read_text())
    manifest["shards"].append(manifest["shards"][0] | {"name": name, "n_rows": 0})
    path.write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match="'shards' is missing or wrong"):
        Corpus.open(corpus.folder)
    with pytest.raises(ValueError, match="'shards' is missing or wrong"):
        corpus.retag({"0.jpg": []})
    assert (precious / "diary.txt").read_text() == "mine"


def test_shards_that_are_a_link_are_not_followed(corpus, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    os.rename(corpus.folder / "shards", elsewhere)
    (corpus.folder / "shards").symlink_to(elsewhere)
    with pytest.raises(ValueError, match="is outside of it"):
        corpus.retag({"0.jpg": []})
    assert len(list(elsewhere.iterdir())) == 1


def test_what_a_killed_change_has_left_is_swept_by_the_next(corpus):
    shards = corpus.folder / "shards"
    (shards / ".writing").mkdir()
    shutil.copytree(next(shards.glob("[0-9a-f]*")), shards / ("0" * 16))
    (corpus.folder / ".abc.tmp").write_text("half")
    (shards / "mine").mkdir()  # of somebody else
    corpus.retag({"0.jpg": []})
    assert len(list(shards.glob("[0-9a-f]" * 16))) == 1
    assert sorted(path.name for path in corpus.folder.iterdir() if path.name.startswith(".")) == [".lock"]
    assert (shards / "mine").is_dir()


def test_a_change_that_was_killed_after_it_counted_is_cleared_up_by_the_next(corpus, tmp_path, monkeypatch):
    source = more(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("pictopic.corpus.build.shutil.rmtree", lambda *_, **__: None)  # killed before it cleared up
        corpus.append(source, n_jobs=1)
    assert (corpus.folder / "building").is_dir()
    other = tmp_path / "other"
    write_metadata(other, write_pictures(other, 2, first=300))
    assert len(Corpus.open(corpus.folder).append(other, n_jobs=1)) == 19
    assert not (corpus.folder / "building").exists()


@pytest.mark.parametrize("change", [lambda c: c.retag({"0.jpg": []}), lambda c: c.remove(["0.jpg"])])
def test_a_damaged_shard_is_not_written_again_with_a_hash_that_is_right(corpus, change):
    path = next((corpus.folder / "shards").iterdir()) / "counts.npy"
    content = bytearray(path.read_bytes())
    content[-4] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match=r"counts\.npy is damaged: it is not what was written"):
        change(corpus)

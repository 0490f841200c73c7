import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from pictopic import Corpus
from pictopic.corpus import chunks
from pictopic.corpus.store import read_skipped
from pictopic.words.codebook import Codebook
from tests.corpus.conftest import WORDS, write_metadata, write_pictures
from tests.support.folders import contents
from tests.support.pictures import png_header


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK_SIZE", 4)


def test_counts_are_those_of_each_picture_and_its_tags(photos, tmp_path):
    corpus = Corpus.build(photos, tmp_path / "corpus", **WORDS)
    extractor = corpus.extractor
    visual = [extractor.count(extractor.open(photos / name)) for name in corpus.file_names]
    np.testing.assert_array_equal(corpus.X[:, :24].toarray(), visual)
    assert corpus.vocabulary.annotations == ("all", "tag0", "tag1", "tag2")
    np.testing.assert_array_equal(corpus.X[:, 25:].toarray(), np.eye(3, dtype=int)[np.arange(12) % 3])


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_the_number_of_processes_does_not_change_a_byte(photos, tmp_path, small_chunks, n_jobs):
    options = WORDS | {"features": ("cld",)}
    Corpus.build(photos, tmp_path / "one", **options)
    Corpus.build(photos, tmp_path / "several", **options | {"n_jobs": n_jobs})
    assert contents(tmp_path / "one") == contents(tmp_path / "several")


class StopError(Exception):
    pass


@pytest.mark.parametrize(
    ("stage", "after"),
    [("looking for visual words", 4), ("learning visual words", 0), ("counting words", 8), ("writing", 4)],
)
def test_a_build_that_was_stopped_is_resumed_to_the_same_bytes(photos, tmp_path, small_chunks, stage, after):
    def stop(now, done, total):
        if now == stage and done >= after:
            raise StopError

    Corpus.build(photos, tmp_path / "whole", **WORDS)
    with pytest.raises(StopError):
        Corpus.build(photos, tmp_path / "stopped", **WORDS, progress=stop)
    with pytest.raises(ValueError, match="is not a corpus"):
        Corpus.open(tmp_path / "stopped")
    Corpus.build(photos, tmp_path / "stopped", **WORDS, resume=True)
    assert contents(tmp_path / "stopped") == contents(tmp_path / "whole")


def test_resuming_does_not_count_again_what_was_counted(photos, tmp_path, small_chunks):
    def stop(now, done, total):
        if now == "counting words" and done >= 8:
            raise StopError

    with pytest.raises(StopError):
        Corpus.build(photos, tmp_path / "corpus", **WORDS, progress=stop)
    told = []
    Corpus.build(photos, tmp_path / "corpus", **WORDS, resume=True, progress=lambda *step: told.append(step))
    done = [done for stage, done, _ in told if stage == "counting words"]
    assert 8 <= done[0] < done[-1] == 12
    assert not any(stage == "looking for visual words" for stage, _, _ in told)


def test_a_chunk_that_was_damaged_is_counted_again(photos, tmp_path, small_chunks):
    def stop(now, done, total):
        if now == "counting words" and done >= 8:
            raise StopError

    Corpus.build(photos, tmp_path / "whole", **WORDS)
    with pytest.raises(StopError):
        Corpus.build(photos, tmp_path / "corpus", **WORDS, progress=stop)
    chunk = next((tmp_path / "corpus" / "building").glob("piece-*.npz"))
    chunk.write_bytes(chunk.read_bytes()[:-20])
    Corpus.build(photos, tmp_path / "corpus", **WORDS, resume=True)
    assert contents(tmp_path / "corpus") == contents(tmp_path / "whole")


def test_a_corpus_like_another_has_the_same_words(photos, tmp_path):
    other = Corpus.build(photos, tmp_path / "other", **WORDS)
    more = tmp_path / "more"
    write_metadata(more, [row | {"tags": "all; new"} for row in write_pictures(more, 5, first=40)])
    corpus = Corpus.build(more, tmp_path / "corpus", like=other, n_jobs=1)
    assert corpus.vocabulary.annotations == other.vocabulary.annotations
    assert corpus.options == other.options
    np.testing.assert_array_equal(corpus.codebook.centres, other.codebook.centres)
    extractor = other.extractor
    np.testing.assert_array_equal(corpus.X[[0], :24].toarray()[0], extractor.count(extractor.open(more / "40.jpg")))


def stopped_build(photos, folder):
    def stop(now, done, total):
        if now == "counting words":
            raise StopError

    with pytest.raises(StopError):
        Corpus.build(photos, folder, **WORDS, progress=stop)


def test_an_unfinished_build_is_not_thrown_away_unasked(photos, tmp_path):
    stopped_build(photos, tmp_path / "corpus")
    with pytest.raises(ValueError, match="holds an unfinished build: resume it"):
        Corpus.build(photos, tmp_path / "corpus", **WORDS)


def test_a_folder_of_the_users_own_that_has_the_name_of_ours_is_left_alone(photos, tmp_path):
    plans = tmp_path / "house" / "building" / "plans.txt"
    plans.parent.mkdir(parents=True)
    plans.write_text("precious")
    for resume in (False, True):
        with pytest.raises(ValueError, match="building is in the way"):
            Corpus.build(photos, tmp_path / "house", **WORDS, resume=resume)
    assert plans.read_text() == "precious"


def test_what_is_left_of_an_unfinished_build_that_was_being_removed_is_not_in_the_way(photos, tmp_path):
    building = tmp_path / "corpus" / "building"
    building.mkdir(parents=True)
    for name in (f"piece-{'0' * 32}.npz", "codebook.safetensors", ".a.tmp"):
        (building / name).touch()
    assert len(Corpus.build(photos, tmp_path / "corpus", **WORDS)) == 12


def test_an_unfinished_build_with_other_options_is_not_resumed(photos, tmp_path):
    stopped_build(photos, tmp_path / "corpus")
    with pytest.raises(ValueError, match="another source, or with other options"):
        Corpus.build(photos, tmp_path / "corpus", **WORDS | {"n_words": 5}, resume=True)


def test_a_codebook_of_a_build_that_was_killed_at_its_end_is_not_mistaken_for_that_of_another(photos, tmp_path, rng):
    whole = Corpus.build(photos, tmp_path / "whole", **WORDS)
    (tmp_path / "corpus").mkdir()
    Codebook(rng.random_sample((6, 128)).astype(np.float32)).save(tmp_path / "corpus" / "codebook.safetensors")
    corpus = Corpus.build(photos, tmp_path / "corpus", **WORDS)
    np.testing.assert_array_equal(corpus.codebook.centres, whole.codebook.centres)


@pytest.mark.parametrize("change", [{}, {"n_words": 5, "resume": True}, {"random_state": 1, "resume": True}])
def test_a_corpus_is_not_overwritten(photos, tmp_path, change):
    Corpus.build(photos, tmp_path / "corpus", **WORDS)
    with pytest.raises(ValueError, match="choose another folder"):
        Corpus.build(photos, tmp_path / "corpus", **WORDS | change)


def test_resuming_a_build_that_was_finished_is_no_error(photos, tmp_path):
    corpus = Corpus.build(photos, tmp_path / "corpus", **WORDS)
    before = contents(tmp_path / "corpus")
    (tmp_path / "corpus" / "building").mkdir()  # killed before it cleared up
    assert Corpus.build(photos, tmp_path / "corpus", **WORDS, resume=True).file_names == corpus.file_names
    assert contents(tmp_path / "corpus") == before
    assert not (tmp_path / "corpus" / "building").exists()


def test_bad_pictures_are_skipped_with_a_reason_and_nothing_else_is_lost(photos, tmp_path):
    rows = write_pictures(photos, 12)
    whole = (photos / "1.jpg").read_bytes()
    (photos / "truncated.jpg").write_bytes(whole[: len(whole) // 2])
    (photos / "empty.jpg").write_bytes(b"")
    (photos / "text.jpg").write_text("not a picture at all")
    (photos / "bomb.png").write_bytes(png_header(20_000, 20_000))
    Image.fromarray(np.zeros((1, 1, 3), np.uint8)).save(photos / "pixel.png")
    (tmp_path / "outside.jpg").write_bytes(whole)
    bad = ["truncated.jpg", "empty.jpg", "text.jpg", "bomb.png", "../outside.jpg", "missing.jpg", "0.jpg"]
    for name in [*bad, "pixel.png"]:
        rows.append({"file_name": name, "tags": "", "label": "round", "part": "a"})
    write_metadata(photos, rows)
    corpus = Corpus.build(photos, tmp_path / "corpus", **WORDS)
    assert corpus.file_names == [f"{k}.jpg" for k in range(12)] + ["pixel.png"]
    skipped = dict(corpus.skipped)
    assert sorted(skipped) == sorted(bad)
    assert skipped["truncated.jpg"] == "truncated"
    assert "400 million pixels" in skipped["bomb.png"]
    assert skipped["../outside.jpg"] == "outside the folder"
    assert skipped["missing.jpg"] == "missing"
    assert skipped["0.jpg"] == "duplicate row"
    assert corpus[[12]].X.sum() == 0


@pytest.mark.parametrize("name", ["missing.jpg", "text.jpg"])
def test_strict_makes_a_bad_picture_an_error(photos, tmp_path, name):
    (photos / "text.jpg").write_text("not a picture at all")
    rows = write_pictures(photos, 12)
    write_metadata(photos, [*rows, rows[0] | {"file_name": name}])
    with pytest.raises(ValueError, match=f"{name}: "):
        Corpus.build(photos, tmp_path / "corpus", **WORDS, strict=True)


def test_without_a_single_readable_picture_there_is_no_corpus(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_text("nothing")
    with pytest.raises(ValueError, match=r"no picture can be read; the first, a\.jpg: not a picture"):
        Corpus.build(tmp_path / "photos", tmp_path / "corpus", **WORDS)


def test_pictures_smaller_than_a_patch_have_no_words_to_learn(tmp_path):
    (tmp_path / "photos").mkdir()
    Image.new("L", (9, 12)).save(tmp_path / "photos" / "a.png")
    with pytest.raises(ValueError, match=r"smaller than a patch; the first, a\.png, has 9 x 12 pixels"):
        Corpus.build(tmp_path / "photos", tmp_path / "corpus", **WORDS)


@pytest.mark.parametrize(
    "rows", ["b", [f"{k}.jpg" for k in range(0, 12, 3)], [0, 3, 6, 9], np.arange(12) % 3 == 0], ids=str
)
def test_visual_words_are_learnt_from_the_codebook_rows_only(photos, tmp_path, rows):
    options = WORDS | {"split_column": "part", "codebook_rows": rows}
    before = Corpus.build(photos, tmp_path / "before", **options)
    Image.fromarray(np.zeros((48, 64), np.uint8)).save(photos / "1.jpg")
    after = Corpus.build(photos, tmp_path / "after", **options)
    np.testing.assert_array_equal(before.codebook.centres, after.codebook.centres)
    everything = Corpus.build(photos, tmp_path / "all", **options | {"codebook_rows": None})
    assert not np.array_equal(everything.codebook.centres, after.codebook.centres)


def test_codebook_rows_are_numbered_as_listed(photos, tmp_path):
    rows = write_pictures(photos, 12)
    write_metadata(photos, [rows[0] | {"file_name": "missing.jpg"}, *rows])
    shifted = Corpus.build(photos, tmp_path / "shifted", **WORDS, codebook_rows=[4, 7])
    by_name = Corpus.build(photos, tmp_path / "by_name", **WORDS, codebook_rows=["3.jpg", "6.jpg"])
    assert {patch.file_name for word in shifted.codebook.examples for patch in word} == {"3.jpg", "6.jpg"}
    np.testing.assert_array_equal(shifted.codebook.centres, by_name.codebook.centres)


@pytest.mark.parametrize(("rows", "message"), [("train", "no row is in a split 'train'"), (["x"], "names no row")])
def test_codebook_rows_that_are_not_there_are_refused(photos, tmp_path, rows, message):
    with pytest.raises(ValueError, match=message):
        Corpus.build(photos, tmp_path / "corpus", **WORDS, codebook_rows=rows)


def test_a_codebook_that_is_there_is_used(photos, tmp_path, rng):
    codebook = Codebook(rng.uniform(size=(5, 128)))
    corpus = Corpus.build(photos, tmp_path / "corpus", **WORDS, codebook=codebook)
    np.testing.assert_array_equal(corpus.codebook.centres, codebook.centres)
    assert corpus.vocabulary.n_visual_words == corpus.options.n_words == 5


def test_computed_and_own_features_stand_side_by_side(photos, tmp_path):
    np.save(tmp_path / "own.npy", np.arange(10.0).reshape(5, 2))
    (tmp_path / "own.txt").write_text("".join(f"{k}.jpg\n" for k in (3, 0, 1, 2, 11)))
    corpus = Corpus.build(photos, tmp_path / "corpus", **WORDS, features=("cld",), features_file=tmp_path / "own.npy")
    features = np.asarray(corpus.global_features)
    assert features.shape == (12, 194)
    assert features[3, 192:].tolist() == [0, 1]
    assert np.isnan(features[4, 192:]).all()
    extractor = corpus.extractor
    np.testing.assert_array_equal(features[5, :192], extractor.features(extractor.open(photos / "5.jpg")))


def test_rare_tags_are_no_words_but_stay_tags(photos, tmp_path):
    rows = write_pictures(photos, 12)
    rows[0]["tags"] = "all; unique"
    write_metadata(photos, rows)
    corpus = Corpus.build(photos, tmp_path / "corpus", **WORDS, min_tag_count=2)
    assert "unique" not in corpus.vocabulary
    assert corpus.tags[0] == ["all", "unique"]


def test_most_frequent_tags_only(photos, tmp_path):
    assert Corpus.build(photos, tmp_path / "corpus", **WORDS, max_tags=1).vocabulary.annotations == ("all",)


def test_tags_of_unreadable_pictures_are_no_words(photos, tmp_path):
    rows = write_pictures(photos, 12)
    rows[0]["tags"] = "unseen"
    write_metadata(photos, rows)
    (photos / "0.jpg").write_bytes(b"nothing")
    assert "unseen" not in Corpus.build(photos, tmp_path / "corpus", **WORDS).vocabulary


def test_counts_in_a_file_become_a_corpus(tmp_path):
    (tmp_path / "words.csv").write_text("label,sea,sky\ncoast,2,1\nforest,0,3\n")
    corpus = Corpus.build(tmp_path / "words.csv", tmp_path / "corpus")
    assert corpus.X.toarray().tolist() == [[2, 1], [0, 3]]
    assert corpus.vocabulary.annotations == ("sea", "sky")
    assert corpus.labels.tolist() == ["coast", "forest"]


def test_an_error_in_a_picture_names_it(photos, tmp_path, monkeypatch):
    monkeypatch.setattr("pictopic.words.extract.Extractor.count", lambda *_: 1 / 0)
    with pytest.raises(RuntimeError, match=r"0\.jpg: division by zero"):
        Corpus.build(photos, tmp_path / "corpus", **WORDS)


def child_is_running(child):
    return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.0, 0.3, 1.0])
def test_a_killed_build_is_resumed_to_the_same_bytes(tmp_path, delay):
    folder = tmp_path / "photos"
    write_metadata(folder, write_pictures(folder, 120))
    options = "n_words=6, step=2, regions='2x2', n_jobs=2, resume=True"
    code = f"from pictopic import Corpus; import sys; Corpus.build(sys.argv[1], sys.argv[2], {options})"
    command = [sys.executable, "-c", code, str(folder)]
    subprocess.run([*command, str(tmp_path / "whole")], check=True)
    child = subprocess.Popen([*command, str(tmp_path / "killed")], start_new_session=True)
    # It may come to its end between two looks.  Until `wait`, its number and its group are not given to others.
    while child_is_running(child) and not list(Path(tmp_path / "killed").glob("building/piece-*")):
        time.sleep(0.005)
    time.sleep(delay)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    if not (tmp_path / "killed" / "corpus.json").exists():
        subprocess.run([*command, str(tmp_path / "killed")], check=True)
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


# ---- folders that change, and links ----------------------------------------------------------------------------------


def interrupted_build(photos, folder, at):
    def stop(now, done, total):
        if now == "counting words" and done >= at:
            raise StopError

    with pytest.raises(StopError):
        Corpus.build(photos, folder, **WORDS, progress=stop)


def test_a_folder_that_changed_meanwhile_is_resumed_and_only_what_changed_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK_SIZE", 4)
    photos = tmp_path / "photos"
    write_pictures(photos, 40)
    write_pictures(photos / "sub", 8, first=100)
    interrupted_build(photos, tmp_path / "corpus", at=48)
    shutil.rmtree(photos / "sub")
    (photos / "7.jpg").unlink()
    write_pictures(photos, 1, first=90)
    told = []
    with pytest.warns(UserWarning, match="has changed since the build was begun"):
        corpus = Corpus.build(
            photos, tmp_path / "corpus", **WORDS, resume=True, progress=lambda *step: told.append(step)
        )
    assert sorted(corpus.file_names) == sorted(f"{k}.jpg" for k in [*range(40), 90] if k != 7)
    counted_again = 40 - next(done for stage, done, _ in told if stage == "counting words")
    assert 0 < counted_again < 25
    extractor = corpus.extractor
    expected = [extractor.count(extractor.open(photos / name)) for name in corpus.file_names]
    np.testing.assert_array_equal(corpus.X[:, : corpus.vocabulary.n_pairs].toarray(), expected)


def test_a_picture_that_was_replaced_meanwhile_is_counted_again(tmp_path, small_chunks):
    photos = tmp_path / "photos"
    write_pictures(photos, 12)
    interrupted_build(photos, tmp_path / "corpus", at=12)
    Image.fromarray(np.zeros((48, 64, 3), np.uint8)).save(photos / "3.jpg")
    with pytest.warns(UserWarning, match="has changed"):
        corpus = Corpus.build(photos, tmp_path / "corpus", **WORDS, resume=True)
    row = corpus.file_names.index("3.jpg")
    extractor = corpus.extractor
    expected = extractor.count(extractor.open(photos / "3.jpg"))
    np.testing.assert_array_equal(corpus.X[[row], : corpus.vocabulary.n_pairs].toarray()[0], expected)


def test_a_sub_folder_that_is_deleted_while_it_is_counted_is_skipped(tmp_path, small_chunks):
    photos = tmp_path / "photos"
    write_pictures(photos / "a", 12)
    write_pictures(photos / "b", 12)

    def delete(now, done, total):
        if now == "counting words":
            shutil.rmtree(photos / "b", ignore_errors=True)

    corpus = Corpus.build(photos, tmp_path / "corpus", **WORDS, progress=delete)
    assert corpus.file_names == sorted(f"a/{k}.jpg" for k in range(12))
    assert {name for name, _ in corpus.skipped} == {f"b/{k}.jpg" for k in range(12)}


@pytest.mark.parametrize("linked", ["corpus", "photos", "both"])
def test_pictures_are_found_again_through_links(tmp_path, linked):
    photos, elsewhere = tmp_path / "photos", tmp_path / "a" / "b" / "elsewhere"
    write_pictures(photos, 3)
    elsewhere.mkdir(parents=True)
    (tmp_path / "link").symlink_to(elsewhere)
    (tmp_path / "a" / "photos").symlink_to(photos)
    source = tmp_path / "a" / "photos" if linked in ("photos", "both") else photos
    folder = (tmp_path / "link" if linked in ("corpus", "both") else elsewhere) / "corpus"
    Corpus.build(source, folder, **WORDS)
    for place in (folder, elsewhere / "corpus"):
        assert [path.read_bytes() for path in Corpus.open(place).paths] == [
            (photos / f"{k}.jpg").read_bytes() for k in range(3)
        ]


def test_names_that_lead_out_of_the_folder_of_pictures_are_no_paths(photos, tmp_path):
    corpus = Corpus.build(photos, tmp_path / "corpus", **WORDS)
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    path = next((corpus.folder / "shards").iterdir()) / "rows.parquet"
    table = pq.read_table(path)
    names = ["../secret.jpg", str(tmp_path / "secret.jpg"), "", *corpus.file_names[3:]]
    pq.write_table(table.set_column(0, "file_name", pa.array(names)), path, use_dictionary=False)
    paths = Corpus.open(corpus.folder).paths
    assert not any(path.exists() for path in paths[:3])
    assert all(path.exists() for path in paths[3:])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_folder_with_everything_that_can_be_wrong_is_built(tmp_path):
    photos = tmp_path / "photos"
    write_pictures(photos, 6)
    (photos / "loop").symlink_to("loop")
    (photos / "loop.jpg").symlink_to("loop.jpg")
    (photos / "gone\r.jpg").symlink_to("nothing")
    (photos / "up").symlink_to("..")
    os.mkfifo(photos / "pipe.jpg")
    (photos / "empty\n.jpg").touch()
    corpus = Corpus.build(photos, tmp_path / "corpus", **WORDS)
    assert corpus.file_names == [f"{k}.jpg" for k in range(6)]
    too_deep = "cannot be opened: Too many levels of symbolic links"
    assert sorted(read_skipped(tmp_path / "corpus" / "skipped.csv")) == [
        ("empty\n.jpg", "empty file"), ("gone\r.jpg", "missing"), ("loop", too_deep), ("loop.jpg", too_deep),
        ("pipe.jpg", "not a file"), ("up", "a link to a folder: not followed"),
    ]  # fmt: skip

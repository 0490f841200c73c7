"""Saving and loading whole models: what happens to folders, and what is found out about damaged ones."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

from pictopic import Corpus, PictureModel
from pictopic.picture_model import files
from pictopic.picture_model.files import ModelFiles
from pictopic.processes import lock_beside
from tests.support.patterns import QUICK, pattern


@pytest.fixture(scope="session")
def saved_once(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "model"
    model.save(folder)
    return folder


@pytest.fixture
def folder(saved_once, tmp_path):
    """A saved model of its own."""
    return shutil.copytree(saved_once, tmp_path / "models" / "model")


def load(folder):
    return PictureModel.load(folder, n_jobs=1, verbose=0)


# ---- saving ----------------------------------------------------------------------------------------------------------


def test_saving_through_a_link_keeps_the_link_and_replaces_what_it_leads_to(model, folder, tmp_path):
    link = tmp_path / "latest"
    link.symlink_to(folder, target_is_directory=True)
    before = folder.stat().st_ino
    model.save(link)
    assert link.is_symlink()
    assert link.resolve() == folder
    assert folder.stat().st_ino != before
    assert load(link).classify(pattern(201)[0]) == model.classify(pattern(201)[0])


def test_what_killed_saves_left_is_gone_after_the_next_one(model, folder):
    for leftover in (".model.new", ".model.old"):
        (folder.parent / leftover).mkdir()
        (folder.parent / leftover / "half.npy").write_bytes(b"half")
    model.save(folder)
    assert sorted(path.name for path in folder.parent.iterdir()) == [".model.lock", "model"]


def test_a_model_that_a_kill_left_without_its_name_is_found(folder):
    folder.rename(folder.parent / ".model.old")
    assert load(folder).figures_
    assert folder.is_dir()


def test_a_save_that_fails_between_two_renames_brings_the_old_model_back(model, folder, monkeypatch):
    monkeypatch.setattr("pictopic.files._exchange", lambda one, other: False)
    rename = shutil.os.rename

    def fails(source, target):
        if str(source).endswith(".model.new"):
            raise OSError("disk full")
        rename(source, target)

    monkeypatch.setattr("os.rename", fails)
    with pytest.raises(OSError, match="disk full"):
        model.save(folder)
    assert load(folder).figures_ == model.figures_
    assert sorted(path.name for path in folder.parent.iterdir()) == [".model.lock", "model"]


def test_a_process_that_holds_the_lock_of_a_model_can_save_it(model, folder):
    with lock_beside(folder):
        model.save(folder)
    assert load(folder).figures_ == model.figures_


def test_a_save_into_a_model_that_another_process_saves_names_it(model, folder):
    code = "import sys, time; from pathlib import Path; from pictopic.processes import lock_beside\n"
    code += "with lock_beside(Path(sys.argv[1])):\n    print('locked', flush=True)\n    time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("pictopic.processes.lock_beside.__defaults__", (0.1,))
            with pytest.raises(OSError, match=f"is being changed by process {process.pid} on"):
                model.save(folder)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_collection_that_was_changed_since_is_not_saved_with_the_model(folder, tmp_path):
    loaded = load(folder)
    Corpus.open(folder / "corpus").retag({"3.png": ["spots", "blue"]})
    with pytest.raises(ValueError, match="was changed since"):
        loaded.save(tmp_path / "other")


_SAVE_FOR_EVER = """
import sys
from pictopic import PictureModel
models = [PictureModel.load(folder, n_jobs=1, verbose=0) for folder in sys.argv[2:]]
print("ready", flush=True)
while True:
    for model in models:
        model.save(sys.argv[1])
"""


def test_a_model_that_is_replaced_while_it_is_loaded_is_the_old_one_or_the_new(model, saved_once, tmp_path):
    smaller = PictureModel(**QUICK, model="shallow")
    smaller.fit(model.corpus_[:60]).save(tmp_path / "smaller")
    target = tmp_path / "target"
    model.save(target)
    places = [str(target), str(saved_once), str(tmp_path / "smaller")]
    process = subprocess.Popen([sys.executable, "-c", _SAVE_FOR_EVER, *places], stdout=subprocess.PIPE)
    seen = set()
    try:
        process.stdout.readline()
        end = time.monotonic() + 4
        while time.monotonic() < end:
            loaded = load(target)
            sizes = {len(loaded.corpus_), len(loaded._index), len(loaded.corpus_.file_names)}
            assert len(sizes) == 1
            seen |= sizes
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert seen == {100, 60}


# ---- damaged files ---------------------------------------------------------------------------------------------------


def files_of(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def test_every_file_of_a_model_is_listed_with_its_hash_and_size(folder):
    table = json.loads((folder / "picture_model.json").read_text())["files"]
    assert sorted(table) == [
        name for name in files_of(folder) if name not in ("picture_model.json", "network/timings.json")
    ]
    for name, entry in table.items():
        content = (folder / name).read_bytes()
        assert entry == {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def test_a_flipped_bit_in_any_file_is_found_before_the_first_answer(saved_once, tmp_path):
    for name in files_of(saved_once):
        if name.endswith("timings.json"):
            continue
        copy = shutil.copytree(saved_once, tmp_path / "model")
        flip(copy / name)
        with pytest.raises(ValueError, match=r"^[^\n]*(cannot be read|damaged)[^\n]*$"):
            load(copy)
        shutil.rmtree(copy)


def test_a_missing_file_is_named(saved_once, tmp_path):
    for name in files_of(saved_once):
        if name.endswith("timings.json"):
            continue
        copy = shutil.copytree(saved_once, tmp_path / "model")
        (copy / name).unlink()
        with pytest.raises(ValueError, match=name if name != "picture_model.json" else "not a picture model"):
            load(copy)
        shutil.rmtree(copy)


@pytest.mark.parametrize("part", ["index", "network", "corpus"])
def test_a_part_of_another_model_is_refused(model, folder, tmp_path, part):
    """Of the same shape, and whole in itself: only the model can tell that it is not its own."""
    other = PictureModel(**QUICK, model="shallow", random_state=1).fit(model.corpus_[np.r_[:100][::-1]])
    other.save(tmp_path / "other")
    if part == "corpus":
        Corpus.open(tmp_path / "other" / "corpus").retag({"3.png": ["spots"]})
    shutil.rmtree(folder / part)
    shutil.copytree(tmp_path / "other" / part, folder / part)
    with pytest.raises(ValueError, match=f"{part}/.* is missing|{part}/.* of another model"):
        load(folder)


def test_large_files_are_left_to_check_files(folder, monkeypatch):
    monkeypatch.setattr(files, "_SMALL", 100)
    name = next((folder / "index").glob("vectors-*.npy")).relative_to(folder).as_posix()
    flip(folder / name)
    loaded = load(folder)
    with pytest.raises(ValueError, match=f"{name} is damaged"):
        loaded.check_files()


def test_a_large_file_of_another_size_is_found_at_once(folder, monkeypatch):
    monkeypatch.setattr(files, "_SMALL", 100)
    path = next((folder / "index").glob("vectors-*.npy"))
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(ValueError, match=f"{path.name} was changed"):
        load(folder)


def test_a_whole_model_passes_when_it_is_loaded_saved_or_neither(model, folder, patterns):
    load(folder).check_files()
    model.save(folder)
    model.check_files()
    PictureModel(**QUICK, model="shallow").fit(model.corpus_[:20]).check_files()


def test_a_damaged_collection_of_a_model_that_was_not_saved_is_found(model, tmp_path):
    corpus = shutil.copytree(model.corpus_.folder, tmp_path / "corpus")
    learnt = PictureModel(**QUICK, model="shallow").fit(Corpus.open(corpus)[:20])
    flip(next(corpus.glob("shards/*/rows.parquet")))
    with pytest.raises(ValueError, match=r"rows\.parquet is damaged"):
        learnt.check_files()


def test_a_model_that_another_one_has_replaced_is_not_called_damaged(folder, model):
    loaded = load(folder)
    PictureModel(**QUICK, model="shallow").fit(model.corpus_[:20]).save(folder)
    loaded.check_files()


def test_hashes_of_shards_are_taken_from_the_manifest(model, tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr(files, "sha256", lambda path: read.append(path.name) or "0" * 64)
    model.save(tmp_path / "model")
    assert "head.safetensors" in read
    assert not {"counts.npy", "indices.npy", "features.npy", "rows.parquet"} & set(read)
    assert not [name for name in read if name.startswith(("vectors-", "model-"))]


def test_a_model_of_an_older_pictopic_says_what_to_do(folder):
    config = folder / "picture_model.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"format_version": 1}))
    with pytest.raises(ValueError, match="older pictopic; make it again with pictopic fit"):
        load(folder)


@pytest.mark.parametrize("name", ["../../x", "/etc/passwd", "", "corpus/../../x"])
def test_a_name_that_leads_out_of_the_model_is_not_opened(folder, name):
    table = {name: {"sha256": "0" * 64, "bytes": 1}}
    with pytest.raises(ValueError, match="not a file inside the model"):
        ModelFiles.read(folder, "picture_model.json", "", table)


# ---- equal runs ------------------------------------------------------------------------------------------------------

_FIT = """
import sys
from pictopic import PictureModel
options = {"n_words": 12, "regions": "1x1", "features": ("cld",), "n_jobs": 1, "verbose": 0}
PictureModel(**options, model=sys.argv[3]).fit(sys.argv[1]).save(sys.argv[2])
"""


@pytest.mark.parametrize("kind", ["shallow", pytest.param("deep", marks=pytest.mark.slow)])
def test_equal_fits_in_two_processes_give_equal_files_but_for_their_timings(patterns, tmp_path, kind):
    contents = []
    for run, seed in (("one", "1"), ("other", "2")):
        folder = tmp_path / run / "model"
        code = [sys.executable, "-c", _FIT, str(patterns), str(folder), kind]
        subprocess.run(code, check=True, env=os.environ | {"PYTHONHASHSEED": seed})
        contents.append({name: (folder / name).read_bytes() for name in files_of(folder)})
    one, other = contents
    assert sorted(one) == sorted(other)
    assert [name for name in one if one[name] != other[name]] == ["network/timings.json"]

import json
import os
import signal
import sys
import time

import pytest

from pictopic import Corpus
from tests.corpus.conftest import photos, write_metadata, write_pictures  # noqa: F401 - a fixture
from tests.support.commands import run
from tests.support.processes import start

QUICK = ["--words", "6", "--jobs", "1"]


def one_line(result):
    assert len(result.stderr.splitlines()) == 1, result.stderr
    return result.stderr


def test_build_makes_a_corpus_and_says_what_is_in_it(photos, tmp_path):  # noqa: F811
    (photos / "3.jpg").write_bytes(b"nothing")
    result = run("build", str(photos), "--out", str(tmp_path / "corpus"), *QUICK, "--split-column", "part")
    assert result.returncode == 0, result.stderr
    assert "11 rows" in result.stdout
    assert "6 visual words x 4 regions, 4 tags" in result.stdout
    assert "square 6, round 5" in result.stdout
    assert "splits   a 8, b 3" in result.stdout
    assert "skipped  1 (not a picture 1); see skipped.csv" in result.stdout
    assert len(Corpus.open(tmp_path / "corpus")) == 11


def test_info_says_the_same(photos, tmp_path):  # noqa: F811
    built = run("build", str(photos), "--out", str(tmp_path / "corpus"), *QUICK)
    assert run("info", str(tmp_path / "corpus")).stdout == built.stdout


def test_info_for_machines_is_json(photos, tmp_path):  # noqa: F811
    run("build", str(photos), "--out", str(tmp_path / "corpus"), *QUICK, "--features", "cld, ehd")
    found = json.loads(run("info", str(tmp_path / "corpus"), "--json").stdout)
    assert found["rows"] == 12
    assert found["n_global_features"] == 342
    assert found["tags"]["all"] == 12
    assert found["options"]["n_words"] == 6


def test_options_reach_the_build(photos, tmp_path):  # noqa: F811
    (tmp_path / "stop.txt").write_text("all\n")
    (tmp_path / "rename.csv").write_text("from,to\ntag1,one\ntag2,one\n")
    arguments = ["--regions", "1x1+2x2", "--max-side", "40", "--label-column", "part", "--stop-tags"]
    arguments += [str(tmp_path / "stop.txt"), "--rename-tags", str(tmp_path / "rename.csv"), "--seed", "3"]
    result = run("build", str(photos), "--out", str(tmp_path / "corpus"), *QUICK, *arguments)
    assert result.returncode == 0, result.stderr
    corpus = Corpus.open(tmp_path / "corpus")
    assert corpus.vocabulary.n_regions == 5
    assert corpus.options.max_side == 40
    assert corpus.classes == ["a", "b"]
    assert corpus.vocabulary.annotations == ("one", "tag0")


def test_metadata_without_any_of_its_pictures_is_said(tmp_path):
    (tmp_path / "metadata.csv").write_text("file_name,tags\na.jpg,sea\n")
    result = run("build", str(tmp_path), "--out", str(tmp_path / "corpus"))
    assert result.returncode == 0
    assert result.stderr.splitlines()[0].endswith("only tags are used")


def test_dry_run_builds_nothing(photos, tmp_path):  # noqa: F811
    result = run("build", str(photos), "--out", str(tmp_path / "corpus"), *QUICK, "--dry-run")
    assert result.stdout.startswith("12 pictures, about ")
    assert not (tmp_path / "corpus").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing-folder"], "missing-folder does not exist"),
        (["PHOTOS", "--preset", "sports"], "there is no preset 'sports'"),
        (["PHOTOS", "--regions", "two"], "is no grid of regions"),
        (["PHOTOS", "--features", "sift"], "unknown kind of features 'sift'"),
        (["PHOTOS", "--label-column", "colour"], "colour"),
        (["PHOTOS", "--words", "0"], "number of words must be at least 1"),
    ],
)
def test_misuse_exits_with_2_and_one_line(photos, tmp_path, arguments, message):  # noqa: F811
    arguments = [str(photos) if argument == "PHOTOS" else argument for argument in arguments]
    result = run("build", *arguments, "--out", str(tmp_path / "corpus"))
    assert result.returncode == 2
    assert message in one_line(result)


def test_a_build_that_was_killed_when_all_was_done_is_resumed(photos, tmp_path):  # noqa: F811
    arguments = ["build", str(photos), "--out", str(tmp_path / "corpus"), *QUICK]
    first, again = run(*arguments), run(*arguments, "--resume")
    assert (first.returncode, again.returncode) == (0, 0), again.stderr
    assert again.stdout == first.stdout
    other = run(*arguments, "--resume", "--seed", "1")
    assert other.returncode == 1
    assert "holds a corpus of other pictures or options already" in other.stderr


def test_info_brings_back_a_model_that_a_kill_left_without_its_name(model, tmp_path):
    model.save(tmp_path / "m")
    (tmp_path / "m").rename(tmp_path / ".m.old")
    result = run("info", str(tmp_path / "m"))
    assert result.returncode == 0, result.stderr
    assert "all files are as they were saved" in result.stdout


def test_info_of_something_else_is_misuse(tmp_path):
    result = run("info", str(tmp_path))
    assert result.returncode == 2
    assert "is not a corpus" in one_line(result)


def test_strict_fails_with_1_and_the_file(photos, tmp_path):  # noqa: F811
    (photos / "3.jpg").write_bytes(b"nothing")
    result = run("build", str(photos), "--out", str(tmp_path / "corpus"), *QUICK, "--strict")
    assert result.returncode == 1
    assert "3.jpg: not a picture" in result.stderr.splitlines()[-1]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_build_says_how_to_go_on(tmp_path, number, code):
    folder = tmp_path / "photos"
    write_metadata(folder, write_pictures(folder, 100))
    # Hundreds of words take seconds to learn: the signal comes in time on a busy machine, too.
    arguments = ["build", str(folder), "--out", str(tmp_path / "corpus"), "--jobs", "1"]
    arguments += ["--preset", "flickr", "--words", "300"]
    command = [sys.executable, "-m", "pictopic", *arguments]
    child = start(command)
    while not (tmp_path / "corpus" / "building" / "plan.json").exists() and child.poll() is None:
        time.sleep(0.01)
    os.kill(child.pid, number)
    _, errors = child.communicate()
    assert child.returncode == code
    last = errors.splitlines()[-1]
    assert last.startswith("stopped; go on with: ")
    assert last.endswith(f"pictopic {' '.join(arguments)} --resume")
    assert run(*arguments, "--resume").returncode == 0
    assert len(Corpus.open(tmp_path / "corpus")) == 100


@pytest.mark.parametrize("place", ["file", "foreign", "built"])
def test_out_is_tried_before_the_pictures_are_looked_at(photos, tmp_path, place):  # noqa: F811
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "letter.txt").write_text("precious")
    (tmp_path / "built").mkdir()
    (tmp_path / "built" / "corpus.json").write_text("{}")
    (photos / "metadata.csv").write_text("nothing that could be read")
    result = run("build", str(photos), "--out", str(tmp_path / place), *QUICK)
    assert result.returncode == 2
    assert {"file": "is a file", "foreign": "holds something", "built": "holds a corpus"}[place] in one_line(result)

import json
import os
import re
import socket

import pytest

from pictopic.processes import lock_beside
from tests.support.commands import run
from tests.support.patterns import write_patterns
from tests.support.texts import make_texts


@pytest.mark.slow
def test_pretrain_then_fit(tmp_path):
    photos = write_patterns(tmp_path / "photos", range(60))
    corpus, start = str(tmp_path / "corpus"), str(tmp_path / "start")
    assert run("build", str(photos), "--out", corpus, "--words", "12", "--jobs", "1").returncode == 0
    arguments = ["pretrain", corpus, "--out", start, "--epochs", "2", "--layers", "16,8", "--jobs", "1"]
    first = run(*arguments, "--json")
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout)["passes"] == 2
    assert (tmp_path / "start.checkpoints").is_dir()
    result = run("fit", corpus, "--init", start, "--out", str(tmp_path / "model"), "--jobs", "1")
    assert result.returncode == 0, result.stderr
    assert "with SupDeepDocNADE" in result.stdout
    config = json.loads((tmp_path / "model" / "network" / "config.json").read_text())
    assert config["options"]["n_components"] == [16, 8]


def test_pretrain_asks_how_long(tmp_path):
    result = run("pretrain", str(tmp_path), "--out", str(tmp_path / "m"))
    assert result.returncode == 2
    assert result.stderr == "pictopic: say how long to learn: --minutes 30, or --epochs 10\n"


def test_workers_are_those_of_a_cluster(tmp_path):
    (tmp_path / "corpus.csv").write_text("sea,sky\n1,2\n2,0\n")
    assert run("build", str(tmp_path / "corpus.csv"), "--out", str(tmp_path / "c")).returncode == 0
    result = run("pretrain", str(tmp_path / "c"), "--out", str(tmp_path / "m"), "--epochs", "1", "--workers", "2")
    assert result.returncode == 2
    assert "--workers is for a cluster" in result.stderr


def test_layers_that_are_no_numbers_are_misuse(tmp_path):
    result = run("pretrain", str(tmp_path), "--out", str(tmp_path / "m"), "--epochs", "1", "--layers", "many")
    assert result.returncode == 2
    assert "as 512,512, got 'many'" in result.stderr


def test_two_at_once_the_second_waits_and_names_the_first(tmp_path):
    corpus = make_texts(tmp_path / "a", n=60)
    with lock_beside(tmp_path / "start"):
        result = run("pretrain", str(corpus.folder), "--layers", "8", "--epochs", "1", "--out", str(tmp_path / "start"))
    assert result.returncode == 1
    assert f"is being changed by process {os.getpid()} on {socket.gethostname()}" in result.stderr
    assert not (tmp_path / "start.checkpoints").exists()


def test_progress_without_a_terminal_is_lines_with_the_figures(tmp_path):
    corpus = make_texts(tmp_path / "a", n=200)
    result = run("pretrain", str(corpus.folder), "--layers", "8", "--epochs", "2", "--out", str(tmp_path / "start"))
    assert result.stderr.splitlines()[0] == "training"
    assert re.search(r"training: 100%, epoch 2/2  loss [\d.]+  held-out score -[\d.]+", result.stderr)

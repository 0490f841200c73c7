import json

import numpy as np
import pytest

from pictopic.cli import app
from pictopic.paper.datasets import LAYOUTS
from pictopic.paper.experiments.results import Results, Row, Table
from tests.support.commands import run


@pytest.fixture
def text_corpus(tmp_path):
    """A corpus of text in which words tell the class."""
    folder = tmp_path / "data" / "text" / "made"
    folder.mkdir(parents=True)
    (folder / "vocab_docnade.vocab").write_text("\n".join(f"word{k}" for k in range(12)) + "\n")
    rng = np.random.RandomState(0)
    for part, n in {"training": 60, "validation": 20, "test": 20}.items():
        labels = rng.randint(2, size=n)
        words = [" ".join(map(str, rng.randint(6, size=6) + 6 * label)) for label in labels]
        lines = [f"{label},{own}" for label, own in zip(labels, words, strict=True)]
        (folder / f"{part}_docnade.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "data"


@pytest.mark.parametrize("name", list(LAYOUTS))
def test_help_says_what_to_download_and_how_the_folder_looks(name):
    result = run("reproduce", name, "--help")
    assert result.returncode == 0
    assert LAYOUTS[name].url in result.stdout
    for line in LAYOUTS[name].tree.strip().splitlines():
        assert line in result.stdout
    assert "--budget" in result.stdout


@pytest.mark.parametrize("name", list(LAYOUTS))
def test_a_folder_that_looks_different_is_misuse_and_names_what_is_missing(name, tmp_path):
    (tmp_path / "data").mkdir()
    result = run("reproduce", name, "--data", str(tmp_path / "data"), "--out", str(tmp_path / "out"))
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert "is missing" in line
    assert f"`pictopic reproduce {name} --help` shows the layout" in line


def test_an_experiment_prints_its_table_and_writes_results(text_corpus, tmp_path):
    out = tmp_path / "out"
    arguments = ("reproduce", "text", "--data", str(text_corpus), "--out", str(out), "--budget", "5", "--jobs", "1")
    result = run(*arguments)
    assert result.returncode == 0, result.stderr
    assert "DocNADE" in result.stdout
    assert f"written to {out / 'results.md'}" in result.stdout
    assert {"results.json", "results.md", "cells"} <= {path.name for path in out.iterdir()}
    again = run(*arguments, "--json")
    assert json.loads(again.stdout)["tables"] == json.loads((out / "results.json").read_text())["tables"]
    assert "DocNADE" not in again.stderr  # nothing was worked out again


def test_several_results_become_one_document(tmp_path):
    for name in ("labelme", "text"):
        Results(name, f"About {name}", tables=[Table("t", "", [], [Row("a", {})])]).save(tmp_path / name)
    out = tmp_path / "docs" / "results.md"
    result = run("reproduce", "document", str(tmp_path / "labelme"), str(tmp_path / "text"), "--out", str(out))
    assert result.returncode == 0, result.stderr
    text = out.read_text()
    assert text.index("About labelme") < text.index("About text")


def test_a_document_of_what_is_no_results_is_misuse(tmp_path):
    result = run("reproduce", "document", str(tmp_path), "--out", str(tmp_path / "results.md"))
    assert result.returncode == 2
    assert "results.json is missing" in result.stderr


def test_every_experiment_has_a_command():
    names = {command.name for group in app.registered_groups for command in group.typer_instance.registered_commands}
    assert names == {*LAYOUTS, "document"}

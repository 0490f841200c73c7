"""The experiment on text, on a made corpus."""

import functools

import numpy as np
import pytest

from pictopic.paper.experiments import text
from pictopic.paper.experiments.results import Results
from pictopic.paper.experiments.run import Budget, ExperimentRun
from pictopic.tasks.metrics import retrieval_precision

N_WORDS = 24
METHODS = [
    "unigram",
    "TF-IDF",
    "DocNADE, tree",
    "SupDocNADE, tree",
    "DocNADE, softmax",
    "LDA, fewer topics (2)",
    "LDA (6)",
]


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(text, "TOPICS", 6)
    monkeypatch.setattr(text, "PASSES", 4)
    monkeypatch.setattr(text, "LDA_PASSES", 2)
    monkeypatch.setattr(text, "LDA_TOPICS", (2,))
    monkeypatch.setattr(text, "_CS", (0.1, 1.0))


def made_part(n, seed):
    """Labels, and documents that have more words of their own half of the vocabulary."""
    rng = np.random.RandomState(seed)
    labels = rng.randint(2, size=n)
    return labels, [rng.randint(N_WORDS // 2, size=8) + N_WORDS // 2 * (rng.uniform(size=8) < 0.2 + 0.6 * label)
                    for label in labels]  # fmt: skip


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data" / "text" / "TMN"
    folder.mkdir(parents=True)
    (folder / "vocab_docnade.vocab").write_text("\n".join(f"word{k}" for k in range(N_WORDS)) + "\n")
    for seed, (part, n) in enumerate({"training": 120, "validation": 40, "test": 50}.items()):
        labels, documents = made_part(n, seed)
        lines = [f"{label},{' '.join(map(str, words))}" for label, words in zip(labels, documents, strict=True)]
        (folder / f"{part}_docnade.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "data"


def started(tmp_path, minutes=None, log=None):
    return ExperimentRun(tmp_path / "run", Budget(minutes, text.FULL_MINUTES), log=log)


def test_all_methods_are_measured_beside_the_published_figures(data, tmp_path):
    run = started(tmp_path)
    results = text.run(data, run)
    (table,) = results.tables
    assert [row.name for row in table.rows] == [*METHODS, "iDocNADE (Gupta and others)"]
    rows = {row.name: row for row in table.rows}
    assert set(rows["unigram"].values) == {"perplexity", "per_word"}
    assert set(rows["TF-IDF"].values) == {"precision", "accuracy"}
    for name in METHODS[2:]:
        assert set(rows[name].values) == {"perplexity", "per_word", "precision", "accuracy"}
    assert rows["DocNADE, softmax"].paper == {"perplexity": 592, "precision": 0.60, "accuracy": 0.778}
    assert "Gupta" in table.caption
    assert "bound" in rows["LDA (6)"].note
    (curve,) = results.curves
    assert [series.name for series in curve.series] == [*METHODS[1:-2], "LDA, fewer topics", "LDA"]
    assert results.data["TMN"]["documents"] == {"training": 120, "validation": 40, "test": 50}
    assert results.options["DocNADE, softmax"]["n_components"] == 6
    assert all((run.folder / figure.file).is_file() for figure in results.figures)
    assert Results.load(results.save(run.folder)).tables == results.tables


def test_unigram_perplexity_is_that_of_counted_words(data, tmp_path):
    results = text.run(data, started(tmp_path))
    frequency = np.bincount(np.concatenate(made_part(120, 0)[1]), minlength=N_WORDS) + 1
    log_p = np.log(frequency / frequency.sum())
    documents = made_part(50, 2)[1]
    values = results.tables[0].rows[0].values
    assert values["perplexity"] == [pytest.approx(np.exp(-np.mean([log_p[words].mean() for words in documents])))]
    assert values["per_word"] == [pytest.approx(np.exp(-np.concatenate([log_p[words] for words in documents]).mean()))]


def test_a_second_run_learns_nothing(data, tmp_path, monkeypatch):
    first = text.run(data, started(tmp_path))

    def refuse(self, *arguments, **options):
        raise AssertionError("something was learnt again")

    for name in ("DocNADE", "SupDocNADE", "LDAClassifier", "LogisticRegression", "TfidfTransformer"):
        monkeypatch.setattr(getattr(text, name), "fit", refuse)
    assert text.run(data, started(tmp_path)) == first


def test_a_damaged_part_is_measured_again(data, tmp_path):
    first = text.run(data, started(tmp_path))
    (path,) = (tmp_path / "run" / "cells").glob("docnade-tree-tmn-*.json")
    path.write_text("{")
    log = []
    again = text.run(data, started(tmp_path, log=log.append))
    assert log == ["DocNADE, tree, TMN"]
    assert [row.values for row in again.tables[0].rows] == [row.values for row in first.tables[0].rows]


def test_without_time_parts_are_left_out_and_named(data, tmp_path):
    run = started(tmp_path, minutes=0.01)
    run.budget.end = 0.0  # it is over at once
    results = text.run(data, run)
    assert [row.name for row in results.tables[0].rows] == ["iDocNADE (Gupta and others)"]
    assert results.curves == []
    assert any(note.startswith("No time was left for: unigram, TMN") for note in results.notes)


def test_documents_with_several_classes_have_perplexities_only(data, tmp_path):
    path = data / "text" / "TMN" / "training_docnade.csv"
    path.write_text(path.read_text() + "0:1,3 4\n")
    results = text.run(data, started(tmp_path))
    assert {key for row in results.tables[0].rows for key in row.values} == {"perplexity", "per_word"}
    assert any("several classes" in note for note in results.notes)


def test_precisions_are_those_of_one_fraction_after_the_other(rng):
    Z, y = rng.normal(size=(60, 5)), rng.randint(3, size=60)
    given = functools.partial(retrieval_precision, Z[:20], y[:20], Z, y)
    found = text.precisions(Z[:20], y[:20], Z, y, text.FRACTIONS, batch_size=7)
    assert found == pytest.approx([given(fraction) for fraction in text.FRACTIONS])

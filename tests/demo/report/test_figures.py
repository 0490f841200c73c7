import numpy as np
import pytest

from pictopic.corpus.corpus import Corpus
from pictopic.corpus.rows import Rows
from pictopic.demo.report.figures import (
    best_values,
    compare,
    highlights,
    histograms,
    most_frequent,
    nearest,
    perplexities,
    show,
    svm,
    text_table,
)
from pictopic.tasks.annotate import tag_proba
from tests.support.report import made_report


@pytest.fixture
def counted(tmp_path) -> Corpus:
    """Tags of five pictures, without pixels."""
    lines = ["tags,label", "sea;sky,coast", "sea;boat,coast", "tree,forest", "sea;tree,coast", "sky;tree,forest"]
    (tmp_path / "metadata.csv").write_text("\n".join(lines))
    return Corpus.build(tmp_path, tmp_path / "corpus", pictures="none")


def test_most_frequent_answers_are_those_of_the_training_part(counted):
    figures = most_frequent(counted[:3], counted[3:])
    assert figures["accuracy"] == 0.5  # always coast
    assert figures["precision_at_10"] == pytest.approx((2 / 3 + 1 / 3) / 2)
    # sea 2, sky 1, boat 1, tree 1, and one more of each
    p = {"sea": 3 / 9, "sky": 2 / 9, "boat": 2 / 9, "tree": 2 / 9}
    logs = [np.log(p["sea"] * p["tree"]) / 2, np.log(p["sky"] * p["tree"]) / 2]
    assert figures["tag_perplexity"] == pytest.approx(np.exp(-np.mean(logs)))
    assert figures["word_perplexity"] == pytest.approx(figures["tag_perplexity"])  # there are only tags


def test_nearest_finds_what_a_loop_finds(parts):
    train, test = parts["train"], parts["test"]
    a, b = histograms(test), histograms(train)
    hits = []
    for row, label in zip(a, test.labels, strict=True):
        order = sorted(range(len(b)), key=lambda k: (-float(row @ b[k]), k))[:10]
        hits.append(np.mean([train.labels[k] == label for k in order]))
    assert nearest(train, test)["precision_at_10"] == pytest.approx(np.mean(hits))


def test_histograms_have_length_one(parts):
    np.testing.assert_allclose((histograms(parts["train"]) ** 2).sum(axis=1), 1)


def test_svm_tells_patterns_apart(parts):
    assert svm(parts["train"], parts["test"])["accuracy"] > 0.9


def test_perplexity_of_tags_is_that_of_a_loop(model, parts):
    test, network = parts["test"], model.estimator_
    p = tag_proba(network, Rows.of(test).without_tags())
    column = {tag: k for k, tag in enumerate(test.vocabulary.annotations)}
    losses = [np.mean([-np.log(p[row, column[tag]]) for tag in tags]) for row, tags in enumerate(test.tags)]
    assert perplexities(network, test)["tag_perplexity"] == pytest.approx(np.exp(np.mean(losses)), rel=1e-5)


def test_comparison_begins_with_the_simple_and_leaves_the_counts_alone(model, parts):
    before = parts["test"].X.copy()
    methods = compare({"small model": model}, parts["train"], parts["test"])
    assert [method.name for method in methods][-1] == "small model"
    assert [method.is_model for method in methods] == [False, False, False, True]
    assert abs(parts["test"].X - before).sum() == 0
    names = [highlight.name for highlight in highlights(methods)]
    assert names == ["Right class", "F-measure of the best 5 tags", "Same class among the 10 nearest"]
    assert highlights(methods)[0].value > highlights(methods)[0].baseline


def test_pictures_without_a_class_cannot_be_compared(tmp_path):
    (tmp_path / "metadata.csv").write_text("tags\nsea\nsky\n")
    corpus = Corpus.build(tmp_path, tmp_path / "corpus", pictures="none")
    with pytest.raises(ValueError, match="one class for every picture"):
        most_frequent(corpus, corpus)


def test_best_is_the_largest_or_the_smallest_as_the_measure_says():
    assert best_values(made_report()) == {"accuracy": 0.9, "perplexity": 400.0}


def test_measure_without_figures_has_no_best():
    report = made_report()
    for method in report.methods:
        del method.figures["perplexity"]
    assert best_values(report) == {"accuracy": 0.9}


def test_figure_that_is_not_there_is_a_dash():
    assert show(None, made_report().measures[0]) == "–"  # noqa: RUF001


def test_columns_of_a_text_table_are_aligned():
    report = made_report()
    head, *rows = text_table(report.measures, report.methods).splitlines()
    ends = [head.index("accuracy") + len("accuracy"), len(head)]
    assert all(row[: ends[0]].endswith("%") and len(row) == ends[1] for row in rows)

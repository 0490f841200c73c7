import json

import pytest

from pictopic import Corpus
from pictopic.tasks.tuning import Trial, draw_options, read_options, read_trials, table, tune


@pytest.fixture(autouse=True)
def small_network(monkeypatch):
    """The defaults of a trial, but for the width: the usual network needs seconds for each."""
    monkeypatch.setattr("pictopic.tasks.fit._LAYERS", (32, 32))


@pytest.fixture
def corpus(tmp_path):
    lines = ["tags,label", *(f"{'sea;sand' if k % 2 else 'tree;path'},{'ab'[k % 2]}" for k in range(120))]
    (tmp_path / "metadata.csv").write_text("\n".join(lines))
    return Corpus.build(tmp_path, tmp_path / "corpus", pictures="none")


def test_trials_are_the_same_for_the_same_seed_and_number():
    assert draw_options(3, 1) == draw_options(3, 1) != draw_options(4, 1) != draw_options(4, 2)


def test_the_first_trial_is_the_defaults_and_the_best_is_written_down(corpus, tmp_path):
    trials = tune(corpus, tmp_path / "tuned", minutes=1e-6, n_jobs=1)
    assert [trial.options for trial in trials] == [{}]
    assert read_options(tmp_path / "tuned" / "best.json") == {}
    assert trials[0].figures["classes"] == 1


def test_a_second_run_goes_on_with_the_next_trial(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("pictopic.tasks.tuning._SIZES", (8, (8, 8)))
    told = []
    for _ in range(2):
        tune(corpus, tmp_path / "tuned", minutes=1e-6, n_jobs=1, tell=told.append)
    assert [trial.options for trial in told] == [draw_options(0), draw_options(1)]
    assert len(list(read_trials(tmp_path / "tuned" / "trials.jsonl"))) == 2


def test_the_table_has_the_best_first():
    trials = [Trial({"dropout": 0.2}, {"classes": 0.5}, 3.0), Trial({}, {"classes": 0.9, "tags": 0.4}, 2.0)]
    lines = table(trials)
    assert lines[1].endswith("defaults")
    assert "dropout=0.2" in lines[2]
    assert "-" in lines[2]


def test_a_damaged_file_is_named_with_its_row(tmp_path):
    (tmp_path / "trials.jsonl").write_text(json.dumps(Trial({}, {}, 1.0)._asdict()) + "\n{broken\n")
    with pytest.raises(ValueError, match=r"trials\.jsonl, row 2"):
        list(read_trials(tmp_path / "trials.jsonl"))


def test_options_that_are_none_are_refused(tmp_path):
    (tmp_path / "best.json").write_text("[1]")
    with pytest.raises(ValueError, match="holds no options"):
        read_options(tmp_path / "best.json")


def test_without_tags_and_classes_the_best_trial_has_the_largest_log_likelihood():
    trials = [
        Trial({"dropout": 0.2}, {"log_likelihood_per_word": -3.4}, 3.0),
        Trial({}, {"log_likelihood_per_word": -3.1}, 2.0),
    ]
    assert [trial.score for trial in trials] == [-3.4, -3.1]
    assert "-3.100" in table(trials)[1]


def test_a_single_class_is_learnt_without_classes(tmp_path, monkeypatch):
    """There is nothing to weigh the words against: the estimator has no such option."""
    monkeypatch.setattr("pictopic.tasks.tuning._SIZES", (8,))
    (tmp_path / "metadata.csv").write_text("\n".join(["tags,label", *("sea;sand,same" for _ in range(100))]))
    corpus = Corpus.build(tmp_path, tmp_path / "corpus", pictures="none")
    for _ in range(2):  # the first trial has no options
        trials = tune(corpus, tmp_path / "tuned", minutes=1e-6, n_jobs=1)
    assert len(trials) == 2
    assert all(-1 < trial.score < 0 for trial in trials)


def test_only_checkpoints_of_trials_are_removed(corpus, tmp_path):
    for name in ("0-7", "of-somebody-else"):
        (tmp_path / "tuned" / "checkpoints" / name).mkdir(parents=True)
    tune(corpus, tmp_path / "tuned", minutes=1e-6, n_jobs=1)
    assert [path.name for path in (tmp_path / "tuned" / "checkpoints").iterdir()] == ["of-somebody-else"]

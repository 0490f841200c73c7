import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from pictopic import Checkpoint, Corpus, Rows, SupDeepDocNADE
from pictopic.models.run import Run
from pictopic.tasks.fit import (
    choose_parts,
    choose_rows,
    fit_everything,
    holds_some_out,
    known_rows,
    refit,
    rows_to_learn_from,
    usable_rows,
)


def tagged(tmp_path, lines, **options):
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "metadata.csv").write_text("\n".join(lines))
    return Corpus.build(tmp_path, tmp_path / "corpus", pictures="none", **options)


def test_labels_of_one_class_are_no_labels(tmp_path):
    assert usable_rows(tagged(tmp_path, ["tags,label", "a,x", "b,x"])).labels is None


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (np.array(["a", None], dtype=object), [True, False]),
        (np.array([[1, 0], [np.nan, np.nan]]), [True, False]),
        (np.array([[1, 0], [0, 0]]), [True, True]),
    ],
)
def test_which_rows_have_labels(labels, expected):
    assert known_rows(labels).tolist() == expected


def two_tags(tmp_path, n=90):
    """Rows of two tags; the second tells the class."""
    rng = np.random.RandomState(0)
    lines = [f"{'abcd'[rng.randint(4)]};{'xy'[k % 2]},{'ab'[k % 2]}" for k in range(n)]
    return tagged(tmp_path, ["tags,label", *lines])


FEW_PASSES = {"max_iter": 30, "n_components": 32}


def learnt(tmp_path, n=90, **options):
    corpus = two_tags(tmp_path, n)
    options = {**FEW_PASSES, **options}
    return corpus, fit_everything(corpus, kind="deep", random_state=0, n_jobs=1, verbose=0, options=options)


def test_all_rows_are_learnt_from_as_often_as_was_best(tmp_path):
    corpus, fitted = learnt(tmp_path)
    scores = fitted.estimator.history_["validation_score"]
    again = SupDeepDocNADE(**fitted.estimator.get_params())
    again.set_params(max_iter=int(np.argmax(scores)) + 1, validation_fraction=None).fit(corpus.X, corpus.labels)
    np.testing.assert_array_equal(again.parameters_["U"], fitted.estimator.parameters_["U"])


def test_what_is_told_of_held_out_rows_comes_from_a_network_that_has_not_seen_them(tmp_path):
    corpus, fitted = learnt(tmp_path)
    _, held_out = choose_parts(corpus)
    np.testing.assert_array_equal(fitted.held_out.rows, held_out)
    right = np.array(fitted.head.classes)[fitted.held_out.class_proba.argmax(axis=1)] == corpus.labels[held_out]
    assert fitted.figures["classes"] == np.mean(right)
    now = fitted.head.predict_proba(fitted.estimator.transform(Rows.of(corpus)[held_out]))
    assert not np.array_equal(now, fitted.held_out.class_proba)


def test_going_on_keeps_what_was_known_of_held_out_rows(tmp_path):
    corpus, fitted = learnt(tmp_path)
    told, figures = fitted.held_out.class_proba.copy(), dict(fitted.figures)
    before = fitted.estimator.parameters_["U"].copy()
    again = refit(fitted, corpus, passes=3)
    np.testing.assert_array_equal(again.held_out.class_proba, told)
    assert again.figures == figures
    assert not np.array_equal(again.estimator.parameters_["U"], before)
    assert (again.estimator.max_iter, again.estimator.warm_start) == (30, False)


def test_a_new_class_wants_a_new_model(tmp_path):
    _, fitted = learnt(tmp_path / "a")
    other = tagged(tmp_path / "b", ["tags,label", *(f"a;x,{'abc'[k % 3]}" for k in range(90))])
    with pytest.raises(ValueError, match="does not know the class 'c': fit a new model with pictopic fit"):
        refit(fitted, other, passes=1)


def test_a_collection_that_has_become_large_enough_is_learnt_anew(tmp_path):
    corpus, fitted = learnt(tmp_path, n=120)
    few = fit_everything(corpus[:40], kind="deep", random_state=0, n_jobs=1, verbose=0, options=FEW_PASSES)
    assert few.held_out is None
    again = refit(few, corpus, passes=1)
    np.testing.assert_array_equal(again.held_out.class_proba, fitted.held_out.class_proba)


def test_after_an_interruption_the_trial_answers(tmp_path, monkeypatch):
    scores = iter([-3.0, -1.0, -2.0])

    def impatient(theta):
        if (score := next(scores, None)) is None:
            raise KeyboardInterrupt
        return score

    monkeypatch.setattr(SupDeepDocNADE, "_validator", lambda self, *arguments: impatient)
    with pytest.warns(UserWarning, match="the model of epoch 2"):
        corpus, fitted = learnt(tmp_path)
    assert fitted.estimator.history_["validation_score"] == [-3.0, -1.0, -2.0]
    Z = fitted.estimator.transform(Rows.of(corpus)[fitted.held_out.rows])
    np.testing.assert_array_equal(fitted.head.predict_proba(Z), fitted.held_out.class_proba)


def test_a_time_limit_is_not_taken_for_an_interruption(tmp_path):
    """Training that runs out of time is followed by the training on everything."""
    now = itertools.count()  # seconds: about two for each step, of which there are ten for each pass
    corpus = two_tags(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pictopic.models.training.time.perf_counter", lambda: next(now))
        fitted = fit_everything(
            corpus, kind="deep", random_state=0, n_jobs=1, verbose=0, options=None, run=Run(max_minutes=1.0)
        )
    assert len(fitted.estimator.history_["validation_score"]) == 2
    assert fitted.estimator.best_validation_score_ is None  # nothing was held out from the final one


# ---- stopped and resumed ---------------------------------------------------------------------------------------------

STOPS = {"trial, first pass": (3, 0), "trial": (40, 0), "final": (10_000, 1), "final, later": (10_000, 40)}


def stop_after(patch, trial_steps, final_steps, error):
    """Raise an error after so many steps of the trial, or of the final training."""
    from pictopic.models.deep_training import DeepTrainer
    from pictopic.models.tree_output import TreeTrainer

    left = {"trial": trial_steps, "final": final_steps}
    for kind in (DeepTrainer, TreeTrainer):

        def stopping(self, *minibatch, learn=kind.learn):
            n = len(self.documents) if hasattr(self, "documents") else self.X.shape[0]
            stage = "final" if n == 90 else "trial"
            left[stage] -= 1
            if left[stage] < 0:
                raise error
            return learn(self, *minibatch)

        patch.setattr(kind, "learn", stopping)


def fit_with(corpus, kind, run=None):
    return fit_everything(
        corpus, kind=kind, random_state=0, n_jobs=1, verbose=0, options={"max_iter": 6, "n_components": 16}, run=run
    )


def assert_same(one, two):
    for name, array in one.estimator._get_arrays().items():
        np.testing.assert_array_equal(array, two.estimator._get_arrays()[name], err_msg=name)
    assert one.figures == two.figures
    np.testing.assert_array_equal(one.held_out.class_proba, two.held_out.class_proba)
    assert (one.head.name, one.head.scores) == (two.head.name, two.head.scores)


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("kind", ["shallow", "deep"])
def test_a_fit_that_was_killed_ends_with_the_same_model(tmp_path, monkeypatch, kind, stop):
    corpus = two_tags(tmp_path)
    run = Run(Checkpoint(tmp_path / "checkpoints", minutes=0))
    with monkeypatch.context() as patch:
        stop_after(patch, *STOPS[stop], ZeroDivisionError)
        with pytest.raises(ZeroDivisionError):
            fit_with(corpus, kind, run)
    assert_same(fit_with(corpus, kind, run), fit_with(corpus, kind))


def test_a_fit_that_has_ended_trains_nothing_again(tmp_path, monkeypatch):
    corpus = two_tags(tmp_path)
    run = Run(Checkpoint(tmp_path / "checkpoints"))
    first = fit_with(corpus, "deep", run)
    monkeypatch.setattr("pictopic.models.training._minibatches", None)
    assert_same(fit_with(corpus, "deep", run), first)


@pytest.mark.parametrize("stop", STOPS)
def test_a_fit_can_be_finished_with_the_best_model_so_far(tmp_path, monkeypatch, stop):
    corpus = two_tags(tmp_path)
    run = Run(Checkpoint(tmp_path / "checkpoints", minutes=1000), raise_on_interrupt=True)
    with monkeypatch.context() as patch:
        stop_after(patch, *STOPS[stop], KeyboardInterrupt)
        with pytest.raises(KeyboardInterrupt):
            fit_with(corpus, "deep", run)
    monkeypatch.setattr("pictopic.models.training._minibatches", None)
    fitted = fit_with(corpus, "deep", Run(run.checkpoint, finish=True))
    from_trial = fitted.estimator.best_validation_score_ is not None or stop == "trial, first pass"
    assert from_trial == (stop != "final, later")
    assert fitted.head.predict_proba(fitted.estimator.transform(Rows.of(corpus))).shape == (90, 2)


def test_without_a_checkpoint_nothing_can_be_finished(tmp_path):
    with pytest.raises(ValueError, match=r"there is no checkpoint in .*trial to finish with"):
        fit_with(two_tags(tmp_path), "deep", Run(Checkpoint(tmp_path / "checkpoints"), finish=True))


def collection(folder, n, split=lambda k: ""):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metadata.csv").write_text("\n".join(["tags,part", *(f"t{k},{split(k)}" for k in range(n))]) + "\n")
    return Corpus.build(folder, folder / "corpus", pictures="none", split_column="part")


@pytest.mark.parametrize(
    ("splits", "train", "held_out"),
    [
        (["train", "val", "test", "train"], [0, 3], [1]),
        (["train", "extra", "dev", None], [0], [2]),
        ([None, "valid", "test", "other"], [0, 3], [1]),
    ],
    ids=["usual names", "other parts beside train", "no train"],
)
def test_fit_and_pretrain_learn_from_the_same_rows_of_named_parts(splits, train, held_out):
    corpus = SimpleNamespace(splits=splits)
    for choose in (choose_parts, lambda corpus: choose_rows(corpus, 0)):
        rows, others = choose(corpus)
        assert (rows.tolist(), others.tolist()) == (train, held_out)
    assert sorted(rows_to_learn_from(corpus)) == sorted([*train, *held_out])
    assert holds_some_out(splits)


def test_rows_beside_train_are_held_out_from_neither(tmp_path):
    corpus = collection(tmp_path, 200, lambda k: "extra" if k % 2 else "train")
    for train, held_out in (choose_parts(corpus), choose_rows(corpus, 0)):
        assert all(row % 2 == 0 for row in [*train, *held_out])
        assert len(train) + len(held_out) == 100
        assert len(held_out) > 0


def test_parts_of_a_part_are_numbered_within_it(tmp_path):
    train, held_out = choose_parts(collection(tmp_path, 300)[100:])
    assert sorted([*train, *held_out]) == list(range(200))
    assert len(held_out) == 30


def test_a_small_collection_has_no_held_out_part(tmp_path):
    train, held_out = choose_parts(collection(tmp_path, 3))
    assert (len(train), len(held_out)) == (3, 0)


@pytest.mark.parametrize("splits", [["test", "test"], ["val", "test"]])
def test_nothing_to_pretrain_on_is_an_error(splits):
    with pytest.raises(ValueError, match="there is nothing to learn from"):
        choose_rows(SimpleNamespace(splits=splits), 0)

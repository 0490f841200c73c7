import numpy as np
import pytest

from pictopic import Checkpoint, DeepDocNADE, DocNADE, Run
from pictopic.tasks.fit import choose_rows, fit_everything
from pictopic.tasks.pretraining import load_pretrained, pretrain, save_pretrained
from tests.support.texts import make_texts

QUICK = {"sizes": (16, 8), "epochs": 3, "random_state": 0}


def test_it_learns_from_rows_with_and_without_classes(tmp_path):
    corpus = make_texts(tmp_path / "a")
    model = pretrain(corpus, **QUICK)
    assert model.n_components == (16, 8)
    assert len(model.history_["nll"]) == 3
    rows, held_out = choose_rows(corpus, 0)
    assert (len(rows), len(held_out)) == (108, 12)
    alike = DeepDocNADE(n_components=(16, 8), n_annotation_words=6, max_iter=3, random_state=0)
    alike.fit(corpus.X[rows], X_val=corpus.X[held_out])
    np.testing.assert_array_equal(model.components_, alike.components_)


def test_test_rows_are_not_learnt_from_and_validation_rows_are_stopped_on(tmp_path):
    corpus = make_texts(tmp_path / "a", split=True)
    rows, held_out = choose_rows(corpus, 0)
    assert {corpus.splits[row] for row in rows} == {"train"}
    assert {corpus.splits[row] for row in held_out} == {"val"}


def test_it_must_know_how_long(tmp_path):
    with pytest.raises(ValueError, match="minutes or epochs"):
        pretrain(make_texts(tmp_path / "a"))


def test_a_run_goes_on_from_its_checkpoint(tmp_path):
    corpus = make_texts(tmp_path / "a")
    run = Run(Checkpoint(tmp_path / "c", epochs=1))
    pretrain(corpus, **QUICK | {"epochs": 1}, run=run)
    longer = pretrain(corpus, **QUICK, run=run)
    np.testing.assert_array_equal(longer.components_, pretrain(corpus, **QUICK).components_)


def test_what_was_written_is_what_a_model_starts_from(tmp_path):
    corpus = make_texts(tmp_path / "a")
    model = pretrain(corpus, **QUICK)
    save_pretrained(model, corpus, tmp_path / "start")
    again = load_pretrained(tmp_path / "start", corpus)
    np.testing.assert_array_equal(again.components_, model.components_)
    options = {"learning_rate": 1e-12, "max_iter": 1, "averaging": None, "weight_decay": 0.0}
    fitted = fit_everything(corpus, kind="auto", random_state=0, n_jobs=1, verbose=0, init=again, options=options)
    np.testing.assert_allclose(fitted.estimator.components_, model.components_, atol=1e-6)
    assert fitted.estimator.classes_.tolist() == ["kind0", "kind1"]


def test_other_words_are_refused(tmp_path):
    corpus = make_texts(tmp_path / "a")
    save_pretrained(pretrain(corpus, **QUICK), corpus, tmp_path / "start")
    with pytest.raises(ValueError, match="was pretrained on other words"):
        load_pretrained(tmp_path / "start", make_texts(tmp_path / "b", words="abcdeg"))


def test_a_shallow_model_is_no_start(tmp_path):
    corpus = make_texts(tmp_path / "a")
    DocNADE(n_components=3, max_iter=1).fit(corpus.X).save(tmp_path / "start")
    with pytest.raises(ValueError, match="is a DocNADE"):
        load_pretrained(tmp_path / "start", corpus)
    with pytest.raises(ValueError, match="a shallow model cannot start"):
        fit_everything(corpus, kind="shallow", random_state=0, n_jobs=1, verbose=0, init=pretrain(corpus, **QUICK))


def test_where_there_are_classes_only_rows_with_one_are_learnt_from_again(tmp_path):
    corpus, seen = make_texts(tmp_path / "a"), []

    def fit(estimator, rows, held_out, run):
        seen.append(list(rows.labels))
        return estimator.fit(rows, X_val=held_out, run=run)

    options = {"max_iter": 1}
    init = pretrain(corpus, **QUICK)
    fit_everything(corpus, kind="auto", random_state=0, n_jobs=1, verbose=0, init=init, options=options, fit=fit)
    assert set(seen[0]) == {"kind0", "kind1"}

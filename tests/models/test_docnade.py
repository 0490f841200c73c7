import itertools
import signal
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from pictopic import DocNADE, SupDocNADE
from tests.support.processes import start as start_process
from tests.support.reference import log_p_words

OUTPUTS = ["tree", "softmax"]


# Sixty passes, at three times the rate, are enough for the accuracy that the checks ask for.
@parametrize_with_checks([
    kind(output=output, max_iter=60, learning_rate=0.001) for output in OUTPUTS for kind in (DocNADE, SupDocNADE)
])  # fmt: skip
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([DocNADE(), SupDocNADE()])
def test_scikit_learn_check_of_the_defaults(estimator, check):
    check(estimator)


def small(kind=DocNADE, **options):
    return kind(**({"n_components": 5, "max_iter": 3, "random_state": 0} | options))


# ---- likelihood ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("length", [1, 2])
def test_probabilities_of_all_sequences_sum_to_one(rng, output, length):
    model = small(output=output).fit(rng.poisson(1, (20, 7)))
    sequences = list(itertools.product(range(7), repeat=length))
    assert np.exp(model.sequence_log_likelihood(sequences)).sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
def test_sequence_log_likelihood_equals_algorithm_1(rng, output, activation):
    model = small(output=output, activation=activation).fit(rng.poisson(1, (20, 9)))
    sequences = [rng.randint(9, size=n) for n in (0, 1, 5, 30)]
    exact = [log_p_words(model._theta(), words, activation, model.tree_) for words in sequences]
    np.testing.assert_allclose(model.sequence_log_likelihood(sequences), exact, rtol=1e-5)


@pytest.mark.parametrize("output", OUTPUTS)
def test_log_likelihood_of_a_document_of_one_word_needs_no_order(rng, output):
    model = small(output=output).fit(rng.poisson(1, (20, 7)))
    single = np.eye(7, dtype=int)
    np.testing.assert_allclose(
        model.log_likelihood(single), model.sequence_log_likelihood([[w] for w in range(7)]), rtol=1e-5
    )


@pytest.mark.parametrize("output", OUTPUTS)
def test_log_likelihood_is_the_mean_over_orderings(rng, output):
    model = small(output=output, max_iter=30).fit(rng.poisson(1, (40, 5)))
    document = np.array([[1, 1, 1, 0, 0]])
    exact = np.mean(model.sequence_log_likelihood(list(itertools.permutations([0, 1, 2]))))
    assert model.log_likelihood(document, n_orderings=400)[0] == pytest.approx(exact, abs=0.02)


@pytest.mark.parametrize("output", OUTPUTS)
def test_log_likelihood_repeats_for_the_same_random_state(rng, output):
    X = rng.poisson(1, (20, 7))
    model = small(output=output).fit(X)
    np.testing.assert_array_equal(model.log_likelihood(X, random_state=3), model.log_likelihood(X, random_state=3))
    assert not np.array_equal(model.log_likelihood(X, random_state=3), model.log_likelihood(X, random_state=4))


def test_perplexity_per_document_and_per_word_follow_their_definitions(rng):
    X = rng.poisson(1, (20, 7)) + np.eye(20, 7, dtype=int)
    X[:, 0] += 1
    model = small().fit(X)
    log_p, lengths = model.log_likelihood(X, random_state=1), X.sum(axis=1)
    assert model.perplexity(X, random_state=1) == pytest.approx(np.exp(-np.mean(log_p / lengths)))
    assert model.perplexity(X, per="word", random_state=1) == pytest.approx(np.exp(-log_p.sum() / lengths.sum()))


def test_perplexity_leaves_out_empty_documents_and_counts_them(rng):
    X = rng.poisson(1, (20, 7)) + 1
    model = small().fit(X)
    with_empty = np.vstack([X, np.zeros((3, 7), int)])
    with pytest.warns(UserWarning, match="leaves out 3 of 23 documents"):
        found = model.perplexity(with_empty, n_orderings=50)
    assert found == pytest.approx(model.perplexity(X, n_orderings=50), rel=0.01)


def test_score_is_the_mean_log_likelihood_a_word(rng):
    X = rng.poisson(1, (20, 7)) + 1
    model = small().fit(X)
    assert model.score(X) == pytest.approx(model.log_likelihood(X).sum() / X.sum())


@pytest.mark.parametrize("output", OUTPUTS)
def test_next_word_probabilities_sum_to_one(rng, output):
    X = rng.poisson(1, (300, 7))
    p = small(output=output).fit(X).next_word_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("output", OUTPUTS)
def test_next_word_probability_continues_the_sequence(rng, output):
    model = small(output=output).fit(rng.poisson(1, (20, 7)))
    p = model.next_word_proba([[1, 0, 2, 0, 0, 0, 0]])[0]
    before, after = model.sequence_log_likelihood([[0, 2, 2], [0, 2, 2, 5]])
    assert p[5] == pytest.approx(np.exp(after - before), rel=1e-4)


@pytest.mark.parametrize("output", OUTPUTS)
def test_next_word_probabilities_of_some_columns_are_those_of_all(rng, output):
    X = rng.poisson(1, (20, 7))
    model = small(output=output).fit(X)
    np.testing.assert_allclose(model.next_word_proba(X, columns=[5, 2]), model.next_word_proba(X)[:, [5, 2]], rtol=1e-6)


def test_next_word_probabilities_of_some_columns_need_their_paths_only(rng, monkeypatch):
    X = rng.poisson(1, (20, 64))
    model = small().fit(X)
    nodes, _ = model.tree_.paths([5])
    others = np.setdiff1d(np.arange(63), nodes)
    model.output_coef_[others] = np.nan
    assert np.isfinite(model.next_word_proba(X, columns=[5])).all()


# ---- learning --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("solver", ["adam", "sgd"])
def test_learns_words_that_go_together(topics, output, solver):
    X, _ = topics
    model = DocNADE(n_components=10, output=output, solver=solver, dropout=0.0, random_state=0).fit(X)
    frequency = np.exp(-np.log(X.sum(axis=0) / X.sum()) @ X.sum(axis=0) / X.sum())
    assert model.perplexity(X, per="word", n_orderings=5) < 0.75 * frequency


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("batch_size", [1, "auto"])
def test_learns_classes(topics, output, batch_size):
    X, y = topics
    solver = "sgd" if batch_size == 1 else "adam"
    model = SupDocNADE(
        n_components=10, output=output, solver=solver, batch_size=batch_size, random_state=0, max_iter=60
    )
    assert model.fit(X[:60], y[:60]).score(X[60:], y[60:]) > 0.9


@pytest.mark.parametrize("output", OUTPUTS)
def test_learns_several_classes_a_document(topics, output):
    X, y = topics
    Y = np.column_stack([y, 1 - y, np.ones_like(y)])
    model = SupDocNADE(n_components=10, output=output, random_state=0).fit(X, Y)
    assert model.predict_proba(X).shape == (80, 3)
    assert (model.predict(X) == Y).mean() > 0.95


def test_unlabelled_documents_teach_their_words(topics):
    X, y = topics
    labels = np.where(np.arange(80) < 10, y, np.nan)
    few = SupDocNADE(n_components=10, random_state=0, validation_fraction=None, max_iter=60)
    with_others = clone(few).fit(X, labels)
    alone = clone(few).fit(X[:10], y[:10])
    assert with_others.perplexity(X[40:]) < alone.perplexity(X[40:])


def test_generative_weight_zero_leaves_the_words_alone(topics):
    X, y = topics
    model = small(SupDocNADE, generative_weight=0).fit(X, y)
    start = small(SupDocNADE, generative_weight=0, max_iter=1, learning_rate=1e-12, averaging=None).fit(X, y)
    np.testing.assert_allclose(model.output_coef_, start.output_coef_, atol=1e-9)
    assert np.abs(model.coef_ - start.coef_).max() > 1e-4


@pytest.mark.parametrize("output", OUTPUTS)
def test_bias_starts_at_the_words_frequencies(rng, output):
    X = rng.poisson(np.arange(1, 8), (200, 7))
    model = small(output=output, max_iter=1, learning_rate=1e-12, averaging=None, validation_fraction=None).fit(X)
    model.output_coef_[:] = 0
    expected = (X.sum(axis=0) + 1) / (X.sum(axis=0) + 1).sum()
    np.testing.assert_allclose(model.next_word_proba(X[:1])[0], expected, rtol=1e-4)


@pytest.mark.parametrize("kind", [DocNADE, SupDocNADE])
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_same_random_state_gives_the_same_model_bit_for_bit(topics, kind, output, n_jobs):
    X, y = topics
    first, second = (small(kind, output=output, n_jobs=n_jobs).fit(X, y) for _ in range(2))
    for name, array in vars(first._theta()).items():
        assert np.array_equal(array, getattr(second._theta(), name)), name
    assert first.history_["nll"] == second.history_["nll"]


def test_one_row_of_transform_equals_that_row_of_a_batch(rng):
    X = rng.poisson(1, (50, 30))
    model = small(n_components=37).fit(X)
    batch = model.transform(X)
    alone = np.vstack([model.transform(X[i : i + 1]) for i in range(50)])
    np.testing.assert_allclose(alone, batch, atol=1e-6)
    assert batch.dtype == np.float32


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
def test_transform_is_the_hidden_layer_of_all_words(rng, activation):
    X = rng.poisson(1, (50, 30))
    model = small(activation=activation).fit(X)
    act = X @ model.components_.T.astype(float) + model.hidden_intercept_
    g = {"relu": lambda a: np.maximum(a, 0), "tanh": np.tanh, "sigmoid": lambda a: 1 / (1 + np.exp(-a))}
    np.testing.assert_allclose(model.transform(sparse.csr_matrix(X)), g[activation](act), atol=1e-5)


def test_early_stopping_keeps_the_best_parameters(topics):
    X, y = topics
    model = SupDocNADE(n_components=10, random_state=0, n_iter_no_change=3, learning_rate=0.1, max_iter=500)
    model.fit(X[:60], y[:60], X_val=X[60:], y_val=y[60:])
    scores = model.history_["validation_score"]
    assert model.n_iter_ == len(scores) < 500
    assert model.best_validation_score_ == max(scores) > scores[-1]
    p = model.predict_proba(X[60:])[np.arange(20), y[60:]]
    assert np.log(p).mean() == pytest.approx(max(scores), rel=1e-5)


def test_without_validation_fraction_nothing_is_held_out(topics):
    X, y = topics
    model = small(SupDocNADE, max_iter=1, validation_fraction=0.25).fit(X, y)
    assert len(model.history_["validation_score"]) == 1
    without = small(SupDocNADE, max_iter=1, validation_fraction=None).fit(X, y)
    assert without.history_["validation_score"] == []
    assert without.best_validation_score_ is None


def test_warm_start_goes_on_from_the_last_fit(topics):
    X, _ = topics
    options = {"validation_fraction": None, "n_components": 5, "random_state": 0}
    model = DocNADE(max_iter=5, warm_start=True, **options).fit(X)
    first = model.history_["nll"][0]
    model.fit(X)
    assert model.history_["nll"][0] < first


def test_warm_start_refuses_another_number_of_words(topics):
    X, _ = topics
    model = small(warm_start=True).fit(X)
    with pytest.raises(ValueError, match="warm_start"):
        model.fit(X[:, :6])


@pytest.mark.parametrize("output", OUTPUTS)
def test_partial_fit_learns_from_parts(topics, output):
    X, y = topics
    model = SupDocNADE(n_components=10, output=output, random_state=0, batch_size=8)
    for _ in range(40):
        for start in range(0, 80, 20):
            model.partial_fit(X[start : start + 20], y[start : start + 20], classes=[0, 1])
    assert model.score(X, y) > 0.9
    assert model.n_iter_ == 160


@pytest.mark.parametrize("output", OUTPUTS)
def test_partial_fit_on_everything_equals_fit_for_one_pass(topics, output):
    X, _ = topics
    options = {"n_components": 5, "output": output, "random_state": 0, "batch_size": 16}
    options |= {"validation_fraction": None, "smoothing": 0}
    once = DocNADE(**options).partial_fit(X)
    fitted = DocNADE(max_iter=1, **options).fit(X)
    for name, array in vars(fitted._theta()).items():
        np.testing.assert_array_equal(array, getattr(once._theta(), name), err_msg=name)


def test_interrupt_keeps_the_best_model_so_far(topics, monkeypatch):
    from pictopic.models.tree_output import TreeTrainer

    X, _ = topics
    learn = TreeTrainer.learn
    calls = itertools.count()

    def interrupted(self, documents, seed):
        if next(calls) == 70:
            raise KeyboardInterrupt
        return learn(self, documents, seed)

    monkeypatch.setattr(TreeTrainer, "learn", interrupted)
    with pytest.warns(UserWarning, match="interrupted: keeping the model of epoch"):
        model = DocNADE(n_components=5, random_state=0).fit(X)
    assert model.best_validation_score_ == max(model.history_["validation_score"])
    assert np.isfinite(model.perplexity(X))


_FIT_FOR_LONG = """
import numpy as np, pictopic
X = np.random.RandomState(0).poisson(0.5, (400, 300))
model = pictopic.DocNADE(max_iter=100_000, n_iter_no_change=100_000, random_state=0, verbose=2).fit(X)
print(model.perplexity(X), model.n_iter_)
"""


@pytest.mark.slow
def test_ctrl_c_ends_training_with_a_usable_model():
    process = start_process([sys.executable, "-c", _FIT_FOR_LONG])
    for _ in range(3):
        assert "epoch" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "keeping the model of epoch" in err
    perplexity, n_iter = out.split()
    assert 1 < float(perplexity) < 400
    assert 3 <= int(n_iter) < 100_000


def test_progress_bar_shows_the_epochs(topics, capsys):
    X, _ = topics
    small(verbose=1).fit(X)
    assert "3/3" in capsys.readouterr().err
    small(verbose=2).fit(X)
    assert "epoch 3" in capsys.readouterr().err


def test_history_can_be_plotted_as_a_table(topics):
    import pandas as pd

    X, y = topics
    table = pd.DataFrame(small(SupDocNADE).fit(X, y).history_)
    assert table.columns.tolist() == ["nll", "class_loss", "validation_score", "seconds"]
    assert len(table) == 3


# ---- annotation words ------------------------------------------------------------------------------------------------


@pytest.fixture
def tagged(rng):
    """Pictures of about a hundred visual words, and one tag that these tell."""
    kind = rng.randint(2, size=120)
    visual = rng.poisson(np.where(kind[:, None] == [0, 0, 1, 1], 40, 10))
    return np.hstack([visual, np.eye(2, dtype=int)[kind]]), kind


def test_a_balanced_annotation_weight_is_the_ratio_of_the_words(tagged):
    X, _ = tagged
    model = small(n_annotation_words=2, validation_fraction=None).fit(X)
    assert model.annotation_weight_ == pytest.approx(X[:, :4].sum() / X[:, 4:].sum())
    assert small().fit(X).annotation_weight_ == 1.0
    assert small(n_annotation_words=2, annotation_weight=7).fit(X).annotation_weight_ == 7.0


@pytest.mark.parametrize("output", OUTPUTS)
def test_the_annotation_weight_teaches_tags_and_leaves_the_likelihood_alone(tagged, output):
    X, kind = tagged
    pictures = X * [1, 1, 1, 1, 0, 0]
    models = {
        weight: small(
            output=output, n_annotation_words=2, annotation_weight=weight, max_iter=8, validation_fraction=None
        ).fit(X)
        for weight in (1.0, "balanced")
    }
    shares = {}
    for weight, model in models.items():
        p = model.next_word_proba(pictures, columns=[4, 5]).astype(float)
        shares[weight] = (p[np.arange(len(kind)), kind] / p.sum(axis=1)).mean()
    assert shares["balanced"] > shares[1.0] + 0.1
    # log p(v) is that of the words as they are: of a sequence, the sum of the logarithms of its words' probabilities.
    model = models["balanced"]
    p_tag = model.next_word_proba([[1, 0, 0, 0, 0, 0]], columns=[4])[0, 0]
    (longer,), (shorter,) = model.sequence_log_likelihood([[0, 4]]), model.sequence_log_likelihood([[0]])
    assert longer - shorter == pytest.approx(np.log(p_tag), rel=1e-4)


# ---- scikit-learn ----------------------------------------------------------------------------------------------------


def test_works_in_a_pipeline_with_grid_search(topics):
    X, y = topics
    pipeline = make_pipeline(small(max_iter=20), LogisticRegression())
    search = GridSearchCV(pipeline, {"docnade__n_components": [2, 8]}, cv=2).fit(sparse.csr_array(X), y)
    assert search.best_score_ > 0.8


def test_grid_search_over_generative_weight(topics):
    X, y = topics
    search = GridSearchCV(small(SupDocNADE, max_iter=20), {"generative_weight": [0, 1.0]}, cv=2).fit(X, y)
    assert set(search.cv_results_["param_generative_weight"]) == {0, 1.0}


def test_feature_names_out_carry_the_class_name(topics):
    X, _ = topics
    assert small().fit(X).get_feature_names_out().tolist() == [f"docnade{i}" for i in range(5)]


# ---- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "X", "y", "message"),
    [
        ({}, np.zeros((4, 3)), [0, 1, 0, 1], "every row is empty"),
        ({}, np.ones((4, 3)), [1, 1, 1, 1], r"at least two classes.*1 class: \[1\]"),
        ({}, np.ones((0, 3)), [], "0 sample"),
        ({}, np.ones((4, 3)), [0, 1], "4 rows, but y has 2"),
        ({"n_annotation_words": 4}, np.ones((4, 3)), [0, 1, 0, 1], "n_annotation_words=4"),
        ({"device": "cuda"}, np.ones((4, 3)), [0, 1, 0, 1], "device"),
        ({"dropout": 1.0}, np.ones((4, 3)), [0, 1, 0, 1], "'dropout' parameter"),
        ({"output": "forest"}, np.ones((4, 3)), [0, 1, 0, 1], "'output' parameter"),
        ({"n_components": 2.5}, np.ones((4, 3)), [0, 1, 0, 1], "'n_components' parameter"),
        ({"generative_weight": -1}, np.ones((4, 3)), [0, 1, 0, 1], "'generative_weight' parameter"),
    ],
)
def test_bad_input_is_refused_with_its_reason(options, X, y, message):
    with pytest.raises(ValueError, match=message):
        SupDocNADE(**options).fit(X, y)


def test_wrong_width_is_refused(topics):
    X, _ = topics
    with pytest.raises(ValueError, match="expecting 12 features"):
        small().fit(X).transform(X[:, :5])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.sequence_log_likelihood([[0], [12]]), "sequence 1 has a word id outside"),
        (lambda m: m.sequence_log_likelihood([[0.5]]), "sequence 0 must be a list of word ids"),
        (lambda m: m.perplexity(np.ones((1, 12)), per="page"), "per must be"),
        (lambda m: m.perplexity(np.zeros((1, 12))), "every row is empty"),
        (lambda m: m.next_word_proba(np.ones((1, 12)), columns=[12]), "columns must lie in"),
        (lambda m: m.log_likelihood(np.ones((1, 12)), n_orderings=0), "n_orderings"),
    ],
)
def test_wrong_question_is_refused(topics, call, message):
    model = small().fit(topics[0])
    with pytest.raises(ValueError, match=message):
        call(model)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_learning_rate_that_diverges_is_said(topics):
    X, y = topics
    model = SupDocNADE(n_components=5, solver="sgd", batch_size=1, activation="relu", learning_rate=1e38)
    with pytest.raises(FloatingPointError, match="smaller learning_rate"):
        model.fit(X, y)


counts = st.integers(1, 9).flatmap(
    lambda width: st.lists(
        st.lists(st.sampled_from([0, 0, 0, 1, 1, 2, 30]), min_size=width, max_size=width), min_size=1, max_size=6
    )
)


@settings(max_examples=40, deadline=None)
@given(rows=counts.filter(lambda rows: any(map(any, rows))), output=st.sampled_from(OUTPUTS))
def test_any_corpus_can_be_fitted_and_judged(rows, output):
    X = np.array(rows)
    model = DocNADE(n_components=3, output=output, max_iter=2, random_state=0, batch_size=2).fit(X)
    log_p = model.log_likelihood(X)
    assert (log_p <= 1e-6).all()
    assert (log_p[X.sum(axis=1) == 0] == 0).all()
    np.testing.assert_allclose(model.next_word_proba(X).sum(axis=1), 1, atol=1e-5)

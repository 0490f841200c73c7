import itertools

import numpy as np
import pytest

from pictopic import DeepDocNADE, DocNADE
from tests.support.small_deep import fitted, small


@pytest.mark.parametrize("normalize", ["std", "sqrt", "none"])
@pytest.mark.parametrize("output", ["softmax", "tree"])
def test_probabilities_of_all_sequences_sum_to_one(topics, output, normalize):
    model = fitted(topics, output=output, normalize=normalize)
    sequences = list(itertools.product(range(12), repeat=2))
    assert np.exp(model.sequence_log_likelihood(sequences)).sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
def test_one_layer_without_normalisation_is_docnade(rng, topics, activation):
    shallow = small(DocNADE, n_components=5, output="softmax", activation=activation).fit(topics[0])
    deep = small(n_components=5, normalize="none", activation=activation, max_iter=1).fit(topics[0])
    deep.parameters_ |= {
        "W.0": shallow.components_.copy(), "c.0": shallow.hidden_intercept_, "V": shallow.output_coef_,
        "b": shallow.output_intercept_,
    }  # fmt: skip
    sequences = [rng.randint(12, size=n) for n in (0, 1, 5, 40)]
    np.testing.assert_allclose(
        deep.sequence_log_likelihood(sequences), shallow.sequence_log_likelihood(sequences), rtol=1e-5
    )
    np.testing.assert_allclose(deep.transform(topics[0]), shallow.transform(topics[0]), atol=1e-5)


@pytest.mark.parametrize("n_positions", [None, 2])
def test_log_likelihood_is_the_mean_over_orderings(topics, n_positions):
    model = fitted(topics, max_iter=30)
    document = np.eye(12, dtype=int)[[0, 0, 1, 7]].sum(axis=0, keepdims=True)
    exact = np.mean(model.sequence_log_likelihood(list(itertools.permutations([0, 0, 1, 7]))))
    found = model.log_likelihood(document, n_orderings=3000, n_positions=n_positions)[0]
    assert found == pytest.approx(exact, abs=0.03)


def test_sampled_positions_are_not_needed_for_short_documents(topics):
    model = fitted(topics)
    X = topics[0]
    np.testing.assert_array_equal(model.log_likelihood(X, n_positions=1000), model.log_likelihood(X))


def test_sampled_positions_change_the_likelihood_of_long_documents_only(topics):
    model = fitted(topics)
    X = np.vstack([np.eye(12, dtype=int)[:3], topics[0][:5] + 1])
    exact, sampled = model.log_likelihood(X), model.log_likelihood(X, n_positions=3)
    np.testing.assert_allclose(exact[:3], sampled[:3], rtol=1e-6)
    assert not np.isclose(exact[3:], sampled[3:]).any()


def test_annotation_weight_does_not_weigh_what_is_predicted(topics):
    """A context without annotation words is not changed by their weight: neither is what follows from it."""
    options = {"n_annotation_words": 6, "normalize": "std"}
    light = fitted(topics, annotation_weight=1.0, **options)
    heavy = fitted(topics, annotation_weight=50.0, **options)
    heavy.parameters_ = light.parameters_
    sequences = [[0], [7], [1, 2, 8]]
    np.testing.assert_allclose(heavy.sequence_log_likelihood(sequences), light.sequence_log_likelihood(sequences))


class FromZero(DeepDocNADE):
    """Biases that do not start at the frequencies."""

    _zero_biases = True


def test_empty_context_learns_the_frequencies_of_the_words():
    X = np.tile([[3, 1, 0], [1, 1, 2]], (40, 1))
    model = small(FromZero, max_iter=400, validation_fraction=None, dropout=0.0, learning_rate=0.003).fit(X)
    p = model.next_word_proba([[0, 0, 0]])[0]
    np.testing.assert_allclose(p, X.sum(axis=0) / X.sum(), atol=0.03)


def test_next_word_probability_continues_the_sequence(topics):
    model = fitted(topics, n_annotation_words=4, annotation_weight=3.0)
    p = model.next_word_proba(np.eye(12, dtype=int)[[0, 2, 9]].sum(axis=0, keepdims=True))[0]
    before, after = model.sequence_log_likelihood([[0, 2, 9], [0, 2, 9, 5]])
    assert p[5] == pytest.approx(np.exp(after - before), rel=1e-4)
    assert p.sum() == pytest.approx(1, abs=1e-5)


def test_next_word_probabilities_of_some_columns_are_those_of_all(topics):
    model = fitted(topics)
    X = topics[0]
    np.testing.assert_array_equal(model.next_word_proba(X, columns=[5, 2]), model.next_word_proba(X)[:, [5, 2]])


def test_perplexity_follows_its_definitions(topics):
    model, X = fitted(topics), topics[0] + 1
    log_p, lengths = model.log_likelihood(X, random_state=1), X.sum(axis=1)
    assert model.perplexity(X, random_state=1) == pytest.approx(np.exp(-np.mean(log_p / lengths)))
    assert model.perplexity(X, per="word", random_state=1) == pytest.approx(np.exp(-log_p.sum() / lengths.sum()))


def test_score_of_short_documents_is_the_mean_log_likelihood_a_word(topics):
    model, X = fitted(topics), topics[0]
    assert model.score(X) == pytest.approx(model.log_likelihood(X).sum() / X.sum())


def test_score_modality_is_the_likelihood_of_both_less_that_of_the_context(topics):
    model = fitted(topics, n_annotation_words=4, annotation_weight=3.0)
    context, target = np.eye(12, dtype=int)[[0, 2]].sum(axis=0), np.eye(12, dtype=int)[9]
    before, after = model.sequence_log_likelihood([[0, 2], [0, 2, 9]])
    assert model.score_modality(context[None], target[None])[0] == pytest.approx(after - before, rel=1e-4)


def test_score_modality_of_several_words_is_a_mean_over_their_orders(topics):
    model = fitted(topics)
    context, target = np.eye(12, dtype=int)[[0, 2]].sum(axis=0), np.eye(12, dtype=int)[[9, 1]].sum(axis=0)
    before, one, other = model.sequence_log_likelihood([[0, 2], [0, 2, 9, 1], [0, 2, 1, 9]])
    found = model.score_modality(context[None], target[None], n_orderings=2000)[0]
    assert found == pytest.approx((one + other) / 2 - before, abs=0.01)


def test_score_modality_pairs_a_single_row_with_all(topics):
    model, X = fitted(topics), topics[0]
    target = np.eye(12, dtype=int)[[3]]
    expected = model.score_modality(X, np.repeat(target, len(X), axis=0))
    np.testing.assert_allclose(model.score_modality(X, target), expected, rtol=1e-6)
    with pytest.raises(ValueError, match="X_context has 80 rows, but X_target has 2"):
        model.score_modality(X, X[:2])

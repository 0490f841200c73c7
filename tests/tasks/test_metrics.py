import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import (
    accuracy_score,
    auc,
    average_precision_score,
    precision_recall_curve,
    precision_score,
    recall_score,
)

from pictopic.tasks import metrics, topics
from pictopic.tasks.metrics import (
    accuracy,
    average_precision,
    f_measure_at_k,
    mean_average_precision,
    per_word_scores,
    perplexity,
    precision_at_k,
    retrieval_precision,
)


def test_precision_equals_a_plain_loop(rng):
    queries, collection = rng.normal(size=(30, 5)), rng.normal(size=(101, 5))
    query_labels, labels = rng.randint(3, size=30), rng.randint(3, size=101)
    shares = []
    for query, label in zip(queries, query_labels, strict=True):
        cosine = [query @ d / np.linalg.norm(query) / np.linalg.norm(d) for d in collection]
        nearest = np.argsort(cosine)[::-1][:10]
        shares.append(np.mean(labels[nearest] == label))
    found = retrieval_precision(queries, query_labels, collection, labels, fraction=0.1, batch_size=7)
    assert found == pytest.approx(np.mean(shares))


def test_at_least_one_neighbour_counts(rng):
    collection = rng.normal(size=(10, 4))
    assert retrieval_precision(collection, range(10), collection, range(10), fraction=0.001) == 1


@pytest.mark.parametrize("fraction", [0, 1.5])
def test_fraction_outside_its_range_is_refused(rng, fraction):
    with pytest.raises(ValueError, match="fraction"):
        retrieval_precision(np.ones((1, 2)), [0], np.ones((1, 2)), [0], fraction=fraction)


tags = st.lists(st.sampled_from("abcdef"), max_size=6)
pictures = st.lists(st.tuples(tags, tags), min_size=1, max_size=8)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1))
def test_accuracy_equals_scikit_learn(pairs):
    y_true, y_pred = zip(*pairs, strict=True)
    assert accuracy(y_true, y_pred) == pytest.approx(accuracy_score(y_true, y_pred))


def test_accuracy_of_several_classes_wants_all_of_a_row_right(rng):
    Y, predicted = rng.randint(2, size=(2, 50, 2))
    assert accuracy(Y, predicted) == pytest.approx(accuracy_score(Y, predicted))


@given(pictures, st.integers(1, 7))
def test_f_measure_equals_a_plain_loop(pairs, k):
    true, ranked = zip(*pairs, strict=True)
    scores = []
    for own, order in pairs:
        if not own:
            continue
        first = []
        for tag in order:
            if tag not in first and len(first) < k:
                first.append(tag)
        right = len([tag for tag in first if tag in own])
        precision, recall = right / len(first) if first else 0, right / len(set(own))
        scores.append(2 * precision * recall / (precision + recall) if right else 0)
    if scores:
        assert f_measure_at_k(true, ranked, k) == pytest.approx(np.mean(scores))
    else:
        with pytest.raises(ValueError, match="no picture has a true tag"):
            f_measure_at_k(true, ranked, k)


def test_f_measure_of_the_papers_five_tags():
    # Two of five are right, of four: precision 0.4, recall 0.5.
    assert f_measure_at_k([list("abcd")], [list("axbyzcd")]) == pytest.approx(2 * 0.4 * 0.5 / 0.9)


@given(pictures, st.sets(st.sampled_from("abcdefg")))
def test_word_scores_equal_scikit_learn(pairs, words):
    true, predicted = zip(*pairs, strict=True)
    counted = sorted(words & set().union(*true))
    if not counted:
        with pytest.raises(ValueError, match="no picture has one of the words"):
            per_word_scores(true, predicted, words)
        return
    Y, P = (np.array([[word in own for word in counted] for own in rows], int) for rows in (true, predicted))
    scores = per_word_scores(true, predicted, words)
    options = {"average": None, "zero_division": 0}
    recall = recall_score(Y, P, **options) if len(counted) > 1 else [recall_score(Y, P, zero_division=0)]
    precision = precision_score(Y, P, **options) if len(counted) > 1 else [precision_score(Y, P, zero_division=0)]
    assert scores.precision == pytest.approx(np.mean(precision))
    assert scores.recall == pytest.approx(np.mean(recall))
    assert scores.n_plus == np.sum(np.array(recall) > 0)
    assert scores.f1 == pytest.approx(2 * scores.precision * scores.recall / max(sum(scores[:2]), 1e-9))


def test_all_words_that_occur_count_unless_some_are_named():
    true, predicted = [["a", "b"], ["c"]], [["a"], ["a", "d"]]
    assert per_word_scores(true, predicted) == per_word_scores(true, predicted, ["c", "b", "a", "d", "a"])


scored = st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=1, max_size=30).filter(
    lambda rows: any(y for y, _ in rows)
)


@given(scored)
def test_average_precision_equals_scikit_learn(rows):
    y, scores = np.array([y for y, _ in rows]), np.array([s for _, s in rows], float)
    assert average_precision(y, scores) == pytest.approx(average_precision_score(y, scores))
    precision, recall, _ = precision_recall_curve(y, scores)
    assert average_precision(y, scores, method="trapezoid") == pytest.approx(auc(recall, precision))


def test_mean_average_precision_leaves_out_classes_that_do_not_occur(rng):
    Y, scores = rng.randint(2, size=(40, 5)), rng.normal(size=(40, 5))
    Y[:, 2] = 0
    found = [average_precision_score(Y[:, c], scores[:, c]) for c in (0, 1, 3, 4)]
    assert mean_average_precision(Y, scores) == pytest.approx(np.mean(found))
    assert mean_average_precision(Y, scores, "trapezoid") != mean_average_precision(Y, scores)


@given(st.data(), st.integers(1, 12), st.booleans())
def test_precision_at_k_equals_a_plain_loop(data, k, one_for_all):
    n, m, q = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 8)), data.draw(st.integers(1, 3))
    relevant = data.draw(arrays(bool, (1 if one_for_all else q, n)))
    ranking = data.draw(arrays(np.int64, (q, m), elements=st.integers(-1, n - 1)))
    shares = [sum(row >= 0 and relevant[0 if one_for_all else i, row] for row in ranking[i][:k]) / k for i in range(q)]
    assert precision_at_k(relevant[0] if one_for_all else relevant, ranking, k) == pytest.approx(np.mean(shares))


@given(st.lists(st.tuples(st.floats(-50, 0), st.integers(1, 9)), min_size=1, max_size=9))
def test_perplexity_equals_a_plain_loop(documents):
    log_likelihoods, lengths = zip(*documents, strict=True)
    each = [-value / length for value, length in documents]
    assert perplexity(log_likelihoods, lengths) == pytest.approx(np.exp(sum(each) / len(each)))
    assert perplexity(log_likelihoods, lengths, "word") == pytest.approx(np.exp(-sum(log_likelihoods) / sum(lengths)))


def test_empty_documents_do_not_change_perplexity():
    with pytest.warns(UserWarning, match="leaves out 1 of 3 documents"):
        assert perplexity([-3.0, -5.0, -7.0], [2, 0, 1], per="word") == pytest.approx(np.exp(10 / 3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: accuracy([1, 2], [1]), "differ in shape"),
        (lambda: accuracy([], []), "no picture"),
        (lambda: f_measure_at_k([["a"]], []), "of 1 pictures, but predicted ones of 0"),
        (lambda: f_measure_at_k(["sea"], [["sea"]]), "a text in place of a list"),
        (lambda: f_measure_at_k([["a"]], [["a"]], k=0), "k must be at least 1"),
        (lambda: average_precision([0, 0], [1, 2]), "no y_true is 1"),
        (lambda: average_precision([0, 1], [1, np.nan]), "NaN"),
        (lambda: average_precision([0, 2], [1, 2]), "0 and 1"),
        (lambda: average_precision([0, 1], [1, 2, 3]), "one length"),
        (lambda: average_precision([0, 1], [1, 2], method="interpolated"), "method"),
        (lambda: mean_average_precision([[0, 0]], [[1, 2]]), "no picture is of any class"),
        (lambda: mean_average_precision([[0, 1]], [[1]]), "one shape"),
        (lambda: precision_at_k([True], [1]), "row numbers below 1"),
        (lambda: precision_at_k([True], [0.5]), "row numbers"),
        (lambda: precision_at_k([True], []), "empty"),
        (lambda: precision_at_k([[True]] * 2, [[0]] * 3), "2 rows, but ranking 3"),
        (lambda: perplexity([-1.0], [1, 2]), "one length"),
        (lambda: perplexity([-np.inf], [1]), "finite"),
        (lambda: perplexity([0.0], [0]), "no words"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_measures_of_topics_are_here_too():
    assert metrics.npmi_coherence is topics.npmi_coherence
    assert set(metrics.__all__) <= set(vars(metrics))


def test_scores_of_words_are_the_same_to_the_bit_in_whatever_order_the_words_come(rng):
    words = [f"word{k}" for k in range(40)]
    true = [rng.permutation(words)[:5].tolist() for _ in range(60)]
    predicted = [rng.permutation(words)[:5].tolist() for _ in range(60)]
    scores = {per_word_scores(true, predicted, rng.permutation(words).tolist()) for _ in range(20)}
    assert len(scores) == 1

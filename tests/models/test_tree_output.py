import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from pictopic.kernels.elementary import next_random, shuffle
from pictopic.models import tree_output
from pictopic.models.inputs import Labels
from pictopic.models.parameters import ADAM_BETAS
from pictopic.models.tree import WordTree
from tests.support.options import make_options
from tests.support.reference import algorithm_2_as_printed, autograd, log_p_words, random_theta


def make_trainer(rng, n_words=37, n_hidden=20, n_documents=6, rate=0.6, labelled=True, scale=0.4, **changes):
    options = make_options(**changes)
    X = sparse.csr_array(rng.poisson(rate, (n_documents, n_words)))
    theta = random_theta(rng, n_words, n_hidden, n_words - 1, 3, scale)
    indicator = np.eye(3, dtype=np.uint8)[rng.randint(3, size=n_documents)]
    if options.multi_label:
        indicator = rng.randint(2, size=(n_documents, 3)).astype(np.uint8)
    known = np.full(n_documents, labelled)
    known[1::3] = False
    tree = WordTree(n_words, rng)
    return tree_output.TreeTrainer(theta, tree, X, Labels(indicator, known), options), theta


def test_a_document_too_long_for_the_memory_is_named(rng, monkeypatch):
    def no_memory(*_):
        raise MemoryError

    monkeypatch.setattr(tree_output.learning, "make_scratch", no_memory)
    with pytest.raises(ValueError, match=r"row \d has \d+ words: too many for the memory"):
        make_trainer(rng)


def orders_of(trainer, seed):
    """The documents' words in the order in which the trainer visits them."""
    documents = []
    for d in range(trainer.X.shape[0]):
        part = slice(trainer.X.indptr[d], trainer.X.indptr[d + 1])
        leaves = np.repeat(trainer.X.indices[part], trainer.X.data[part])
        _, state = next_random(np.uint64(seed) ^ np.uint64(d))
        order = np.empty(len(leaves), np.int64)
        shuffle(order, len(leaves), np.uint64(state))
        documents.append(trainer.tree.word_of_leaf[leaves[order]])
    return documents


def gradients_of(trainer, seed):
    documents = np.arange(trainer.X.shape[0])
    out = trainer._gradient(0)
    trainer._run(0, documents, seed, out, 1 / len(documents))
    return tree_output.unpack(out, trainer.tree, trainer.n_hidden)


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
@pytest.mark.parametrize("generative", [0, 1e-3, 1])
@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("multi_label", [True, False])
def test_gradients_equal_autograd(rng, activation, generative, labelled, multi_label):
    trainer, theta = make_trainer(
        rng, activation=activation, generative=generative, labelled=labelled, multi_label=multi_label
    )
    ours = gradients_of(trainer, seed=5)
    _, exact = autograd(theta, orders_of(trainer, 5), trainer.labels, generative, multi_label, activation, trainer.tree)
    for name, gradient in exact.items():
        size = max(np.abs(gradient).max(initial=0), 1e-8)
        np.testing.assert_allclose(getattr(ours, name) / size, gradient / size, atol=1e-5, err_msg=name)


def test_gradients_with_weighted_annotation_words_equal_autograd(rng):
    trainer, theta = make_trainer(rng, annotation_weight=30.0, n_annotation_words=5)
    weights = np.array([1.0] * 32 + [30.0] * 5)
    ours = gradients_of(trainer, seed=5)
    _, exact = autograd(theta, orders_of(trainer, 5), trainer.labels, 0.1, False, "relu", trainer.tree, weights=weights)
    for name, gradient in exact.items():
        size = np.abs(gradient).max()
        np.testing.assert_allclose(getattr(ours, name) / size, gradient / size, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("generative", [0, 0.1])
def test_gradients_with_left_out_words_equal_autograd(rng, generative):
    trainer, theta = make_trainer(rng, rate=1.5, generative=generative, word_dropout=0.4)
    class_counts = np.zeros(trainer.X.shape)
    for d in range(trainer.X.shape[0]):
        _, state = next_random(np.uint64(5) ^ np.uint64(d))
        if generative:  # the order of the words is drawn first
            state = shuffle(np.empty(trainer.lengths[d], np.int64), int(trainer.lengths[d]), np.uint64(state))
        for k in range(trainer.X.indptr[d], trainer.X.indptr[d + 1]):
            state, bits = next_random(np.uint64(state))
            if bits / 2**64 >= 0.4:
                class_counts[d, trainer.tree.word_of_leaf[trainer.X.indices[k]]] = trainer.X.data[k] / 0.6
    known = trainer.labels.known
    assert 0.3 < (class_counts[known] == 0)[(trainer.X.toarray() > 0)[known][:, trainer.tree.leaf_of_word]].mean() < 0.5
    ours = gradients_of(trainer, seed=5)
    _, exact = autograd(
        theta, orders_of(trainer, 5), trainer.labels, generative, False, "relu", trainer.tree, class_counts=class_counts
    )
    for name, gradient in exact.items():
        size = max(np.abs(gradient).max(), 1e-8)
        np.testing.assert_allclose(getattr(ours, name) / size, gradient / size, atol=1e-5, err_msg=name)


def test_gradients_with_smoothing_equal_autograd(rng):
    trainer, theta = make_trainer(rng, smoothing=0.2)
    ours = gradients_of(trainer, seed=5)
    documents = orders_of(trainer, 5)
    counts = np.bincount(np.concatenate(documents), minlength=37)
    rates = 1 / (1 + np.exp(-trainer.tree.base_rates(counts)))
    _, exact = autograd(theta, documents, trainer.labels, 0.1, False, "relu", trainer.tree, smoothing=0.2, rates=rates)
    for name, gradient in exact.items():
        size = np.abs(gradient).max()
        np.testing.assert_allclose(getattr(ours, name) / size, gradient / size, atol=1e-5, err_msg=name)


any_corpus = given(
    n_words=st.integers(1, 70),
    n_hidden=st.integers(1, 40),
    rate=st.sampled_from([0.05, 0.5, 4.0]),
    seed=st.integers(0, 9999),
)


@settings(max_examples=30, deadline=None)
@any_corpus
def test_gradients_equal_autograd_for_any_tree(n_words, n_hidden, rate, seed):
    check_against_autograd(n_words, n_hidden, rate, seed)


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@any_corpus
def test_gradients_equal_autograd_for_very_many_trees(n_words, n_hidden, rate, seed):
    check_against_autograd(n_words, n_hidden, rate, seed)


def check_against_autograd(n_words, n_hidden, rate, seed):
    # Small weights: near saturation 1 - tanh**2 has few digits left in float32.
    trainer, theta = make_trainer(np.random.RandomState(seed), n_words, n_hidden, 3, rate, scale=0.1, activation="tanh")
    ours = gradients_of(trainer, seed)
    _, exact = autograd(theta, orders_of(trainer, seed), trainer.labels, 0.1, False, "tanh", trainer.tree)
    largest = max(np.abs(gradient).max(initial=0) for gradient in exact.values())
    for name, gradient in exact.items():
        # Where the terms of a sum cancel, float32 leaves an error of their size, not of the sum's.
        size = max(np.abs(gradient).max(initial=0), 0.1 * largest, 1e-3)
        np.testing.assert_allclose(getattr(ours, name) / size, gradient / size, atol=2e-5, err_msg=name)


def test_losses_equal_autograds(rng):
    trainer, theta = make_trainer(rng)
    documents = np.arange(6)
    nll, class_loss = trainer._run(0, documents, 5, trainer._gradient(0), 1.0)
    loss, _ = autograd(theta, orders_of(trainer, 5), trainer.labels, 0.1, False, "relu", trainer.tree)
    assert (0.1 * nll + class_loss) / 6 == pytest.approx(loss, rel=1e-5)


def test_algorithm_2_as_printed_differs_from_the_true_gradient(rng):
    theta = random_theta(rng, 9, 6, 8, 3)
    tree = WordTree(9, 0)
    words = np.array([3, 1, 4, 1, 5])
    printed = algorithm_2_as_printed(theta, words, 2, 1.0, tree)
    labels = Labels(np.eye(3)[[2]], np.array([True]))
    _, exact = autograd(theta, [words], labels, 1.0, False, "relu", tree)
    for name in ("V", "b", "U", "d"):
        np.testing.assert_allclose(printed[name], exact[name], atol=1e-6)
    for name in ("W", "c"):
        error = np.abs(printed[name] - exact[name]).max() / np.abs(exact[name]).max()
        assert error > 0.1, f"Algorithm 2 as printed has a right gradient of {name}?"


def test_sgd_in_place_equals_a_step_of_gradient_descent_on_each_document(rng):
    trainer, theta = make_trainer(rng, n_documents=1, solver="sgd", batch_size=1, learning_rate=0.3)
    twin, _ = make_trainer(np.random.RandomState(0), n_documents=1, solver="sgd", batch_size=2, learning_rate=0.3)
    trainer.learn(np.array([0]), seed=3)
    twin.learn(np.array([0]), seed=3)
    for name, array in vars(trainer.parameters()).items():
        np.testing.assert_allclose(array, getattr(twin.parameters(), name), atol=1e-6, err_msg=name)
        if name != "U":  # the first document may be unlabelled
            assert not np.array_equal(array, getattr(theta, name))


def test_adam_equals_torchs_sparse_adam_row_by_row(rng):
    import torch

    trainer, theta = make_trainer(rng, rate=3.0, learning_rate=0.01, word_rate=10.0)
    w = torch.tensor(theta.W, requires_grad=True)
    adam = torch.optim.Adam([w], lr=0.01 * 10.0, betas=ADAM_BETAS)
    for step in range(5):
        exact = gradients_of(make_trainer_at(trainer, theta), step)  # every word occurs, so dense and sparse agree
        w.grad = torch.tensor(exact.W)
        adam.step()
        trainer.learn(np.arange(6), step)
        theta = trainer.parameters()
    np.testing.assert_allclose(theta.W, w.detach().numpy(), atol=2e-5)


def make_trainer_at(trainer, theta):
    """A fresh trainer on the same documents with other parameters."""
    X = trainer.X[:, trainer.tree.leaf_of_word]
    return tree_output.TreeTrainer(theta, trainer.tree, sparse.csr_array(X), trainer.labels, trainer.options)


def test_average_is_the_exponential_average_of_all_steps(rng):
    trainer, theta = make_trainer(rng, averaging=0.9, rate=0.1)
    raw, average = [], theta.W.astype(float)
    for step in range(1, 12):
        trainer.learn(np.arange(6), step)
        raw = tree_output.unpack(trainer.theta, trainer.tree, trainer.n_hidden).W
        decay = min(0.9, (1 + step) / (4 + step))
        average = decay * average + (1 - decay) * raw
    np.testing.assert_allclose(trainer.parameters().W, average, atol=1e-5)


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_threads_change_gradients_by_rounding_only(rng, n_jobs):
    trainer, _ = make_trainer(rng, n_jobs=n_jobs, n_documents=30)
    alone, _ = make_trainer(np.random.RandomState(0), n_jobs=1, n_documents=30)
    for step in range(3):
        trainer.learn(np.arange(30), step)
        alone.learn(np.arange(30), step)
    np.testing.assert_allclose(trainer.parameters().V, alone.parameters().V, atol=1e-4)


def test_same_number_of_threads_gives_the_same_bits(rng):
    results = []
    for _ in range(2):
        trainer, _ = make_trainer(np.random.RandomState(0), n_jobs=2, n_documents=30, averaging=0.99, dropout=0.3)
        for step in range(5):
            trainer.learn(np.arange(30), step)
        results.append(trainer.parameters())
    for name, array in vars(results[0]).items():
        assert np.array_equal(array, getattr(results[1], name)), name


def test_dropout_leaves_the_expected_share_of_units_out(rng):
    trainer, _ = make_trainer(rng, n_hidden=200, dropout=0.3)
    shares = []
    for seed in range(50):
        trainer._run(0, np.array([0]), seed, trainer._gradient(0), 1.0)
        mask = trainer.scratch[0][0].mask[0, :200]
        assert set(np.round(np.unique(mask), 5)) <= {0.0, np.round(np.float32(1 / 0.7), 5)}
        shares.append((mask == 0).mean())
    assert np.mean(shares) == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
def test_sequence_losses_equal_algorithm_1(rng, activation):
    theta = random_theta(rng, 23, 11, 22, 0)
    tree = WordTree(23, 0)
    documents = [rng.randint(23, size=n) for n in (0, 1, 7, 60)]
    losses = tree_output.sequence_losses(
        theta, tree, np.concatenate(documents), np.array([len(d) for d in documents]), activation, 2
    )
    exact = [-log_p_words(theta, words, activation, tree) for words in documents]
    np.testing.assert_allclose(losses, exact, rtol=1e-5)


def test_trainer_resumes_where_another_stopped(rng):
    through, _ = make_trainer(np.random.RandomState(0), averaging=0.9)
    first, _ = make_trainer(np.random.RandomState(0), averaging=0.9)
    for step in range(6):
        through.learn(np.arange(6), step)
    for step in range(3):
        first.learn(np.arange(6), step)
    second, _ = make_trainer(np.random.RandomState(0), averaging=0.9)
    second.resume(first.state())
    for step in range(3, 6):
        second.learn(np.arange(6), step)
    for name, array in vars(through.parameters()).items():
        np.testing.assert_allclose(getattr(second.parameters(), name), array, atol=1e-6, err_msg=name)

import numpy as np
import pytest
import torch
from scipy import sparse

from pictopic.models import softmax_output
from pictopic.models.inputs import Labels
from pictopic.models.parameters import word_frequencies
from tests.support.options import make_options
from tests.support.reference import autograd, log_p_words, random_theta


def make_trainer(rng, n_words=17, n_hidden=9, n_documents=6, rate=0.6, labelled=True, **changes):
    options = make_options(**changes)
    X = sparse.csr_array(rng.poisson(rate, (n_documents, n_words)).astype(np.int32))
    theta = random_theta(rng, n_words, n_hidden, n_words, 3, scale=0.4)
    indicator = np.eye(3, dtype=np.uint8)[rng.randint(3, size=n_documents)]
    if options.multi_label:
        indicator = rng.randint(2, size=(n_documents, 3)).astype(np.uint8)
    known = np.full(n_documents, labelled)
    known[1::3] = False
    return softmax_output.SoftmaxTrainer(theta, X, Labels(indicator, known), options), theta


def split(words, lengths):
    return np.split(words, np.cumsum(lengths)[:-1])


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
@pytest.mark.parametrize("generative", [0, 1e-3, 1])
@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("multi_label", [True, False])
def test_gradients_equal_autograd(rng, activation, generative, labelled, multi_label):
    trainer, theta = make_trainer(
        rng, activation=activation, generative=generative, labelled=labelled, multi_label=multi_label
    )
    with torch.no_grad():
        trainer._gradients(np.arange(6), np.random.default_rng(5))
    documents = split(*softmax_output.random_words(trainer.X, np.random.default_rng(5)))
    _, exact = autograd(theta, documents, trainer.labels, generative, multi_label, activation, None)
    for name, gradient in exact.items():
        size = max(np.abs(gradient).max(initial=0), 1e-8)
        ours = trainer.gradient[name].numpy()
        np.testing.assert_allclose(ours / size, gradient / size, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_gradients_with_weighted_annotation_words_equal_autograd(rng, smoothing):
    trainer, theta = make_trainer(rng, annotation_weight=30.0, n_annotation_words=4, smoothing=smoothing)
    with torch.no_grad():
        trainer._gradients(np.arange(6), np.random.default_rng(5))
    documents = split(*softmax_output.random_words(trainer.X, np.random.default_rng(5)))
    rates = word_frequencies(np.bincount(np.concatenate(documents), minlength=17))
    weights = np.array([1.0] * 13 + [30.0] * 4)
    _, exact = autograd(theta, documents, trainer.labels, 0.1, False, "relu", None, smoothing, rates, weights)
    for name, gradient in exact.items():
        size = np.abs(gradient).max()
        np.testing.assert_allclose(trainer.gradient[name].numpy() / size, gradient / size, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("generative", [0, 0.1])
def test_gradients_with_left_out_words_equal_autograd(rng, generative):
    trainer, theta = make_trainer(rng, rate=1.5, generative=generative, word_dropout=0.4)
    with torch.no_grad():
        trainer._gradients(np.arange(6), np.random.default_rng(5))
    draws = np.random.default_rng(5)
    documents = split(*softmax_output.random_words(trainer.X, draws))
    counts = trainer.X.copy()
    counts.data = counts.data * (draws.random(len(counts.data), dtype=np.float32) < 0.6) / 0.6
    assert 0 < np.count_nonzero(counts.data) < len(counts.data)
    _, exact = autograd(
        theta, documents, trainer.labels, generative, False, "relu", None, class_counts=counts.toarray()
    )
    for name, gradient in exact.items():
        size = max(np.abs(gradient).max(), 1e-8)
        np.testing.assert_allclose(trainer.gradient[name].numpy() / size, gradient / size, atol=1e-5, err_msg=name)


def test_gradients_with_smoothing_equal_autograd(rng):
    trainer, theta = make_trainer(rng, smoothing=0.2)
    with torch.no_grad():
        trainer._gradients(np.arange(6), np.random.default_rng(5))
    documents = split(*softmax_output.random_words(trainer.X, np.random.default_rng(5)))
    rates = word_frequencies(np.bincount(np.concatenate(documents), minlength=17))
    _, exact = autograd(theta, documents, trainer.labels, 0.1, False, "relu", None, smoothing=0.2, rates=rates)
    for name, gradient in exact.items():
        size = np.abs(gradient).max()
        np.testing.assert_allclose(trainer.gradient[name].numpy() / size, gradient / size, atol=1e-5, err_msg=name)


def test_losses_equal_autograds(rng):
    trainer, theta = make_trainer(rng)
    with torch.no_grad():
        nll, class_loss = trainer._gradients(np.arange(6), np.random.default_rng(5))
    documents = split(*softmax_output.random_words(trainer.X, np.random.default_rng(5)))
    loss, _ = autograd(theta, documents, trainer.labels, 0.1, False, "relu", None)
    assert (0.1 * nll + class_loss) / 6 == pytest.approx(loss, rel=1e-5)


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
def test_sequence_losses_equal_algorithm_1(rng, activation):
    theta = random_theta(rng, 23, 11, 23, 0)
    documents = [rng.randint(23, size=n) for n in (0, 1, 7, 60, 700)]
    losses = softmax_output.sequence_losses(
        theta, np.concatenate(documents), np.array([len(d) for d in documents]), activation, 1, "cpu"
    )
    exact = [-log_p_words(theta, words, activation, None) for words in documents]
    np.testing.assert_allclose(losses, exact, rtol=1e-5)


def test_average_is_the_exponential_average_of_all_steps(rng):
    trainer, theta = make_trainer(rng, averaging=0.9)
    average = theta.V.astype(float)
    for step in range(1, 12):
        trainer.learn(np.arange(6), step)
        decay = min(0.9, (1 + step) / (4 + step))
        average = decay * average + (1 - decay) * trainer.theta["V"].numpy()
    np.testing.assert_allclose(trainer.parameters().V, average, atol=1e-5)


def test_trainer_resumes_where_another_stopped():
    through, first, second = (make_trainer(np.random.RandomState(0), averaging=0.9)[0] for _ in range(3))
    for step in range(6):
        through.learn(np.arange(6), step)
    for step in range(3):
        first.learn(np.arange(6), step)
    second.resume(first.state())
    for step in range(3, 6):
        second.learn(np.arange(6), step)
    for name, array in vars(through.parameters()).items():
        np.testing.assert_allclose(getattr(second.parameters(), name), array, atol=1e-6, err_msg=name)


def test_same_seed_gives_the_same_bits():
    results = []
    for _ in range(2):
        trainer, _ = make_trainer(np.random.RandomState(0), dropout=0.3, averaging=0.9)
        for step in range(5):
            trainer.learn(np.arange(6), step)
        results.append(trainer.parameters())
    for name, array in vars(results[0]).items():
        assert np.array_equal(array, getattr(results[1], name)), name


def test_number_of_torch_threads_is_given_back(rng):
    before = torch.get_num_threads()
    trainer, _ = make_trainer(rng, n_jobs=before + 1)
    trainer.learn(np.arange(6), 0)
    assert torch.get_num_threads() == before


def test_all_tensors_live_on_the_device_asked_for(rng):
    trainer, _ = make_trainer(rng, device="meta")
    devices = {
        tensor.device.type
        for group in (trainer.theta, trainer.solver.averages, trainer.gradient)
        for tensor in group.values()
    }
    part = softmax_output.Packed(*softmax_output.random_words(trainer.X, np.random.default_rng(0)), "meta")
    devices |= {part.activations(trainer.theta["W"], trainer.theta["c"]).device.type}
    assert devices == {"meta"}


def test_running_sums_are_the_same_with_and_without_the_kernels(rng):
    trainer, _ = make_trainer(rng)
    part = softmax_output.Packed(*softmax_output.random_words(trainer.X, np.random.default_rng(0)), "cpu")
    W, c = trainer.theta["W"], trainer.theta["c"]
    delta, delta_y = torch.randn(len(part.words), 9), torch.randn(6, 9)
    results = []
    for part.on_cpu in (True, False):
        out = torch.zeros_like(W)
        part.add_word_gradients(delta, delta_y, out)
        results.append((part.activations(W, c), out))
    for with_kernel, without in zip(*results, strict=True):
        torch.testing.assert_close(with_kernel, without)

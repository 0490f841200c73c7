import numpy as np
import pytest
import torch

from pictopic.models.network import Network, initial_parameters, linear, normalize_counts, parameter_shapes
from pictopic.models.tree import WordTree
from tests.support.reference import deep_hidden


def arrays(rng, n_words=6, sizes=(5, 4), n_outputs=6, n_classes=3, n_features=2):
    shapes = parameter_shapes(n_words, sizes, n_outputs, n_classes, n_features)
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


def network(parameters, activation="tanh", tree=None):
    return Network({name: torch.from_numpy(array) for name, array in parameters.items()}, activation, tree)


# ---- input -----------------------------------------------------------------------------------------------------------


def test_std_gives_unit_variance_and_keeps_zeros_zero(rng):
    x = rng.poisson(1, (20, 30)).astype(float)
    found = normalize_counts(torch.from_numpy(x), "std").numpy()
    np.testing.assert_allclose(found, x / x.std(axis=1, keepdims=True), rtol=1e-10)


def test_sqrt_takes_square_roots_first(rng):
    x = rng.poisson(1, (20, 30)).astype(float)
    found = normalize_counts(torch.from_numpy(x), "sqrt").numpy()
    np.testing.assert_allclose(found, np.sqrt(x) / np.sqrt(x).std(axis=1, keepdims=True), rtol=1e-10)


def test_none_leaves_counts_alone(rng):
    x = torch.from_numpy(rng.poisson(1, (3, 4)).astype(float))
    assert normalize_counts(x, "none") is x


@pytest.mark.parametrize("kind", ["std", "sqrt", "none"])
def test_a_row_without_words_stays_zero(kind):
    assert not normalize_counts(torch.zeros(2, 5), kind).any()


@pytest.mark.parametrize("kind", ["std", "sqrt"])
def test_a_row_of_equal_counts_becomes_ones(kind):
    np.testing.assert_allclose(normalize_counts(torch.full((1, 5), 7.0), kind).numpy(), 1, rtol=1e-6)


# ---- hidden layers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
@pytest.mark.parametrize("sizes", [(5,), (5, 4), (3, 5, 4)])
def test_hidden_layers_follow_the_equations(rng, activation, sizes):
    p = arrays(rng, sizes=sizes)
    x, f = rng.poisson(1, (7, 6)).astype(float), rng.normal(size=(7, 2))
    found = network(p, activation).hidden(torch.from_numpy(x), torch.from_numpy(f)).detach().numpy()
    np.testing.assert_allclose(found, [deep_hidden(p, x[i], f[i], activation) for i in range(7)], rtol=1e-10)


def test_without_effect_of_features_they_make_no_difference(rng):
    p = arrays(rng)
    p["P"][:] = 0
    x, f = torch.from_numpy(rng.poisson(1, (7, 6)).astype(float)), torch.from_numpy(rng.normal(size=(7, 2)))
    np.testing.assert_array_equal(network(p).hidden(x, f).detach(), network(p).hidden(x).detach())


def test_documents_with_two_rows_have_the_same_mask_and_features_in_both(rng):
    p = arrays(rng)
    x = torch.from_numpy(rng.poisson(1, (3, 6)).astype(float))
    f = torch.from_numpy(rng.normal(size=(3, 2)))
    masks = [torch.from_numpy(rng.randint(2, size=(3, n)).astype(float)) for n in (5, 4)]
    again = torch.tensor([2, 0])
    h = network(p).hidden(torch.cat([x, x[again]]), f, masks, again)
    np.testing.assert_array_equal(h[3:].detach(), h[:3][again].detach())
    assert (h[:3][masks[-1] == 0] == 0).all()


# ---- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tree", [None, 6], ids=["softmax", "tree"])
def test_probabilities_of_all_words_sum_to_one(rng, tree):
    tree = tree and WordTree(tree, 0)
    net = network(arrays(rng, n_outputs=5 if tree else 6), tree=tree)
    p = net.log_p_words(torch.from_numpy(rng.normal(size=(8, 4)))).exp()
    np.testing.assert_allclose(p.sum(1).detach(), 1, rtol=1e-6)


@pytest.mark.parametrize("n_words", [1, 2, 3, 6, 17])
def test_tree_probabilities_are_products_along_the_paths(rng, n_words):
    tree = WordTree(n_words, 1)
    p = arrays(rng, n_words=n_words, n_outputs=n_words - 1)
    h = rng.normal(size=(3, 4))
    found = network(p, tree=tree).log_p_words(torch.from_numpy(h)).detach().numpy()
    nodes, sides = tree.paths()
    for i in range(3):
        for word in range(n_words):
            expected = 0.0
            for node, side in zip(nodes[word], sides[word], strict=True):
                if node >= 0:
                    right = 1 / (1 + np.exp(-(p["b"][node] + p["V"][node] @ h[i])))
                    expected += np.log(right if side == 1 else 1 - right)
            assert found[i, word] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("tree", [None, 6], ids=["softmax", "tree"])
def test_word_losses_are_minus_the_log_probabilities_of_the_targets(rng, tree):
    tree = tree and WordTree(tree, 0)
    net = network(arrays(rng, n_outputs=5 if tree else 6), tree=tree)
    h, targets = torch.from_numpy(rng.normal(size=(8, 4))), torch.from_numpy(rng.poisson(0.3, (8, 6)).astype(float))
    expected = -(net.log_p_words(h) * targets).sum(1)
    np.testing.assert_allclose(net.word_losses(h, targets).detach(), expected.detach(), rtol=1e-6)


def test_initial_matrices_are_glorot_uniform_and_biases_zero(rng):
    shapes = parameter_shapes(50, (40, 30), 50, 3, 20)
    for name, array in initial_parameters(rng, shapes).items():
        assert array.shape == shapes[name]
        if array.ndim == 1:
            assert not array.any()
        else:
            limit = np.sqrt(6 / sum(array.shape))
            assert np.abs(array).max() <= limit
            assert array.std() == pytest.approx(limit / np.sqrt(3), rel=0.2)


def test_a_weight_of_two_products_and_two_passes_has_the_sum_of_their_gradients(rng):
    x, y = (torch.from_numpy(rng.normal(size=(5, 4))) for _ in range(2))
    start = torch.from_numpy(rng.normal(size=(3, 4)))
    gradients = []
    for product in (linear, torch.nn.functional.linear):
        weight = torch.nn.Parameter(start.clone())
        for _ in range(2):
            (product(x, weight).square().sum() + product(y, weight).exp().sum()).backward()
        gradients.append(weight.grad)
    torch.testing.assert_close(*gradients)


def test_gradients_that_were_set_to_none_begin_anew_in_the_same_memory(rng):
    weight = torch.nn.Parameter(torch.from_numpy(rng.normal(size=(3, 4))))
    x = torch.from_numpy(rng.normal(size=(5, 4)))
    linear(x, weight).sum().backward()
    first, memory = weight.grad.clone(), weight.grad.data_ptr()
    weight.grad = None
    linear(x, weight).sum().backward()
    assert weight.grad.data_ptr() == memory
    torch.testing.assert_close(weight.grad, first)

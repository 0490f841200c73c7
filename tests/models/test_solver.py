import numpy as np
import pytest
import torch

from pictopic.models.solver import Solver


def parameters(rng):
    tensors = {"W": torch.from_numpy(rng.normal(size=(4, 3))), "c": torch.from_numpy(rng.normal(size=4)),
               "P": torch.zeros(4, 0, dtype=torch.float64)}  # fmt: skip
    for tensor in tensors.values():
        tensor.grad = torch.ones_like(tensor)
    return tensors


@pytest.mark.parametrize("kind", ["adam", "adamw", "sgd"])
def test_a_step_goes_against_the_gradient(rng, kind):
    tensors = parameters(rng)
    before = tensors["c"].clone()
    Solver(tensors, kind=kind, learning_rate=0.01).step()
    np.testing.assert_allclose(tensors["c"], before - 0.01, rtol=1e-6)


def test_rates_multiply_the_learning_rate_of_a_parameter(rng):
    tensors = parameters(rng)
    before = tensors["W"].clone()
    Solver(tensors, kind="sgd", learning_rate=0.01, rates={"W": 10.0}).step()
    np.testing.assert_allclose(tensors["W"], before - 0.1, rtol=1e-6)


def test_averages_are_exponential_with_a_short_memory_at_first(rng):
    tensors = parameters(rng)
    solver = Solver(tensors, kind="sgd", learning_rate=0.1, averaging=0.9)
    expected = tensors["c"].clone()
    for step in range(1, 40):
        solver.step()
        decay = min(0.9, (1 + step) / (4 + step))
        expected = decay * expected + (1 - decay) * tensors["c"]
    np.testing.assert_allclose(solver.used()["c"], expected, rtol=1e-10)


def test_without_averaging_the_parameters_themselves_are_used(rng):
    tensors = parameters(rng)
    assert Solver(tensors, kind="sgd", learning_rate=0.1).used()["c"] is tensors["c"]


def test_weight_decay_shrinks_matrices_but_not_biases(rng):
    tensors = parameters(rng)
    for tensor in tensors.values():
        tensor.grad = torch.zeros_like(tensor)
    before = {name: tensor.clone() for name, tensor in tensors.items()}
    Solver(tensors, kind="adamw", learning_rate=0.1, weight_decay=0.5).step()
    np.testing.assert_allclose(tensors["W"], 0.95 * before["W"], rtol=1e-6)
    np.testing.assert_array_equal(tensors["c"], before["c"])


def test_a_parameter_that_learns_faster_or_is_excepted_does_not_decay_more(rng):
    tensors = parameters(rng) | {"V": torch.ones(2, 2, dtype=torch.float64)}
    for tensor in tensors.values():
        tensor.grad = torch.zeros_like(tensor)
    before = tensors["W"].clone()
    options = {"kind": "adamw", "learning_rate": 0.1, "weight_decay": 0.5}
    Solver(tensors, rates={"W": 7.0}, not_decayed=("V",), **options).step()
    np.testing.assert_allclose(tensors["W"], 0.95 * before, rtol=1e-6)
    np.testing.assert_array_equal(tensors["V"], 1)


@pytest.mark.parametrize("kind", ["adam", "adamw", "sgd"])
def test_a_solver_that_resumes_goes_on_as_the_first_would(rng, kind):
    def steps(solver, tensors, n, first):
        for k in range(n):
            for tensor in tensors.values():
                tensor.grad = torch.full_like(tensor, np.sin(first + k))
            solver.step()

    options = {"kind": kind, "learning_rate": 0.1, "averaging": 0.9}
    one = parameters(rng)
    through = Solver(one, **options)
    steps(through, one, 3, 0)
    state = {"tensors": {k: t.clone() for k, t in through.state()["tensors"].items()}, "n_done": through.n_done}
    steps(through, one, 4, 3)
    two = parameters(rng)
    resumed = Solver(two, **options)
    resumed.resume(state)
    steps(resumed, two, 4, 3)
    for name in ("W", "c"):
        np.testing.assert_array_equal(one[name], two[name])
        np.testing.assert_array_equal(through.used()[name], resumed.used()[name])

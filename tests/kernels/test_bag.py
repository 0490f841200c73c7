import numpy as np
import pytest
from scipy import sparse

from pictopic.kernels.bag import represent
from pictopic.kernels.elementary import ACTIVATIONS

FUNCTIONS = {"relu": lambda a: np.maximum(a, 0), "tanh": np.tanh, "sigmoid": lambda a: 1 / (1 + np.exp(-a))}


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_a_hidden_layer_is_the_activation_of_the_sum_of_the_words_rows(rng, activation):
    X = sparse.csr_array(rng.poisson(0.6, (20, 11)).astype(np.int32))
    W, c = rng.normal(size=(11, 7)).astype(np.float32), rng.normal(size=7).astype(np.float32)
    out = np.full((20, 7), 9, np.float32)
    represent(0, 20, X.indptr, X.indices, X.data, W, c, ACTIVATIONS[activation], out)
    np.testing.assert_allclose(out, FUNCTIONS[activation](X.toarray() @ W.astype(float) + c), rtol=1e-4, atol=1e-6)


def test_only_the_documents_asked_for_are_filled(rng):
    X = sparse.csr_array(rng.poisson(0.6, (5, 11)).astype(np.int32))
    W, c = rng.normal(size=(11, 7)).astype(np.float32), np.zeros(7, np.float32)
    out = np.full((5, 7), 9, np.float32)
    represent(1, 3, X.indptr, X.indices, X.data, W, c, ACTIVATIONS["relu"], out)
    assert (out[[0, 3, 4]] == 9).all()
    assert (out[1:3] != 9).all()

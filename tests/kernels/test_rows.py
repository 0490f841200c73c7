import numpy as np
import pytest
import torch
from scipy import sparse

from pictopic.kernels.rows import NORMALIZATIONS, fill_rows
from pictopic.models.network import normalize_counts


@pytest.mark.parametrize("kind", list(NORMALIZATIONS))
def test_rows_are_weighted_and_normalised_as_dense_ones_are(rng, kind):
    X = rng.poisson(0.7, (30, 12))
    X[3], X[4], X[5] = 0, 2, np.eye(12)[7]
    weighted = X * np.where(np.arange(12) >= 8, 2.5, 1.0)
    expected = normalize_counts(torch.from_numpy(weighted), kind).numpy()
    counts = sparse.csr_array(X)
    out = np.zeros((32, 12), np.float32)
    fill_rows(counts.indptr, counts.indices, counts.data, 8, 2.5, NORMALIZATIONS[kind], out)
    np.testing.assert_allclose(out[:30], expected, rtol=1e-5)
    assert not out[30:].any()

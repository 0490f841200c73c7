import numpy as np
import pytest

from pictopic.kernels.intersection import intersections


@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 16, 3), (3, 37, 65)])
def test_intersections_are_sums_of_smaller_values(rng, shape):
    n, m, width = shape
    a, b = rng.gamma(0.3, size=(n, width)).astype(np.float32), rng.gamma(0.3, size=(m, width)).astype(np.float32)
    out = np.empty((n, m), np.float32)
    intersections(a, b, out)
    np.testing.assert_allclose(out, [[np.minimum(x, y).sum() for y in b] for x in a], rtol=1e-5)

import numpy as np
import pytest
from numba import njit

from pictopic.kernels import simd


@njit
def _dots_1(x, v, path, z, first, last):
    simd.dots(x, 2, v, path, 1, 3, first, last, z, 1)


@njit
def _dots_2(x, v, path, z, first, last):
    simd.dots(x, 2, v, path, 1, 3, first, last, z, 2)


@njit
def _add_path_1(out, v, path, t, first, last):
    simd.add_path(out, 3, v, path, 1, first, last, t, 1)


@njit
def _add_path_2(out, v, path, t, first, last):
    simd.add_path(out, 3, v, path, 1, first, last, t, 2)


@njit
def _add_outer_2(out, x, t, first, last):
    simd.add_outer(out, first, last, x, 1, t, 3, np.float32(0.5), 2)


@njit
def _add_outer_4(out, x, t, first, last):
    simd.add_outer(out, first, last, x, 1, t, 3, np.float32(0.5), 4)


@njit
def _add_nodes(out, path, x, t, first, last, begin, end):
    simd.add_nodes(out, path, 1, first, last, x, 1, t, begin, end, np.float32(0.5))


@njit
def _add_row(out, x):
    simd.add_row(out, 2, x, 3, np.float32(-2))


@njit
def _rectify(out, x, mask):
    simd.rectify(out, 2, x, mask)


@njit
def _where_positive(out, x):
    simd.where_positive(out, 2, x, 3, np.float32(2))


@pytest.fixture
def arrays(rng):
    def normal(*shape):
        return rng.normal(size=shape).astype(np.float32)

    width = simd.padded(17)
    path = rng.permutation(20).reshape(2, 10).astype(np.int64)
    return {"x": normal(8, width), "v": normal(20, width), "path": path, "t": normal(8, 10), "out": normal(12, width)}


RANGES = [(0, 0), (0, 1), (1, 3), (0, 3), (2, 6), (0, 5), (1, 9), (0, 10)]


@pytest.mark.parametrize(("first", "last"), RANGES)
@pytest.mark.parametrize(("run", "rows"), [(_dots_1, 1), (_dots_2, 2)])
def test_dots_equals_matrix_product(arrays, run, rows, first, last):
    z = np.zeros((8, 10), np.float32)
    run(arrays["x"], arrays["v"], arrays["path"], z, first, last)
    expected = np.zeros((8, 10))
    expected[3 : 3 + rows, first:last] = arrays["x"][2 : 2 + rows] @ arrays["v"][arrays["path"][1, first:last]].T
    np.testing.assert_allclose(z, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("first", "last"), RANGES)
@pytest.mark.parametrize(("run", "rows"), [(_add_path_1, 1), (_add_path_2, 2)])
def test_add_path_adds_weighted_rows(arrays, run, rows, first, last):
    expected = arrays["out"].copy()
    weights = arrays["t"][3 : 3 + rows, first:last]
    expected[3 : 3 + rows] += weights @ arrays["v"][arrays["path"][1, first:last]]
    run(arrays["out"], arrays["v"], arrays["path"], arrays["t"], first, last)
    np.testing.assert_allclose(arrays["out"], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("first", "last"), RANGES)
@pytest.mark.parametrize(("run", "rows"), [(_add_outer_2, 2), (_add_outer_4, 4)])
def test_add_outer_adds_outer_products(arrays, run, rows, first, last):
    expected = arrays["out"].copy()
    expected[first:last] += 0.5 * arrays["t"][3 : 3 + rows, first:last].T @ arrays["x"][1 : 1 + rows]
    run(arrays["out"], arrays["x"], arrays["t"], first, last)
    np.testing.assert_allclose(arrays["out"], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("first", "last"), RANGES)
@pytest.mark.parametrize(("begin", "end"), [(0, 0), (2, 3), (0, 4), (0, 7), (1, 6)])
def test_add_nodes_adds_outer_products_to_the_rows_on_the_path(arrays, first, last, begin, end):
    out = arrays["v"]
    expected = out.copy()
    weights = 0.5 * arrays["t"][begin:end, first:last].T
    expected[arrays["path"][1, first:last]] += weights @ arrays["x"][1 + begin : 1 + end]
    _add_nodes(out, arrays["path"], arrays["x"], arrays["t"], first, last, begin, end)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


def test_add_row_adds_one_row(arrays):
    expected = arrays["out"].copy()
    expected[2] -= 2 * arrays["x"][3]
    _add_row(arrays["out"], arrays["x"])
    np.testing.assert_allclose(arrays["out"], expected, rtol=1e-6)


def test_rectify_is_the_masked_positive_part(arrays):
    mask = np.abs(arrays["x"][4:5])
    _rectify(arrays["out"], arrays["x"][:1], mask)
    np.testing.assert_allclose(arrays["out"][2], np.maximum(arrays["x"][0], 0) * mask[0], rtol=1e-6)


def test_where_positive_keeps_the_gradient_of_positive_units_only(arrays):
    expected = np.where(arrays["out"][2] > 0, 2 * arrays["x"][3], 0)
    _where_positive(arrays["out"], arrays["x"])
    np.testing.assert_allclose(arrays["out"][2], expected, rtol=1e-6)

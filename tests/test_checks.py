import json
import struct

import numpy as np
import pytest
from safetensors.numpy import save

from pictopic import checks


@pytest.mark.parametrize("value", [None, True, -1, 2**60, 10**400, 1.0, "1", [], {}, float("nan")])
def test_only_whole_numbers_within_bounds_pass(value):
    with pytest.raises(ValueError, match=r"^'n' must be a whole number from 0 to \d+, got .{1,70}$"):
        checks.whole(value, "n")


@pytest.mark.parametrize("value", [None, True, 1e308, -(10**400), "1", [], {}, float("nan"), float("inf")])
def test_only_finite_numbers_pass(value):
    with pytest.raises(ValueError, match=r"^'x' must be a number from .*$"):
        checks.number(value, "x")


@pytest.mark.parametrize("value", [None, "ab", [1], ["a", "a"], [["a"]], {"a": 1}, ["a" * 20_000]])
def test_only_lists_of_different_texts_pass(value):
    with pytest.raises(ValueError, match=r"^'names' .*$"):
        checks.texts(value, "names")


def test_an_array_of_a_type_that_is_never_written_is_refused(tmp_path):
    header = json.dumps({"a": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}}).encode()
    path = tmp_path / "a.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"\0\0")
    with pytest.raises(ValueError, match="arrays of BF16 are not known"):
        checks.read_arrays(path)


@pytest.mark.parametrize("content", [b"", b"\xff" * 8, b"\xff" * 100, struct.pack("<Q", 1 << 40) + b"{}"])
def test_what_is_no_safetensors_file_is_refused_in_one_line(tmp_path, content):
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"^[^\n]*a\.safetensors is damaged: [^\n]+$"):
        checks.read_arrays(path)


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(save({"a": np.zeros(100)}))
    with pytest.raises(ValueError, match="more than 100 bytes"):
        checks.read_arrays(path, max_bytes=100)


def test_arrays_and_metadata_are_read(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(save({"a": np.arange(6).reshape(2, 3)}, {"made": "today"}))
    arrays, metadata = checks.read_arrays(path)
    assert arrays["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert metadata == {"made": "today"}


@pytest.mark.parametrize("depth", [10, 700, 100_000])
@pytest.mark.parametrize(("leaf", "is_finite"), [(1.5, True), (-(2**63), True), (2**63, False), (float("-inf"), False)])
def test_numbers_are_looked_at_however_deep_they_are(depth, leaf, is_finite):
    tree = leaf
    for _ in range(depth):
        tree = [{"a": tree}]
    assert checks.is_finite_tree(tree) is is_finite

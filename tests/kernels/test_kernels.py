import os
import subprocess
import sys

import pytest

from pictopic import kernels

LEARN = """
import hashlib
import numpy as np
from scipy import sparse
from pictopic import SupDocNADE
from pictopic.words.sift import dense_sift

rng = np.random.RandomState(0)
X, y = sparse.csr_array(rng.poisson(0.5, (60, 300)).astype(np.int32)), rng.randint(0, 4, 60)
model = SupDocNADE(n_components=40, max_iter=5, random_state=0, n_jobs=1, validation_fraction=None).fit(X, y)
arrays = [model.components_, model.output_coef_, model.transform(X), model.log_likelihood(X, random_state=0)]
arrays.append(dense_sift(rng.rand(64, 64).astype(np.float32))[0])
print([hashlib.sha256(np.ascontiguousarray(a)).hexdigest() for a in arrays])
"""


@pytest.mark.slow
def test_a_model_does_not_depend_on_whether_the_kernels_were_compiled_before(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    runs = [
        subprocess.run(
            [sys.executable, "-c", LEARN], env=environment, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert any(tmp_path.rglob("*.nbc"))  # otherwise both have compiled them
    assert runs[0] == runs[1]


def test_machine_code_older_than_any_kernel_is_deleted(tmp_path, monkeypatch):
    cache = tmp_path / "__pycache__"
    cache.mkdir()
    ages = {"kernel.py": 10, "__pycache__/old.nbi": 5, "__pycache__/old.nbc": 5, "__pycache__/new.nbi": 20}
    for name, time in ages.items():
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time, time))
    monkeypatch.setattr(kernels, "__file__", str(tmp_path / "__init__.py"))
    kernels._drop_stale_machine_code()
    assert [path.name for path in cache.iterdir()] == ["new.nbi"]

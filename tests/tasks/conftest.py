import pytest


@pytest.fixture
def faiss():
    return pytest.importorskip("faiss")

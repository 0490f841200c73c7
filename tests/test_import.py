"""What is loaded when: the package and its help must be quick."""

import subprocess
import sys

import pytest


def _loaded_by(code: str) -> set[str]:
    program = (
        f"import sys\n{code}\nprint(*[m for m in ('torch', 'numba', 'sklearn', 'scipy', 'ray') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(result.stdout.split())


def test_import_loads_neither_torch_nor_numba():
    assert _loaded_by("import pictopic; dir(pictopic)") == set()


def test_estimators_load_neither_torch_nor_numba_before_fit():
    assert _loaded_by("import pictopic; pictopic.DocNADE()") == {"sklearn", "scipy"}


def test_tree_output_never_loads_torch():
    assert "torch" not in _loaded_by("import pictopic; pictopic.DocNADE(max_iter=1).fit([[1, 2]]).perplexity([[1, 2]])")


def test_ray_is_loaded_only_for_a_cluster():
    code = "import pictopic.cluster.training, pictopic.cluster.workers, pictopic.cluster.connection"
    assert "ray" not in _loaded_by(code)


@pytest.mark.parametrize("command", [["--help"], ["demo", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(command):
    code = f"from pictopic.cli import app\ntry:\n    app({command})\nexcept SystemExit:\n    pass\nprint()"
    assert _loaded_by(code) & {"torch", "numba", "sklearn", "scipy", "ray"} == set()


def test_unknown_name_is_an_attribute_error():
    import pictopic

    with pytest.raises(AttributeError, match="no attribute 'Docnade'"):
        pictopic.Docnade  # noqa: B018


def test_all_names_can_be_loaded():
    import pictopic

    assert [name for name in pictopic.__all__ if getattr(pictopic, name) is None] == []

"""The import rule: a package imports only from those before it, and modules do not import each other in a circle."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import pictopic

ROOT = Path(pictopic.__file__).parent
# Packages of one level do not know each other, but for those of the first, which count as one.
ORDER = [
    {"files", "storage", "checks", "processes", "kernels"},
    {"words"},
    {"corpus"},
    {"models"},
    {"tasks"},
    {"picture_model"},
    {"cluster", "server"},
    {"paper"},
    {"demo"},
    {"cli"},
]
LEVEL = {name: level for level, names in enumerate(ORDER) for name in names}
INSIDE_COMMANDS = {"cluster", "server", "paper", "demo"}  # for a quick `pictopic --help`
TEXT_OF_HELP = {"pictopic.paper.datasets.layouts"}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}
INNER = sorted(MODULES.keys() - {"pictopic", "pictopic.__main__"})


def package(module: str) -> str:
    return module.split(".")[1]


def imports(module: str, at_start_only: bool = False) -> Iterator[tuple[int, str]]:
    """Line and name of each module of ours that a module imports; `at_start_only`: when it is imported itself."""
    waiting = list(ast.parse(MODULES[module].read_text(encoding="utf-8")).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "pictopic":
            assert node.level == 0, f"{module}:{node.lineno}: a relative import"
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                if name != "pictopic.__version__":
                    yield node.lineno, name if name in MODULES else str(node.module)
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name.split(".")[0] == "pictopic")
        elif at_start_only and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        elif at_start_only and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)


def test_every_module_is_in_a_package_of_the_order():
    assert {package(module) for module in INNER} == set(LEVEL)


@pytest.mark.parametrize("module", INNER)
def test_a_package_imports_only_from_those_before_it(module):
    own = package(module)
    for line, name in imports(module):
        if name == "pictopic":  # the public names
            allowed = own == "cli"
        else:
            other = package(name)
            allowed = own == other or LEVEL[other] < LEVEL[own] or LEVEL[other] == LEVEL[own] == 0
        assert allowed, f"{module}:{line} imports {name}"


@pytest.mark.parametrize("module", [module for module in INNER if package(module) == "cli"])
def test_commands_import_what_takes_long_when_they_run(module):
    early = {name for _, name in imports(module, at_start_only=True) if name != "pictopic"} - TEXT_OF_HELP
    assert not {name for name in early if package(name) in INSIDE_COMMANDS}


def test_modules_do_not_import_each_other_in_a_circle():
    graph = {
        module: {name for _, name in imports(module, at_start_only=True)} - {module, "pictopic"} for module in INNER
    }
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))
    assert set(order) == set(INNER)

"""The layout: which package imports from which, no circles, tests that mirror the tree, helpers in tests/support."""

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
    importing = package(module)
    for line, name in imports(module):
        if name == "pictopic":  # the public names
            allowed = importing == "cli"
        else:
            other, level = package(name), LEVEL[importing]
            allowed = importing == other or LEVEL[other] < level or LEVEL[other] == level == 0
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


# ---- tests mirror the tree -------------------------------------------------------------------------------------------

TESTS = Path(__file__).parent
NEEDS_NO_TEST_OF_ITS_NAME = {
    "pictopic": "names that are loaded when they are needed: tests/test_import.py",
    "pictopic.__main__": "calls `main`, as every test that starts a command does",
    "pictopic.demo.report.contents": "dataclasses that the other modules of the report fill and show",
    "pictopic.paper.datasets": "readers that are loaded when they are needed: the tests of each reader",
    "pictopic.server.schemas": "the shape of the JSON that the routes send and take: each test of a route checks it",
}
# What has no use of its own is tested through what does use it.
TESTED_THROUGH = {
    "pictopic.models.deep_model": "models/test_deep.py",
    "pictopic.models.shallow": "models/test_docnade.py",
    "pictopic.paper.experiments.mirflickr_data": "paper/experiments/test_mirflickr.py",
    "pictopic.paper.experiments.mirflickr_methods": "paper/experiments/test_mirflickr.py",
    "pictopic.paper.experiments.mirflickr_pictures": "paper/experiments/test_mirflickr.py",
    "pictopic.paper.experiments.scenes_methods": "paper/experiments/test_scenes.py",
}


def has_logic(module: str) -> bool:
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) for node in ast.walk(tree))


def mirrors(module: str) -> list[Path]:
    """Where the tests of a module may be: in the file of its name, or in one for a whole package inside a package."""
    path = MODULES[module].relative_to(ROOT)
    module_path = path.parent if path.name == "__init__.py" else path.with_suffix("")
    tested = [module_path, *(folder for folder in path.parents if len(folder.parts) > 1)]
    return [TESTS / folder / f"test_{part.name}.py" for part in tested for folder in (part.parent, part)]


@pytest.mark.parametrize("module", [module for module in MODULES if has_logic(module)])
def test_every_module_with_logic_has_a_test_file_of_its_name(module):
    if module in TESTED_THROUGH:
        assert (TESTS / TESTED_THROUGH[module]).is_file()
    elif module not in NEEDS_NO_TEST_OF_ITS_NAME:
        assert any(path.is_file() for path in mirrors(module)), f"write {mirrors(module)[0].relative_to(TESTS)}"


def test_exceptions_are_modules():
    assert {*NEEDS_NO_TEST_OF_ITS_NAME, *TESTED_THROUGH} <= MODULES.keys()


def test_nothing_is_imported_from_a_test_file():
    for path in sorted([*TESTS.rglob("*.py"), *(TESTS.parent / "benchmarks").rglob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.ImportFrom):
                names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            elif isinstance(node, ast.Import):
                names = [part for alias in node.names for part in alias.name.split(".")]
            if names[:1] == ["tests"]:
                assert not any(name.startswith("test_") for name in names), f"{path}:{node.lineno}"

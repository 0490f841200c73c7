"""The documents that are generated."""

import re
import shutil
from pathlib import Path

import pytest

from pictopic.paper.experiments.document import document

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """The results' document, generated again from the same files."""
    folder = tmp_path_factory.mktemp("docs")
    shutil.copytree(DOCS / "results", folder / "results", ignore=shutil.ignore_patterns("*.svg"))
    listed = re.findall(r"`results/([\w-]+\.json)`", (DOCS / "results.md").read_text(encoding="utf-8").split("by `")[0])
    assert sorted(listed) == sorted(path.name for path in (DOCS / "results").glob("*.json"))
    document([folder / "results" / name for name in listed], folder / "results.md")
    return folder


def test_no_figure_in_the_results_is_typed_by_hand(generated):
    assert (DOCS / "results.md").read_text(encoding="utf-8") == (generated / "results.md").read_text(encoding="utf-8")


def test_every_curve_that_is_shown_is_there(generated):
    shown = re.findall(r"\]\((results/[^)]+\.svg)\)", (generated / "results.md").read_text(encoding="utf-8"))
    assert shown
    for file in shown:
        assert (DOCS / file).is_file()
        assert (generated / file).is_file()

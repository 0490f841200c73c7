"""What is said about the layouts."""

import subprocess
import sys

import pytest

from pictopic.paper import datasets
from pictopic.paper.datasets import LAYOUTS


def test_there_is_a_layout_for_each_data_set_of_the_command():
    assert list(LAYOUTS) == ["labelme", "uiuc-sports", "mirflickr", "corel5k", "text"]
    assert all(layout.name == name for name, layout in LAYOUTS.items())


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
def test_the_help_has_address_steps_and_tree(layout):
    text = layout.help_text()
    assert text.startswith(layout.title + "\n")
    assert f"From {layout.url}\n  1. " in text
    assert all(line.strip() in text for line in layout.tree.splitlines())


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
def test_an_error_is_one_line(layout, tmp_path):
    with pytest.raises(ValueError, match="nowhere is missing: the folder of") as caught:
        layout.inside(tmp_path / "nowhere")
    assert str(caught.value).endswith(f"; `pictopic reproduce {layout.name} --help` shows the layout")
    assert "\n" not in str(caught.value)


def test_a_data_set_may_lie_in_a_sub_folder_of_its_name(tmp_path):
    assert LAYOUTS["labelme"].inside(tmp_path) == tmp_path
    (tmp_path / "labelme8").mkdir()
    assert LAYOUTS["labelme"].inside(tmp_path) == tmp_path / "labelme8"


def test_all_names_of_the_package_are_there():
    assert set(dir(datasets)) == set(datasets.__all__)
    assert all(getattr(datasets, name) is not None for name in datasets.__all__)
    with pytest.raises(AttributeError, match="no attribute 'read_nothing'"):
        datasets.read_nothing  # noqa: B018


def test_layouts_load_nothing_else_and_readers_no_torch():
    code = """
import sys
import pictopic.paper.datasets as datasets
assert not {"numpy", "pyarrow", "torch"} & set(sys.modules), "layouts"
[getattr(datasets, name) for name in datasets.__all__]
assert not {"torch", "numba"} & set(sys.modules), "readers"
"""
    subprocess.run([sys.executable, "-c", code], check=True)

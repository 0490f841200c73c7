"""Rows and the files they name."""

import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pictopic.corpus import listing as module
from pictopic.corpus.listing import SCHEMA, Listing, PictureFolder
from pictopic.files import is_inside


def _source(*rows, **options):
    listing = Listing()
    for row in rows:
        listing.add(*row)
    return listing.source(Path("folder"), **{"multi_label": False, "pictures": True, **options})


def test_rows_keep_their_order_over_many_chunks(monkeypatch):
    monkeypatch.setattr(module, "_CHUNK", 3)
    source = _source(*[(f"{i}.jpg", [f"tag{i}"]) for i in range(8)])
    assert source.rows.schema == SCHEMA
    assert source.rows["file_name"].to_pylist() == [f"{i}.jpg" for i in range(8)]
    assert source.rows["tags"].to_pylist() == [[f"tag{i}"] for i in range(8)]


def test_of_two_rows_of_a_name_the_first_is_kept():
    source = _source(("a", ["first"]), ("b",), ("a", ["second"]))
    assert source.rows["tags"].to_pylist() == [["first"], []]
    assert source.skipped == [("a", "duplicate row")]
    assert len(source) == 2


def test_rows_know_their_numbers_among_all_that_are_listed():
    listing = Listing()
    listing.skip("x", "missing")
    for name in ("a", "a", "b"):
        listing.add(name)
    source = listing.source(Path("folder"), multi_label=False, pictures=True)
    assert source.listed.tolist() == [1, 3]


def test_no_rows_are_an_error_that_says_why():
    listing = Listing()
    listing.skip("a", "missing")
    listing.skip("b", "missing")
    with pytest.raises(ValueError, match="no row that can be used: 2 missing"):
        listing.source(Path("x"), multi_label=False, pictures=True)


def test_the_same_rows_have_the_same_fingerprint():
    rows = [("a", ["t"], ["l"], "train", 12), ("b",)]
    assert _source(*rows).fingerprint == _source(*rows).fingerprint


@pytest.mark.parametrize(
    "other",
    [("b", ["t"], ["l"], "s", 1), ("a", ["u"], ["l"], "s", 1), ("a", ["t"], None, "s", 1), ("a", ["t"], ["l"], "t", 1),
     ("a", ["t"], ["l"], "s", 2)],
)  # fmt: skip
def test_any_difference_changes_the_fingerprint(other):
    assert _source(("a", ["t"], ["l"], "s", 1)).fingerprint != _source(other).fingerprint


@pytest.fixture
def folder(tmp_path):
    inside = tmp_path / "inside"
    (inside / "sub").mkdir(parents=True)
    (inside / "a.jpg").write_bytes(b"12")
    (inside / "sub" / "b.jpg").write_bytes(b"123")
    (tmp_path / "secret.jpg").write_bytes(b"1")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "c.jpg").write_bytes(b"1")
    return inside


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.jpg", ("a.jpg", 2)),
        ("./a.jpg", ("a.jpg", 2)),
        ("sub//b.jpg", ("sub/b.jpg", 3)),
        ("sub/../a.jpg", ("a.jpg", 2)),
        ("sub\\b.jpg", ("sub/b.jpg", 3)),
        ("none.jpg", "missing"),
        ("a.jpg/b.jpg", "missing"),
        ("a\0.jpg", "missing"),
        ("sub", "not a file"),
        (".", "not a file"),
        ("../secret.jpg", "outside the folder"),
        ("sub/../../secret.jpg", "outside the folder"),
        ("..\\secret.jpg", "outside the folder"),
        ("..", "outside the folder"),
        ("/etc/passwd", "outside the folder"),
    ],
)
def test_files_are_found_inside_the_folder_only(folder, name, expected):
    assert PictureFolder(folder).find(name) == expected


def test_an_absolute_name_is_outside_even_if_the_file_is_inside(folder):
    assert PictureFolder(folder).find(str(folder / "a.jpg")) == "outside the folder"


def test_links_that_lead_out_are_outside(folder):
    (folder / "link.jpg").symlink_to(folder.parent / "secret.jpg")
    (folder / "linked").symlink_to(folder.parent / "outside")
    files = PictureFolder(folder)
    assert files.find("link.jpg") == "outside the folder"
    assert files.find("linked/c.jpg") == "outside the folder"


def test_links_inside_the_folder_are_followed(folder):
    (folder / "link.jpg").symlink_to("sub/b.jpg")
    (folder / "linked").symlink_to("sub")
    files = PictureFolder(folder)
    assert files.find("link.jpg") == ("link.jpg", 3)
    assert files.find("linked/b.jpg") == ("linked/b.jpg", 3)


def test_a_folder_beside_with_the_same_beginning_is_outside(folder):
    (folder.parent / "inside2").mkdir()
    (folder.parent / "inside2" / "x.jpg").write_bytes(b"1")
    (folder / "link.jpg").symlink_to(folder.parent / "inside2" / "x.jpg")
    assert PictureFolder(folder).find("link.jpg") == "outside the folder"


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(["", ".", "..", "sub", "a.jpg", "b.jpg", "in", "out", "x", "etc"]), max_size=4).map(
        "/".join
    )
)
def test_the_rule_is_the_one_of_all_paths(folder, name):
    for link, target in (("in", "sub"), ("out", "../outside"), ("sub/out", "../../outside")):
        if not (folder / link).is_symlink():
            (folder / link).symlink_to(target)
    found = PictureFolder(folder).find(name)
    if not isinstance(found, str):
        assert is_inside(folder, found[0])
    elif found == "outside the folder":
        assert not is_inside(folder, name)


def test_a_link_to_nothing_is_missing(folder):
    (folder / "link.jpg").symlink_to("nothing.jpg")
    assert PictureFolder(folder).find("link.jpg") == "missing"


def test_the_folder_itself_may_be_a_link(folder):
    (folder.parent / "other").symlink_to(folder)
    assert PictureFolder(folder.parent / "other").find("a.jpg") == ("a.jpg", 2)


@pytest.mark.parametrize(("on_disk", "written"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_accents_are_found_composed_or_not(folder, on_disk, written):
    (folder / unicodedata.normalize(on_disk, "café.jpg")).write_bytes(b"1")
    found = PictureFolder(folder).find(unicodedata.normalize(written, "café.jpg"))
    assert not isinstance(found, str)
    assert os.path.exists(folder / found[0])

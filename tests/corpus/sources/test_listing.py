"""Rows and the files they name."""

import json
import os
import unicodedata
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pictopic.corpus.sources import listing as module
from pictopic.corpus.sources import read_source
from pictopic.corpus.sources.listing import SCHEMA, Listing, PictureFolder
from pictopic.files import is_inside
from tests.corpus.sources.conftest import column, save_picture, write_csv, xmp_packet


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
def tree(tmp_path):
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
def test_files_are_found_inside_the_folder_only(tree, name, expected):
    assert PictureFolder(tree).find(name) == expected


def test_an_absolute_name_is_outside_even_if_the_file_is_inside(tree):
    assert PictureFolder(tree).find(str(tree / "a.jpg")) == "outside the folder"


def test_links_that_lead_out_are_outside(tree):
    (tree / "link.jpg").symlink_to(tree.parent / "secret.jpg")
    (tree / "linked").symlink_to(tree.parent / "outside")
    files = PictureFolder(tree)
    assert files.find("link.jpg") == "outside the folder"
    assert files.find("linked/c.jpg") == "outside the folder"


def test_links_inside_the_folder_are_followed(tree):
    (tree / "link.jpg").symlink_to("sub/b.jpg")
    (tree / "linked").symlink_to("sub")
    files = PictureFolder(tree)
    assert files.find("link.jpg") == ("link.jpg", 3)
    assert files.find("linked/b.jpg") == ("linked/b.jpg", 3)


def test_a_folder_beside_with_the_same_beginning_is_outside(tree):
    (tree.parent / "inside2").mkdir()
    (tree.parent / "inside2" / "x.jpg").write_bytes(b"1")
    (tree / "link.jpg").symlink_to(tree.parent / "inside2" / "x.jpg")
    assert PictureFolder(tree).find("link.jpg") == "outside the folder"


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(["", ".", "..", "sub", "a.jpg", "b.jpg", "in", "out", "x", "etc"]), max_size=4).map(
        "/".join
    )
)
def test_the_rule_is_the_one_of_all_paths(tree, name):
    for link, target in (("in", "sub"), ("out", "../outside"), ("sub/out", "../../outside")):
        if not (tree / link).is_symlink():
            (tree / link).symlink_to(target)
    found = PictureFolder(tree).find(name)
    if not isinstance(found, str):
        assert is_inside(tree, found[0])
    elif found == "outside the folder":
        assert not is_inside(tree, name)


def test_a_link_to_nothing_is_missing(tree):
    (tree / "link.jpg").symlink_to("nothing.jpg")
    assert PictureFolder(tree).find("link.jpg") == "missing"


def test_the_folder_itself_may_be_a_link(tree):
    (tree.parent / "other").symlink_to(tree)
    assert PictureFolder(tree.parent / "other").find("a.jpg") == ("a.jpg", 2)


@pytest.mark.parametrize(("on_disk", "written"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_accents_are_found_composed_or_not(tree, on_disk, written):
    (tree / unicodedata.normalize(on_disk, "café.jpg")).write_bytes(b"1")
    found = PictureFolder(tree).find(unicodedata.normalize(written, "café.jpg"))
    assert not isinstance(found, str)
    assert os.path.exists(tree / found[0])


# ---- limits ---------------------------------------------------------------------------------------------------------

_MANY = [f"tag{k}" for k in range(1_500)]


def _many_in_xmp(folder):
    save_picture(folder / "a.jpg", xmp=xmp_packet("</rdf:li><rdf:li>".join(_MANY)))


def _many_in_a_sidecar(folder):
    (folder / "a.xmp").write_bytes(xmp_packet("</rdf:li><rdf:li>".join(_MANY)))


def _many_in_csv(folder):
    write_csv(folder, "file_name,tags", f"a.jpg,{';'.join(_MANY)}", "b.jpg,sea")


def _many_in_jsonl(folder):
    rows = [{"file_name": "a.jpg", "tags": _MANY}, {"file_name": "b.jpg", "tags": "sea"}]
    (folder / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)))


def _many_in_parquet(folder):
    rows = [{"file_name": "a.jpg", "tags": _MANY}, {"file_name": "b.jpg", "tags": ["sea"]}]
    pq.write_table(pa.Table.from_pylist(rows), folder / "metadata.parquet")


@pytest.mark.parametrize("write", [_many_in_xmp, _many_in_a_sidecar, _many_in_csv, _many_in_jsonl, _many_in_parquet])
def test_a_picture_has_at_most_a_thousand_tags(folder, write):
    write(folder)
    with pytest.warns(UserWarning, match=r"1 picture has more than 1,000 tags.*a\.jpg") as told:
        source = read_source(folder)
    assert column(source, "tags")[0] == _MANY[:1_000]
    assert len(told) == 1


def test_one_warning_counts_all_pictures_whose_tags_or_labels_were_cut(folder):
    rows = [f"{name}.jpg,{'x' * 300},{'y' * 300}" for name in "abc"]
    with pytest.warns(UserWarning, match=r"3 pictures have .*the first: a\.jpg") as told:
        source = read_source(write_csv(folder, "file_name,tags,label", *rows))
    assert column(source, "tags") == [["x" * 200]] * 3
    assert column(source, "labels") == [["y" * 200]] * 3
    assert len(told) == 1


def test_a_picture_has_at_most_a_thousand_labels(folder):
    with pytest.warns(UserWarning, match="1 picture has"):
        source = read_source(write_csv(folder, "file_name,labels", f"a.jpg,{';'.join(_MANY)}"))
    assert column(source, "labels") == [_MANY[:1_000]]


def test_a_name_that_no_file_can_have_is_skipped(folder):
    source = read_source(write_csv(folder, "file_name,tags", "a" * 10_000 + ",sea", "b,sky"), pictures="none")
    assert column(source, "file_name") == ["b"]
    ((name, reason),) = source.skipped
    assert set(name) == {"a", "."}
    assert len(name) < 5_000
    assert reason == "its name is longer than 4,096 characters"

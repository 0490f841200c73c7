"""Decisions for other programs."""

import io
import zipfile

import pytest

from pictopic.corpus.sources import read_source
from pictopic.corpus.sources.picture_folder import keywords, xmp_keywords
from pictopic.tasks.decision_files import (
    decided_tags,
    decisions_about,
    sidecars,
    write_sidecars,
    zip_sidecars,
)
from pictopic.tasks.decisions import Decisions
from pictopic.tasks.exports import tags_csv

OUTSIDE = ["../a.jpg", "/etc/a.jpg", "a/../../b.jpg", "..\\a.jpg", "a\\..\\..\\b.jpg", "C:\\a.jpg", "c:a.jpg", "..",
           "\\\\host\\a.jpg", "a//b.jpg", "./a.jpg", "a\0.jpg", ""]  # fmt: skip


@pytest.fixture
def decisions(tmp_path):
    return Decisions(tmp_path / "decisions.jsonl")


def test_tags_are_those_after_the_decisions_of_pictures_that_are_there(decisions):
    for name, tag, word in [("b", "sea", "accepted"), ("a", "sky", "rejected"), ("gone", "sea", "accepted")]:
        decisions.add(name, tag, word)
    found = decided_tags(decisions, ["c", "b", "a"], [["x"], ["boat"], ["sky", "sun"]])
    assert found == {"a": ["sun"], "b": ["boat", "sea"]}
    assert list(found) == ["a", "b"]
    assert [own.file_name for own in decisions_about(decisions, ["a", "b"])] == ["a", "b"]


@pytest.mark.parametrize(
    "tags", [["sea", "night sky"], [], ["paris, france"], ["a;b", "c"], ["a|b"], ["[x]"], ['["a"]'], ['say "hi"'],
             ["möwe", "海"], ["=1+1"]],
)  # fmt: skip
def test_the_csv_is_read_as_it_was_meant(tmp_path, tags):
    path = tmp_path / "tags.csv"
    path.write_text(tags_csv([("a, b.jpg", tags), ("other.jpg", ["sea"])]), encoding="utf-8")
    rows = read_source(path, pictures="none").rows
    assert rows["file_name"].to_pylist() == ["a, b.jpg", "other.jpg"]
    assert rows["tags"].to_pylist() == [tags, ["sea"]]


def test_sidecars_are_named_like_the_pictures():
    names = ["a.jpg", "trip/b.jpeg", "trip/c.d.png", "none"]
    found = sidecars({name: ["sea"] for name in names}, names)
    assert [own.name for own in found] == ["a.xmp", "trip/b.xmp", "trip/c.d.xmp", "none.xmp"]
    assert [own.picture for own in found] == names


@pytest.mark.parametrize("other", ["a.png", "A.png", "a"])
def test_a_picture_that_shares_its_name_but_for_the_extension_has_a_sidecar_of_its_own(other):
    assert sidecars({"a.jpg": ["sea"]}, ["a.jpg", other])[0].name == "a.jpg.xmp"


def test_no_two_sidecars_have_the_same_name():
    names = ["a.jpg", "a.png", "a.jpg.png", "b/a.jpg"]
    assert len({own.name for own in sidecars({name: [] for name in names}, names)}) == 4


@pytest.mark.parametrize("name", OUTSIDE)
def test_names_that_lead_out_of_their_folder_are_left_out(name, tmp_path):
    found = sidecars({name: ["sea"], "b.jpg": ["sky"]}, [name, "b.jpg"])
    assert [own.name for own in found] == ["b.xmp"]
    with zipfile.ZipFile(io.BytesIO(zip_sidecars(found))) as archive:
        assert archive.namelist() == ["b.xmp"]


def test_the_zip_has_the_tags(tmp_path):
    found = sidecars({"trip/möwe.jpg": ["sea", "r&b", "<x>", "not\ufffexml"]}, ["trip/möwe.jpg"])
    with zipfile.ZipFile(io.BytesIO(zip_sidecars(found))) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["trip/möwe.xmp"]
        assert xmp_keywords(archive.read("trip/möwe.xmp")) == ["sea", "r&b", "<x>", "notxml"]


def test_sidecars_go_to_a_tree_like_the_pictures(tmp_path):
    folder = tmp_path / "new" / "sidecars"
    write_sidecars(folder, sidecars({"a.jpg": ["sea"], "trip/b.jpg": []}, ["a.jpg", "trip/b.jpg"]))
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*.xmp")} == {"a.xmp", "trip/b.xmp"}
    assert keywords(folder / "a.jpg") == ["sea"]  # as if the picture were there


def test_an_earlier_export_is_replaced(tmp_path):
    write_sidecars(tmp_path, sidecars({"a.jpg": ["sea"]}, ["a.jpg"]))
    write_sidecars(tmp_path, sidecars({"a.jpg": ["sky"]}, ["a.jpg"]))
    assert keywords(tmp_path / "a.jpg") == ["sky"]


def _some():
    return sidecars({"a.jpg": ["sea"], "trip/b.jpg": ["sky"]}, ["a.jpg", "trip/b.jpg"])


def test_nothing_is_written_beside_the_pictures(tmp_path):
    (tmp_path / "trip").mkdir()
    (tmp_path / "trip" / "b.jpg").write_bytes(b"picture")
    with pytest.raises(ValueError, match=r"holds the pictures themselves \(trip/b\.jpg\)"):
        write_sidecars(tmp_path, _some())
    assert list(tmp_path.rglob("*.xmp")) == []


def test_a_file_of_another_program_is_left_alone_and_nothing_is_written(tmp_path):
    (tmp_path / "trip").mkdir()
    (tmp_path / "trip" / "b.xmp").write_text("precious")
    with pytest.raises(ValueError, match="written by another program"):
        write_sidecars(tmp_path, _some())
    assert [path.read_text() for path in tmp_path.rglob("*.xmp")] == ["precious"]


def test_a_link_out_of_the_folder_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "sidecars").mkdir()
    (tmp_path / "sidecars" / "trip").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="leads out of"):
        write_sidecars(tmp_path / "sidecars", _some())
    assert list(tmp_path.rglob("*.xmp")) == []


def test_names_that_are_too_long_are_told_and_all_others_are_written(tmp_path):
    long = "x" * 250  # with .jpg.xmp it is too long
    names = ["a.jpg", f"{long}.jpg", f"{long}.png", f"sub/{long}.jpg", f"sub/{long}.png", "z.jpg"]
    too_long = write_sidecars(tmp_path / "out", sidecars({name: ["sea"] for name in names}, names))
    assert too_long == [f"{name}.xmp" for name in names[1:5]]
    written = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(written) == ["out/a.xmp", "out/z.xmp"]


def test_the_longest_name_is_written(tmp_path):
    name = "x" * 251
    assert write_sidecars(tmp_path, sidecars({f"{name}.jpg": ["sea"]}, [f"{name}.jpg"])) == []
    assert keywords(tmp_path / f"{name}.jpg") == ["sea"]

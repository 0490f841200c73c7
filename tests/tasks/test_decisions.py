"""The journal of decisions."""

import io
import json
import os
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pictopic.corpus.sources import read_source
from pictopic.corpus.sources.picture_folder import keywords, xmp_keywords
from pictopic.tasks import decisions as module
from pictopic.tasks.decisions import (
    Decision,
    Decisions,
    decided_tags,
    decisions_about,
    sidecars,
    write_sidecars,
    zip_sidecars,
)
from pictopic.tasks.exports import tags_csv
from tests.support.processes import alarm


@pytest.fixture
def path(tmp_path):
    return tmp_path / "photos.model.decisions.jsonl"


def line(name, tag, decision="accepted"):
    return json.dumps({"file_name": name, "tag": tag, "decision": decision, "time": "2025-01-01T00:00:00+00:00"})


def keys(decisions):
    return [(own.file_name, own.tag, own.decision) for own in decisions.newest()]


def test_what_was_decided_is_there_when_it_is_read_again(path):
    Decisions(path).add("é/1.jpg", "sea", "accepted")
    Decisions(path).add("2.jpg", "sea", "rejected")
    assert keys(Decisions(path)) == [("2.jpg", "sea", "rejected"), ("é/1.jpg", "sea", "accepted")]


def test_a_decision_is_one_line_of_json_with_its_time(path):
    Decisions(path).add("1.jpg", "  SEA ", "accepted")
    (own,) = path.read_text().splitlines()
    content = json.loads(own)
    assert list(content) == ["file_name", "tag", "decision", "time"]
    assert content["tag"] == "sea"
    time = datetime.fromisoformat(content["time"])
    assert time.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - time) < timedelta(minutes=1)


def test_the_file_is_beside_the_models_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos.model").mkdir()
    expected = tmp_path / "photos.model.decisions.jsonl"
    assert Decisions.beside("photos.model/").path == expected
    monkeypatch.chdir(tmp_path / "photos.model")
    assert Decisions.beside(".").path == expected


def test_without_a_file_nothing_is_decided(path):
    decisions = Decisions(path)
    assert (len(decisions), decisions.decided("sea"), decisions.changed()) == (0, set(), [])
    assert decisions.tags_after("1.jpg", ["sky"]) == ["sky"]
    assert not path.exists()


def test_the_last_of_several_decisions_counts(path):
    decisions = Decisions(path)
    for word in ("accepted", "undecided", "rejected"):
        decisions.add("1.jpg", "sea", word)
    assert keys(decisions) == [("1.jpg", "sea", "rejected")]
    assert len(path.read_text().splitlines()) == 3


def test_a_decision_that_is_taken_back_is_none(path):
    decisions = Decisions(path)
    decisions.add("1.jpg", "sea", "rejected")
    decisions.add("1.jpg", "sea", "undecided")
    assert (len(decisions), decisions.decided("sea"), decisions.changed()) == (0, set(), [])
    assert decisions.tags_after("1.jpg", ["sea"]) == ["sea"]


def test_the_same_decision_again_is_not_written_again(path):
    decisions = Decisions(path)
    decisions.add("1.jpg", "sea", "accepted")
    decisions.add("1.jpg", "Sea", "accepted")
    assert len(path.read_text().splitlines()) == 1


def test_a_tag_is_cut_as_it_is_in_the_collection(path):
    decisions = Decisions(path)
    decisions.add("1.jpg", "x" * 300, "accepted")
    assert decisions.tags_after("1.jpg", []) == ["x" * 200]
    assert decisions.decided("x" * 300) == {"1.jpg"}


def test_decided_are_the_pictures_of_a_tag_either_way(path):
    decisions = Decisions(path)
    decisions.add("1.jpg", "sea", "accepted")
    decisions.add("2.jpg", "sea", "rejected")
    decisions.add("3.jpg", "sky", "accepted")
    assert decisions.decided("Sea") == {"1.jpg", "2.jpg"}
    assert decisions.changed() == ["1.jpg", "2.jpg", "3.jpg"]
    assert decisions.counts() == {"accepted": 2, "rejected": 1}


def test_tags_afterwards_have_accepted_ones_once_and_no_rejected_ones(path):
    decisions = Decisions(path)
    for tag, word in (("boat", "accepted"), ("sky", "rejected"), ("sea", "accepted"), ("car", "rejected")):
        decisions.add("1.jpg", tag, word)
    assert decisions.tags_after("1.jpg", ["sea", "sky", "sun"]) == ["sea", "sun", "boat"]


def test_the_newest_come_first_and_in_pages(path):
    decisions = Decisions(path)
    for number in range(5):
        decisions.add(f"{number}.jpg", "sea", "accepted")
    decisions.add("1.jpg", "sea", "rejected")
    assert [own.file_name for own in decisions.newest(1, 3)] == ["4.jpg", "3.jpg", "2.jpg"]
    assert isinstance(decisions.newest()[0], Decision)
    assert decisions.newest()[0].file_name == "1.jpg"


@pytest.mark.parametrize(
    ("tag", "word", "message"),
    [
        (" \u200b", "accepted", "a tag must have at least one letter"),
        ("sea", "perhaps", "a decision is one of"),
    ],
)
def test_what_is_no_decision_is_refused(path, tag, word, message):
    with pytest.raises(ValueError, match=message):
        Decisions(path).add("1.jpg", tag, word)
    assert not path.exists()


# ---- crashes ---------------------------------------------------------------------------------------------------------


def test_a_last_line_that_was_cut_off_anywhere_is_ignored_and_goes_with_the_next_decision(path):
    whole = line("1.jpg", "sea") + "\n"
    cut = line("2.jpg", "möwe")
    for length in range(1, len(cut)):
        path.write_bytes(whole.encode() + cut.encode()[:length])
        decisions = Decisions(path)
        assert keys(decisions) == [("1.jpg", "sea", "accepted")]
        decisions.add("3.jpg", "sky", "rejected")
        assert keys(decisions) == keys(Decisions(path)) == [("3.jpg", "sky", "rejected"), ("1.jpg", "sea", "accepted")]
        assert len(path.read_text().splitlines()) == 2


def test_a_whole_last_line_without_its_end_counts_and_gets_it_with_the_next_decision(path):
    path.write_text(line("1.jpg", "sea"))
    decisions = Decisions(path)
    assert keys(decisions) == [("1.jpg", "sea", "accepted")]
    decisions.add("2.jpg", "sea", "rejected")
    assert keys(decisions) == keys(Decisions(path)) == [("2.jpg", "sea", "rejected"), ("1.jpg", "sea", "accepted")]


def test_a_line_that_is_being_written_is_taken_when_it_is_whole(path):
    decisions, text = Decisions(path), line("1.jpg", "sea") + "\n"
    for length in range(len(text) + 1):
        path.write_text(text[:length])
        assert len(decisions) == (length >= len(text) - 1)


@pytest.mark.parametrize(
    "last",
    [
        "nonsense", "[]", "7", '{"file_name": "1.jpg"}', line("1.jpg", "sea", "perhaps"), line("1.jpg", "sea") + "}",
        '{ "file_name": "2.jpg", "tag": "sea", "decision": "acc', '{"tag": "sea", ', '{"file_name": 7, ', "# a note",
        '{"file_name": "1.jpg", "tag": "sea", "decision": "accepted", "time": "2025"} and more', "\0\0\0",
        "[" * 100_000,
    ],
)  # fmt: skip
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_last_line_that_somebody_wrote_is_an_error_and_stays(path, last, end):
    content = line("1.jpg", "sea") + "\n" + last + end
    path.write_text(content)
    decisions = Decisions(path)
    with pytest.raises(ValueError, match=r"photos\.model\.decisions\.jsonl, line 2: not a decision"):
        len(decisions)
    with pytest.raises(ValueError, match="line 2"):
        decisions.add("3.jpg", "sea", "accepted")
    assert path.read_text() == content


def test_half_a_line_with_an_end_is_an_error(path):
    content = line("2.jpg", "sea")[:40] + "\n"
    path.write_text(content)
    with pytest.raises(ValueError, match="line 1"):
        Decisions(path).add("3.jpg", "sea", "accepted")
    assert path.read_text() == content


@given(st.text(), st.text(), st.data())
def test_whatever_is_written_can_be_cut_off_anywhere(tmp_path_factory, name, tag, data):
    path = tmp_path_factory.mktemp("decisions") / "d.jsonl"
    Decisions(path).add("first.jpg", "sky", "accepted")
    before = path.stat().st_size
    Decisions(path).add(name, "x" + tag, "rejected")
    os.truncate(path, data.draw(st.integers(before, path.stat().st_size - 2)))
    assert keys(Decisions(path)) == [("first.jpg", "sky", "accepted")]


def test_blanks_at_the_end_are_no_line(path):
    path.write_text(line("1.jpg", "sea") + "\n  ")
    Decisions(path).add("2.jpg", "sea", "rejected")
    assert keys(Decisions(path)) == [("2.jpg", "sea", "rejected"), ("1.jpg", "sea", "accepted")]


@pytest.mark.parametrize(
    "bad",
    ["nonsense", "[]", "7", '{"file_name": "1.jpg"}', line("1.jpg", "sea", "perhaps"), line("1.jpg", " "),
     line("1.jpg", "sea").replace('"sea"', "7"), '{"a": ' * 100_000, '{"file_name": ' + "9" * 5_000 + "}"],
)  # fmt: skip
def test_any_other_bad_line_is_an_error_with_file_and_line(path, bad):
    path.write_text("\n".join([line("1.jpg", "sea"), "", bad, line("2.jpg", "sea")]) + "\n")
    decisions = Decisions(path)
    for _ in range(2):  # each time it is asked
        with pytest.raises(ValueError, match=r"photos\.model\.decisions\.jsonl, line 3: not a decision"):
            len(decisions)
    with pytest.raises(ValueError, match="line 3"):
        decisions.add("3.jpg", "sea", "accepted")
    assert "3.jpg" not in path.read_text()


def test_a_bad_line_after_a_line_without_end_has_the_right_number(path):
    path.write_text(line("1.jpg", "sea"))
    decisions = Decisions(path)
    assert len(decisions) == 1
    with path.open("a") as file:
        file.write("\nnonsense\n")
    with pytest.raises(ValueError, match="line 2"):
        len(decisions)


def test_a_full_disk_leaves_no_half_line(path, monkeypatch):
    decisions = Decisions(path)
    decisions.add("1.jpg", "sea", "accepted")
    before = path.read_bytes()
    monkeypatch.setattr(module.os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        decisions.add("2.jpg", "sea", "accepted")
    assert path.read_bytes() == before
    assert len(decisions) == 1


def test_a_decision_is_on_disk_before_add_returns(path, monkeypatch):
    synced = []
    monkeypatch.setattr(module.os, "fsync", lambda file: synced.append(os.fstat(file)))
    decisions = Decisions(path)
    decisions.add("1.jpg", "sea", "accepted")
    assert [about.st_ino for about in synced] == [path.stat().st_ino, path.parent.stat().st_ino]  # its name, too
    assert synced[0].st_size == path.stat().st_size
    decisions.add("2.jpg", "sea", "accepted")
    assert [about.st_ino for about in synced[2:]] == [path.stat().st_ino]


def test_a_file_that_was_replaced_or_deleted_is_read_anew(path):
    decisions = Decisions(path)
    decisions.add("1.jpg", "sea", "accepted")
    assert len(decisions) == 1
    other = path.with_name("other")
    other.write_text(line("2.jpg", "sky") + "\n" + line("3.jpg", "sky") + "\n")
    other.replace(path)
    assert decisions.changed() == ["2.jpg", "3.jpg"]
    path.unlink()
    assert decisions.changed() == []


# ---- several at once -------------------------------------------------------------------------------------------------

_ADD_MANY = """
import sys
from pictopic.tasks.decisions import Decisions

decisions, own = Decisions(sys.argv[1]), sys.argv[2]
sys.stdin.readline()  # all begin together
for number in range(100):
    decisions.add(f"{own}-{number}.jpg", "sea", "accepted")
    decisions.add("shared.jpg", own, "accepted")
    decisions.add("shared.jpg", own, "undecided")
"""


def test_processes_that_decide_at_once_lose_nothing(path):
    command = [sys.executable, "-c", _ADD_MANY, str(path)]
    workers = [subprocess.Popen([*command, own], stdin=subprocess.PIPE, text=True) for own in "abc"]
    for worker in workers:
        worker.stdin.write("\n")
        worker.stdin.close()
    watching = Decisions(path)
    seen = [len(watching)]
    while any(worker.poll() is None for worker in workers):
        seen.append(len(watching))
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    assert watching.changed() == sorted(f"{own}-{number}.jpg" for own in "abc" for number in range(100))
    assert len(path.read_text().splitlines()) == 900
    assert len(set(seen)) > 1  # it was read while it grew


def test_threads_that_decide_at_once_lose_nothing(path):
    decisions = Decisions(path)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: decisions.add(f"{number}.jpg", "sea", "accepted"), range(200)))
    assert len(decisions) == len(Decisions(path)) == 200


def test_another_reader_sees_what_was_added_meanwhile(path):
    one, other = Decisions(path), Decisions(path)
    one.add("1.jpg", "sea", "accepted")
    assert other.decided("sea") == {"1.jpg"}
    other.add("1.jpg", "sea", "rejected")
    assert one.counts() == {"accepted": 0, "rejected": 1}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_in_place_of_the_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "decisions.jsonl")
    decisions = Decisions(tmp_path / "decisions.jsonl")
    with alarm(20), pytest.raises(ValueError, match=r"decisions\.jsonl is not a file"):
        decisions.newest()
    with alarm(20), pytest.raises(ValueError, match=r"decisions\.jsonl is not a file"):
        decisions.add("a.jpg", "sea", "accepted")


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

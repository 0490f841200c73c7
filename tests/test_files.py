import csv
import io
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pictopic import files
from pictopic.files import check_place, check_regular, csv_text, has_too_long_name, write_text, writing
from pictopic.processes import lock_beside


def test_text_that_cannot_be_written_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "\ud800")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_write_that_is_interrupted_leaves_the_old_file_alone(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def interrupted(source, target):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def _write_half(path):
    path.write_text("half")
    raise RuntimeError


def test_a_file_that_fails_while_it_is_written_leaves_the_old_one_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(RuntimeError), writing(path) as temporary:
        _write_half(temporary)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


@given(st.lists(st.tuples(st.text(), st.text() | st.sampled_from(["\r", "\n", '"', "a\r\nb", "\0", "\u2028"]))))
def test_csv_is_read_back_to_the_same_cells(rows):
    assert [tuple(row) for row in csv.reader(io.StringIO(csv_text(rows), newline=""))] == rows


@pytest.mark.parametrize("name", ["x" * 255, "x" * 256, "\N{SNOWMAN}" * 85, "\N{SNOWMAN}" * 86, "sub/" + "x" * 256])
def test_names_that_are_too_long_are_those_that_the_system_refuses(tmp_path, name):
    (tmp_path / "sub").mkdir()
    try:
        (tmp_path / name).write_bytes(b"")
        is_refused = False
    except OSError:
        is_refused = True
    assert has_too_long_name(tmp_path / name) == is_refused


def test_a_name_in_a_folder_that_is_not_there_yet_can_be_too_long(tmp_path):
    assert has_too_long_name(tmp_path / "new" / "folder" / ("x" * 256))
    assert not has_too_long_name(tmp_path / "new" / "folder" / ("x" * 255))


def test_a_path_that_is_too_long_is_found(tmp_path):
    path = os.path.join(tmp_path, *["folder"] * 800)
    assert has_too_long_name(path)


def test_a_folder_is_not_brought_back_while_its_writer_is_alive(tmp_path, monkeypatch):
    """A reader between the two renames of a system that cannot exchange folders."""
    monkeypatch.setattr(files, "_exchange", lambda one, other: False)
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "old.txt").write_text("old")
    rename, readers = files.os.rename, []

    def slow_rename(source, target):
        rename(source, target)
        if str(target).endswith(".model.old"):
            reader = threading.Thread(target=files.recovered, args=(folder,))
            reader.start()
            reader.join(0.2)
            readers.append(reader)

    monkeypatch.setattr("os.rename", slow_rename)
    with lock_beside(folder):
        new = files.fresh_folder(folder)
        (new / "new.txt").write_text("new")
        files.replace_folder(new, folder)
    readers[0].join()
    assert [path.name for path in folder.iterdir()] == ["new.txt"]


def test_what_is_replaced_while_it_is_read_is_read_again():
    identities = iter(["old", "new", "new", "new"])
    reads = iter([ValueError("half of each"), "new"])

    def read():
        found = next(reads)
        if isinstance(found, ValueError):
            raise found
        return found

    assert files.read_unchanged(read, lambda: next(identities), "a model") == "new"


def test_an_error_of_what_nobody_replaces_is_raised_at_once():
    calls = []

    def read():
        calls.append(1)
        raise ValueError("damaged")

    with pytest.raises(ValueError, match="damaged"):
        files.read_unchanged(read, lambda: "same", "a model")
    assert len(calls) == 1


def test_what_is_replaced_all_the_time_is_an_error(monkeypatch):
    monkeypatch.setattr(files, "_PAUSE", 0)
    identities = iter(range(1000))
    with pytest.raises(ValueError, match="a model is replaced all the time"):
        files.read_unchanged(lambda: "read", lambda: next(identities), "a model")


def test_hidden_files_count_where_a_folder_is_replaced_as_a_whole(tmp_path):
    (tmp_path / ".precious").touch()
    check_place(tmp_path, "a model", "config.json")
    with pytest.raises(ValueError, match="holds something that is not a model"):
        check_place(tmp_path, "a model", "config.json", replaced=True)


def test_a_file_that_is_removed_while_it_is_looked_at_is_no_pipe(tmp_path, monkeypatch):
    path = tmp_path / "rows.parquet"
    path.touch()
    stat = Path.stat

    def stat_and_remove(self, **options):
        about = stat(self, **options)
        self.unlink()
        return about

    monkeypatch.setattr(Path, "stat", stat_and_remove)
    check_regular(path)
    monkeypatch.undo()
    assert not path.exists()

import pytest

from pictopic.files import new_folder, write_text


def test_text_that_cannot_be_written_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "\ud800")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_folder_that_fails_half_way_leaves_the_old_folder(tmp_path):
    folder = tmp_path / "model"
    with new_folder(folder) as new:
        (new / "a").write_text("old")

    def fail_half_way():
        with new_folder(folder) as new:
            (new / "a").write_text("new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail_half_way()
    assert (folder / "a").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["model"]

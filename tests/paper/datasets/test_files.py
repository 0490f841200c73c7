import pytest

from pictopic.paper.datasets.files import entries, read_tag_lines, warn_of
from tests.paper.datasets.conftest import write_text


def test_entries_come_in_the_order_of_their_names_without_hidden_ones(tmp_path):
    for name in ("b.jpg", ".hidden", "a.jpg"):
        write_text(tmp_path / name, "")
    assert [entry.name for entry in entries(tmp_path)] == ["a.jpg", "b.jpg"]
    assert entries(tmp_path / "missing") == []
    assert entries(tmp_path / "a.jpg") == []


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_tags_are_read_in_old_and_new_encodings(tmp_path, encoding):
    (tmp_path / "tags.txt").write_bytes("Küste\n\nsea\nküste\n".encode(encoding))
    assert read_tag_lines(tmp_path / "tags.txt") == ["küste", "sea"]


def test_a_warning_names_three_files_and_counts_the_others(recwarn):
    warn_of("damaged", [])
    assert not recwarn
    with pytest.warns(UserWarning, match=r"^damaged: a, b, c and 2 more$"):
        warn_of("damaged", list("abcde"))

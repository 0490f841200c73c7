"""Tables in files."""

import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pictopic.corpus.metadata import TextLines, open_table


def _table(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return open_table(path)


@pytest.mark.parametrize("start", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_csv_is_read_with_any_ending_and_separator(tmp_path, start, end, separator):
    text = start + end.join([separator.join(row) for row in (["file_name", " tags "], ["a.jpg", "x y"], ["b.jpg", ""])])
    table = _table(tmp_path, "m.csv", text)
    assert table.columns == ["file_name", "tags"]
    assert list(table.rows(["tags", None, "file_name"])) == [(2, ["x y", None, "a.jpg"]), (3, ["", None, "b.jpg"])]


def test_quoted_cells_may_have_commas_and_line_ends(tmp_path):
    table = _table(tmp_path, "m.csv", 'a,b\n"1,\n2","say ""x"""\n3,4\n')
    assert list(table.rows(["a", "b"])) == [(3, ["1,\n2", 'say "x"']), (4, ["3", "4"])]


def test_short_rows_have_empty_cells_and_empty_lines_are_left_out(tmp_path):
    assert list(_table(tmp_path, "m.csv", "a,b\n1\n\n2,3\n").rows(["a", "b"])) == [(2, ["1", ""]), (4, ["2", "3"])]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n1,2,3\n", "row 3: 3 cells, but 2 columns"),
        ("a,a\n1,2\n", "there are two columns 'a'"),
        ("", "is empty"),
        ("a\n" + "x" * 200_000 + "\n", "row 2: field larger than field limit"),
        ("a\n1\r2\n", "row 2: new-line character"),
    ],
)
def test_mistakes_in_csv_name_file_and_row(tmp_path, content, message):
    with pytest.raises(ValueError, match=rf"m\.csv.*{re.escape(message)}"):
        list(_table(tmp_path, "m.csv", content).rows(["a"]))


def test_rows_that_are_not_utf8_are_read_as_windows_1252_with_one_warning(tmp_path):
    table = _table(tmp_path, "m.csv", "a\nönne\n".encode() + b"caf\xe9\nna\xefve \x80\n\x81\n")
    with pytest.warns(UserWarning, match=r"m\.csv, row 3: not UTF-8") as caught:
        rows = list(table.rows(["a"]))
    assert [cell for _, (cell,) in rows] == ["önne", "café", "naïve €", "\x81"]
    assert len(caught) == 1


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_with_a_mark_is_read(tmp_path, encoding):
    text = "a,b\r\nö,x\r\n" if encoding == "utf-16" else "\ufeffa,b\r\nö,x\r\n"
    assert list(_table(tmp_path, "m.csv", text.encode(encoding)).rows(["a", "b"])) == [(2, ["ö", "x"])]


def test_json_lines_have_all_columns_of_any_line(tmp_path):
    table = _table(tmp_path, "m.jsonl", '{"a": 1}\n\n{"b": ["x"], "a": null}\n')
    assert table.columns == ["a", "b"]
    assert list(table.rows(["b", "a"])) == [(1, [None, 1]), (3, [["x"], None])]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": 1}\n{"a": \n', "row 2: not JSON"),
        ("[1]\n", "row 1: not a JSON object"),
        ("[" * 100_000, "row 1: not JSON"),
    ],
)
def test_mistakes_in_json_name_file_and_row(tmp_path, content, message):
    with pytest.raises(ValueError, match=rf"m\.jsonl, {message}"):
        list(_table(tmp_path, "m.jsonl", content).rows(["a"]))


def test_parquet_is_read(tmp_path):
    pq.write_table(pa.table({"a": [1, None, 3], "b": [["x"], [], None], "c": ["1", "2", "3"]}), tmp_path / "m.parquet")
    table = open_table(tmp_path / "m.parquet")
    assert table.columns == ["a", "b", "c"]
    assert list(table.rows(["b", None, "a"])) == [(1, [["x"], None, 1]), (2, [[], None, None]), (3, [None, None, 3])]


def test_what_is_no_parquet_is_an_error_with_its_name(tmp_path):
    with pytest.raises(ValueError, match=r"m\.parquet cannot be read as Parquet"):
        list(_table(tmp_path, "m.parquet", b"PAR1 and so on").rows([]))


def test_other_extensions_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"extensions \.csv, \.jsonl, \.parquet"):
        _table(tmp_path, "m.xlsx", b"")


def test_lines_keep_their_ends(tmp_path):
    (tmp_path / "t").write_bytes(b"\xef\xbb\xbfa\r\nb")
    assert list(TextLines(tmp_path / "t")) == ["a\r\n", "b"]

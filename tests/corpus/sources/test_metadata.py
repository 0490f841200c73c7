"""Tables in files, and the sources that they describe."""

import json
import os
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from pictopic.corpus.sources import metadata as module
from pictopic.corpus.sources import read_source
from pictopic.corpus.sources.metadata import TextLines, open_table
from pictopic.words.tags import TagRules
from tests.corpus.sources.conftest import column, save_picture, write_csv, xmp_packet


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
        ("a\n" + "x" * 10_000_000, "row 2: field larger than field limit"),
        ('a\n1\n"' + "x\n" * 100_000, "field larger than field limit (131072); is a quote not closed?"),
        ('a,b\n1,2\n3,"4\n5,6\n', "row 3: a quote is not closed"),
        ('a,"b\n1,2\n', "row 1: a quote is not closed"),
        ("a\n1\r2\n", "row 2: new-line character"),
    ],
)
def test_mistakes_in_csv_name_file_and_row(tmp_path, content, message):
    with pytest.raises(ValueError, match=rf"m\.csv.*{re.escape(message)}"):
        list(_table(tmp_path, "m.csv", content).rows(["a"]))


def test_quotes_inside_a_cell_are_part_of_it(tmp_path):
    assert list(_table(tmp_path, "m.csv", 'a,b\n5" tall,"x" y\n').rows(["a", "b"])) == [(2, ['5" tall', "x y"])]


@pytest.mark.parametrize(("name", "first"), [("m.csv", "a"), ("m.jsonl", '{"a": 1}')])
def test_a_line_that_does_not_end_is_not_read_into_memory(tmp_path, monkeypatch, name, first):
    monkeypatch.setattr(module, "_MAX_LINE", 1_000)
    with pytest.raises(ValueError, match=rf"{name}, row 2: longer than 1,000 bytes"):
        list(_table(tmp_path, name, first + "\n" + "x" * 2_000).rows(["a"]))


def test_csv_may_have_zero_bytes(tmp_path):
    assert list(_table(tmp_path, "m.csv", "a,b\n1\0,2\n").rows(["a", "b"])) == [(2, ["1\0", "2"])]


@pytest.mark.parametrize("content", [b"\xff\xfea", b"\xff\xfe\x00\xd8\x00\x00", b"\xfe\xff\xd8\x00"])
def test_broken_utf16_is_named(tmp_path, content):
    with pytest.raises(ValueError, match=r"m\.csv: not UTF-16"):
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
        ('{"a": ' * 100_000, "row 1: not JSON"),
        ('{"a": ' + "9" * 5_000 + "}", "row 1: not JSON"),
    ],
)
def test_mistakes_in_json_name_file_and_row(tmp_path, content, message):
    with pytest.raises(ValueError, match=rf"m\.jsonl, {message}"):
        list(_table(tmp_path, "m.jsonl", content).rows(["a"]))


def test_strange_json_is_read(tmp_path):
    text = '{"a": NaN, "a": 1e400, "b": "x\\u0000\\ud800"}'
    assert list(_table(tmp_path, "m.jsonl", text).rows(["a", "b"])) == [(1, [float("inf"), "x\0\ud800"])]


@pytest.mark.parametrize("depth", [*range(900, 1_000, 7), 10_000])
def test_deep_lists_are_read_or_an_error_with_their_row(tmp_path, depth):
    text = json.dumps({"file_name": "a", "tags": "sea"}) + "\n"
    text += '{"file_name": "b", "tags": ' + "[" * depth + "]" * depth + "}"
    (tmp_path / "metadata.jsonl").write_text(text)
    try:
        assert len(read_source(tmp_path, pictures="none")) == 2
    except ValueError as error:
        assert "metadata.jsonl, row 2: not JSON" in str(error)  # noqa: PT017 - either will do


def test_parquet_is_read(tmp_path):
    pq.write_table(pa.table({"a": [1, None, 3], "b": [["x"], [], None], "c": ["1", "2", "3"]}), tmp_path / "m.parquet")
    table = open_table(tmp_path / "m.parquet")
    assert table.columns == ["a", "b", "c"]
    assert list(table.rows(["b", None, "a"])) == [(1, [["x"], None, 1]), (2, [[], None, None]), (3, [None, None, 3])]


def test_what_is_no_parquet_is_an_error_with_its_name(tmp_path):
    with pytest.raises(ValueError, match=r"m\.parquet cannot be read as Parquet"):
        list(_table(tmp_path, "m.parquet", b"PAR1 and so on").rows([]))


@pytest.mark.parametrize("separator", [",", "\n,\r"])
def test_an_error_has_one_line_for_many_columns(tmp_path, separator):
    (tmp_path / "m.csv").write_text('"' + separator.join(f"column {k}" for k in range(5_000)) + '"\nx\n')
    with pytest.raises(ValueError, match=r"m\.csv.*the columns are column 0") as error:
        read_source(tmp_path / "m.csv")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 700


def test_other_extensions_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"extensions \.csv, \.jsonl, \.parquet"):
        _table(tmp_path, "m.xlsx", b"")


def test_lines_keep_their_ends(tmp_path):
    (tmp_path / "t").write_bytes(b"\xef\xbb\xbfa\r\nb")
    assert list(TextLines(tmp_path / "t")) == ["a\r\n", "b"]


_FIXED = [
    pa.date32(), pa.time32("s"), pa.time32("ms"), pa.int8(), pa.uint32(), pa.float16(), pa.float32(), pa.bool_(),
    pa.date64(), pa.time64("us"), pa.time64("ns"), pa.uint64(), pa.float64(), pa.decimal128(38, 3),
    pa.decimal256(76, 0),
    *(pa.timestamp(unit, zone) for unit in ("ms", "us", "ns") for zone in (None, "UTC", "+05:00", "Mars/Base")),
    *(pa.duration(unit) for unit in ("s", "ms", "us", "ns")),
]  # fmt: skip
_BINARY = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]


def _array(kind, content, n):
    """An array whose values are any bytes."""
    if kind in _BINARY:
        values = pa.array(
            [content[i * len(content) // n : (i + 1) * len(content) // n] for i in range(n)], pa.large_binary()
        )
        return values.cast(pa.binary()).view(kind) if kind in _BINARY[::2] else values.view(kind)
    return pa.Array.from_buffers(kind, n, [None, pa.py_buffer(content)])


@st.composite
def _arrays(draw):
    kind, n = draw(st.sampled_from(_FIXED + _BINARY)), draw(st.integers(1, 4))
    array = _array(kind, draw(st.binary(min_size=32 * n, max_size=32 * n)), n)
    if draw(st.booleans()) and kind != pa.bool_():
        array = pa.concat_arrays([array, pa.nulls(1, kind)])
    nesting = draw(st.sampled_from(["none", "list", "struct", "dictionary", "map", "list of struct"]))
    lists = pa.array(range(len(array) + 1), pa.int32())
    if nesting == "list":
        return pa.ListArray.from_arrays(lists, array)
    if nesting == "struct":
        return pa.StructArray.from_arrays([array], ["x"])
    if nesting == "dictionary":
        return pa.DictionaryArray.from_arrays(pa.array(range(len(array))), array)
    if nesting == "map":
        return pa.MapArray.from_arrays(lists, pa.array([str(i) for i in range(len(array))]), array)
    if nesting == "list of struct":
        return pa.ListArray.from_arrays(lists, pa.StructArray.from_arrays([array], ["x"]))
    return array


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(_arrays())
def test_cells_of_any_type_are_read_or_an_error_with_their_row(tmp_path_factory, array):
    folder = tmp_path_factory.getbasetemp() / "types"
    folder.mkdir(exist_ok=True)
    path = folder / "metadata.parquet"
    names = [f"{i}.jpg" for i in range(len(array))]
    try:
        pq.write_table(pa.table({"file_name": names, "tags": array, "labels": array, "part": array}), path)
    except (pa.ArrowException, OSError, OverflowError):
        reject()  # Parquet cannot hold it
    try:
        source = read_source(folder, pictures="none", split_column="part")
        assert source.rows["file_name"].to_pylist() == names
    except ValueError as error:
        assert re.search(r"metadata\.parquet(, row [1-5]:| has no row| cannot be read)", str(error))  # noqa: PT017
        assert "\n" not in str(error)  # noqa: PT017


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us"), pa.duration("s")])
def test_dates_that_python_does_not_know_are_read_all_the_same(tmp_path, kind):
    number = pa.array([2**31 - 1], pa.int32()) if kind == pa.date32() else pa.array([2**62], pa.int64())
    pq.write_table(pa.table({"file_name": ["a"], "tags": ["sea"], "label": number.view(kind)}), tmp_path / "m.parquet")
    (row,) = read_source(tmp_path / "m.parquet").rows.to_pylist()
    assert isinstance(row["labels"][0], str)


def test_text_in_parquet_that_is_not_utf8_is_read(tmp_path):
    text = pa.array([b"caf\xe9", b"sea"]).view(pa.string())
    pq.write_table(pa.table({"file_name": ["a", "b"], "tags": text}), tmp_path / "m.parquet")
    assert read_source(tmp_path / "m.parquet").rows["tags"].to_pylist() == [["caf\ufffd"], ["sea"]]


def test_two_parquet_columns_of_a_name_are_an_error(tmp_path):
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], ["tags", "tags"])
    pq.write_table(table, tmp_path / "m.parquet")
    with pytest.raises(ValueError, match=r"m\.parquet: there are two columns 'tags'"):
        read_source(tmp_path / "m.parquet")


@pytest.mark.parametrize("name", ["a.b", "tags.list.element", "ä ö", "x\ny", "\0", ""])
def test_parquet_columns_of_any_name_are_read(tmp_path, name):
    pq.write_table(pa.table({"file_name": ["a"], "tags": [["sea"]], name: ["x"]}), tmp_path / "m.parquet")
    assert read_source(tmp_path / "m.parquet", label_column=name).rows["labels"].to_pylist() == [["x"]]


@pytest.mark.parametrize("as_list", [False, True])
def test_a_long_text_that_many_parquet_rows_share_does_not_fill_the_memory(tmp_path, as_list):
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 600, pa.int32()), ["x" * 2_000_000])
    tags = pa.ListArray.from_arrays(pa.array(range(601), pa.int32()), text) if as_list else text
    path = tmp_path / "m.parquet"
    # Without Arrow's schema, a reader does not know that the texts were shared.
    pq.write_table(pa.table({"tags": tags}), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 100_000
    with pytest.raises(ValueError, match=r"m\.parquet, rows 1 to 256: more than 256 MB in tags"):
        list(open_table(path).rows(["tags"]))


def test_long_texts_that_parquet_rows_share_are_read(tmp_path):
    table = pa.table({"tags": ["x" * 100_000, None] * 500, "labels": [["y" * 1000, None], None] * 500})
    pq.write_table(table, tmp_path / "m.parquet")
    rows = list(open_table(tmp_path / "m.parquet").rows(["tags", "labels"]))
    assert rows[998:] == [(999, ["x" * 100_000, ["y" * 1000, None]]), (1000, [None, None])]


def test_a_tag_in_a_parquet_list_that_is_not_utf8_is_read(tmp_path):
    text = pa.array([b"caf\xe9", b"sea"]).view(pa.string())
    tags = pa.ListArray.from_arrays(pa.array([0, 2, 2], pa.int32()), text)
    pq.write_table(pa.table({"file_name": ["a", "b"], "tags": tags}), tmp_path / "m.parquet")
    assert read_source(tmp_path / "m.parquet").rows["tags"].to_pylist() == [["caf\ufffd", "sea"], []]


# ---- as a source ----------------------------------------------------------------------------------------------------


def test_csv_metadata_are_read_in_their_order(folder):
    source = read_source(write_csv(folder, "file_name,tags,label", "b.jpg,Sea; Sky,Coast", 'a.jpg,"x, y",'))
    assert source.rows.to_pylist() == [
        {"file_name": "b.jpg", "tags": ["sea", "sky"], "labels": ["Coast"], "split": None},
        {"file_name": "a.jpg", "tags": ["x", "y"], "labels": None, "split": None},
    ]
    assert (source.folder, source.pictures, source.multi_label, source.skipped) == (folder, True, False, [])


_ROWS = [{"file_name": "b.jpg", "tags": ["sea", "sky"], "label": 3}, {"file_name": "a.jpg", "tags": [], "label": None}]


def _write_jsonl(folder):
    (folder / "metadata.jsonl").write_text("\n".join(map(json.dumps, _ROWS)))


def _write_parquet(folder):
    pq.write_table(pa.Table.from_pylist(_ROWS), folder / "metadata.parquet")


def _write_csv(folder):
    write_csv(folder, "file_name,tags,label", "b.jpg,sea;sky,3", "a.jpg,,")


@pytest.mark.parametrize("write", [_write_csv, _write_jsonl, _write_parquet])
def test_all_kinds_of_metadata_give_the_same(folder, write):
    write(folder)
    source = read_source(folder)
    assert [column(source, name) for name in ("file_name", "tags", "labels")] == [
        ["b.jpg", "a.jpg"], [["sea", "sky"], []], [["3"], None],
    ]  # fmt: skip
    assert source.fingerprint == read_source(_copy_as_csv(folder)).fingerprint


def _copy_as_csv(folder):
    for path in folder.glob("metadata.*"):
        path.unlink()
    _write_csv(folder)
    return folder


def test_the_fingerprint_is_that_of_the_contents_not_of_the_place(folder, tmp_path_factory):
    _write_csv(folder)
    other = tmp_path_factory.mktemp("other")
    for path in folder.iterdir():
        (other / path.name).write_bytes(path.read_bytes())
        os.utime(other / path.name, (1, 1))
    assert read_source(folder).fingerprint == read_source(other).fingerprint


def test_another_size_of_a_picture_changes_the_fingerprint(folder):
    before = read_source(write_csv(folder, "file_name,tags", "a.jpg,x")).fingerprint
    (folder / "a.jpg").write_bytes(b"another")
    assert read_source(folder).fingerprint != before


def test_labels_are_several(folder):
    source = read_source(write_csv(folder, "file_name,labels", "a.jpg,Sea;sky;Sea", "b.jpg,", "c.jpg,[]"))
    assert source.multi_label
    assert column(source, "labels") == [["Sea", "sky"], None, []]


def test_lists_in_the_label_column_are_several(folder):
    (folder / "metadata.jsonl").write_text('{"file_name": "a.jpg", "label": ["x", "y"]}\n{"file_name": "b.jpg"}\n')
    source = read_source(folder)
    assert source.multi_label
    assert column(source, "labels") == [["x", "y"], None]


def test_label_wins_over_labels(folder):
    source = read_source(write_csv(folder, "file_name,labels,label", "a.jpg,x;y,z; w"))
    assert column(source, "labels") == [["z; w"]]
    assert not source.multi_label


def test_other_columns_can_be_named(folder):
    write_csv(folder, "file_name,tags,group,words,part", "a.jpg,no,7,yes,test")
    source = read_source(folder, label_column="group", tags_column="words", split_column="part")
    assert source.rows.to_pylist() == [{"file_name": "a.jpg", "tags": ["yes"], "labels": ["7"], "split": "test"}]


@pytest.mark.parametrize("option", ["label_column", "tags_column", "split_column"])
def test_a_column_that_is_not_there_is_an_error_that_names_those_there_are(folder, option):
    write_csv(folder, "file_name,tags,label", "a.jpg,x,y")
    with pytest.raises(ValueError, match=r"\.csv has no column 'group'; its columns are file_name, tags, label"):
        read_source(folder, **{option: "group"})


def test_labels_and_tags_can_be_left_out(folder):
    write_csv(folder, "file_name,tags,label", "a.jpg,x,y")
    source = read_source(folder, label_column=None, tags_column=None)
    assert source.rows.to_pylist() == [{"file_name": "a.jpg", "tags": [], "labels": None, "split": None}]


def test_tag_rules_are_applied(folder):
    write_csv(folder, "file_name,tags", "a.jpg,NYC;Nikon;night")
    source = read_source(folder, tag_rules=TagRules(frozenset({"nikon"}), {"nyc": "new york"}))
    assert column(source, "tags") == [["new york", "night"]]


def test_rows_that_cannot_be_used_are_skipped_with_their_reason(folder):
    (folder.parent / "secret.jpg").touch()
    (folder / "link.jpg").symlink_to(folder.parent / "secret.jpg")
    names = ["a.jpg", "../secret.jpg", "none.jpg", "/etc/passwd", "./a.jpg", "link.jpg", "b.jpg"]
    source = read_source(write_csv(folder, "file_name,tags", *(f"{name},x" for name in names)))
    assert column(source, "file_name") == ["a.jpg", "b.jpg"]
    assert source.listed.tolist() == [0, 6]
    assert source.skipped == [
        ("../secret.jpg", "outside the folder"), ("none.jpg", "missing"), ("/etc/passwd", "outside the folder"),
        ("a.jpg", "duplicate row"), ("link.jpg", "outside the folder"),
    ]  # fmt: skip


def test_a_row_without_a_file_name_is_an_error_with_its_row(folder):
    with pytest.raises(ValueError, match=r"metadata\.csv, row 3: there is no file_name"):
        read_source(write_csv(folder, "file_name,tags", "a.jpg,x", " ,y"))


def test_the_metadata_file_itself_may_be_given(folder):
    write_csv(folder, "file_name,tags", "a.jpg,x").joinpath("metadata.csv").rename(folder / "list.csv")
    source = read_source(folder / "list.csv")
    assert (source.folder, len(source), source.pictures) == (folder, 1, True)


def test_metadata_that_are_not_utf8_lose_nothing(folder):
    (folder / "metadata.csv").write_bytes(b"file_name,tags\na.jpg,caf\xe9\nb.jpg,caf\xc3\xa9\n")
    with pytest.warns(UserWarning, match=r"metadata\.csv, row 2: not UTF-8"):
        source = read_source(folder)
    assert column(source, "tags") == [["café"], ["café"]]


def test_without_a_tags_column_the_keywords_in_the_files_are_tags(folder):
    save_picture(folder / "k.jpg", xmp=xmp_packet("Sea"))
    source = read_source(write_csv(folder, "file_name,label", "a.jpg,x", "k.jpg,x"))
    assert column(source, "tags") == [[], ["sea"]]


def test_with_a_tags_column_the_keywords_in_the_files_are_not_read(folder):
    save_picture(folder / "k.jpg", xmp=xmp_packet("Sea"))
    assert column(read_source(write_csv(folder, "file_name,tags", "k.jpg,")), "tags") == [[]]


# Rows without pictures.


def test_if_no_picture_is_there_the_rows_have_tags_only(tmp_path):
    source = read_source(write_csv(tmp_path, "file_name,tags,labels", "im1.jpg,a;b,x", "im2.jpg,c,y", "im1.jpg,d,"))
    assert (source.pictures, column(source, "file_name")) == (False, ["im1.jpg", "im2.jpg"])
    assert source.skipped == [("im1.jpg", "duplicate row")]


def test_pictures_need_not_be_looked_for(folder):
    source = read_source(write_csv(folder, "file_name,tags", "a.jpg,x", "/none.jpg,y"), pictures="none")
    assert (source.pictures, len(source), source.skipped) == (False, 2, [])


def test_rows_without_names_are_called_by_their_numbers(tmp_path):
    source = read_source(write_csv(tmp_path, "tags,label", "a;b,x", "c,y"))
    assert (source.pictures, column(source, "file_name")) == (False, ["1", "2"])


@pytest.mark.parametrize("pictures", ["auto", "none"])
def test_neither_pictures_nor_tags_are_an_error(tmp_path, pictures):
    with pytest.raises(ValueError, match="there are no tags; the columns are file_name, label"):
        read_source(write_csv(tmp_path, "file_name,label", "a.jpg,x"), pictures=pictures)

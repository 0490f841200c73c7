import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pictopic import Corpus
from pictopic.corpus.store import FORMAT_VERSION, SCHEMA, Manifest, read_skipped, write_skipped


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("n_words", -1), ("n_words", 1e9), ("n_words", True), ("n_words", 2**40), ("n_features", "3"),
        ("multi_label", 0), ("words", []), ("source", None), ("options", {}), ("options", {"seed": "0"}),
        ("versions", 1), ("shards", {}), ("shards", [{}]), ("shards", None), ("unheard_of", 1),
    ],
)  # fmt: skip
def test_a_manifest_with_a_wrong_value_is_refused_in_one_line(corpus, key, value):
    path = corpus.folder / "corpus.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(ValueError, match=f"corpus.json is damaged: '{key}' is missing or wrong"):
        Corpus.open(corpus.folder)


@pytest.mark.parametrize("version", [1, FORMAT_VERSION - 1, None, "2", FORMAT_VERSION + 1])
def test_another_format_is_refused(corpus, version):
    path = corpus.folder / "corpus.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format_version": version}))
    with pytest.raises(ValueError, match=r"was written by an? (older|newer) pictopic"):
        Corpus.open(corpus.folder)


@pytest.mark.parametrize("change", [{"n_rows": 11}, {"name": "0" * 16}, {"pictures": "a\0b"}, {"sha256": {"../x": ""}}])
def test_a_shard_that_is_not_as_it_is_listed_is_refused(corpus, change):
    path = corpus.folder / "corpus.json"
    manifest = json.loads(path.read_text())
    manifest["shards"][0] |= change
    path.write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match=r"damaged|holds no counts"):
        Corpus.open(corpus.folder)


def test_a_table_that_stands_for_gigabytes_is_refused(corpus):
    n_values = 12 * 500
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n_values, np.int32)), pa.array(["x" * 1_000_000]))
    tags = pa.ListArray.from_arrays(pa.array(np.arange(0, n_values + 1, 500, dtype=np.int32)), text)
    path = next((corpus.folder / "shards").iterdir()) / "rows.parquet"
    table = pq.read_table(path)
    place = table.schema.get_field_index("tags")
    pq.write_table(table.set_column(place, "tags", tags), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 100_000
    with pytest.raises(ValueError, match="encoded in another way"):
        _ = Corpus.open(corpus.folder).tags


def test_a_table_that_is_too_large_is_refused_before_it_is_read(corpus, monkeypatch):
    monkeypatch.setattr("pictopic.corpus.store._MAX_TABLE", 100)
    with pytest.raises(ValueError, match="more than 100 bytes"):
        _ = Corpus.open(corpus.folder).tags


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\0" * 100 + b"PAR1"])
def test_a_table_that_is_no_parquet_is_refused(corpus, content):
    path = next((corpus.folder / "shards").iterdir()) / "rows.parquet"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"rows\.parquet is damaged"):
        _ = Corpus.open(corpus.folder).file_names


def test_rows_of_other_columns_are_refused(corpus):
    path = next((corpus.folder / "shards").iterdir()) / "rows.parquet"
    pq.write_table(pa.table({"file_name": ["a"] * 12}), path)
    with pytest.raises(ValueError, match=f"should have 12 rows of {SCHEMA.names[0]}"):
        _ = Corpus.open(corpus.folder).file_names


def test_a_manifest_that_is_no_json_object_is_refused(tmp_path):
    for text in ("", "[]", "nul", "[" * 100_000):
        (tmp_path / "corpus.json").write_text(text)
        with pytest.raises(ValueError, match=r"corpus\.json is damaged"):
            Manifest.read(tmp_path)


# ---- skipped.csv ----------------------------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.text() | st.text('a\r\n",; \0\u2028'), st.text('b\r\n",'))))
def test_what_was_skipped_is_read_back_as_it_was_written(tmp_path_factory, skipped):
    path = tmp_path_factory.getbasetemp() / "skipped.csv"
    write_skipped(path, skipped)
    assert read_skipped(path) == skipped


def test_a_name_that_is_not_utf8_can_be_written_down(tmp_path):
    write_skipped(tmp_path / "skipped.csv", [("caf\udce9.jpg", "missing")])
    assert read_skipped(tmp_path / "skipped.csv") == [("caf\\udce9.jpg", "missing")]


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b"a,b\n1,2\n", b'file_name,reason\n"' + b"x" * 200_000, b"file_name,reason\na\n"]
)
def test_a_damaged_list_of_what_was_skipped_is_named(tmp_path, content):
    (tmp_path / "skipped.csv").write_bytes(content)
    with pytest.raises(ValueError, match=r"skipped\.csv is damaged"):
        read_skipped(tmp_path / "skipped.csv")

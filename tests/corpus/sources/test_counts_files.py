"""Counts in CSV and LDA-C files."""

import pickle

import numpy as np
import pytest

from pictopic.corpus.sources.counts_files import read_csv_counts, read_ldac, read_words
from pictopic.corpus.sources.picture_folder import Columns


def _write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def _dense(source, n_rows=2):
    return np.vstack([block.toarray() for block, _ in source.counts.blocks(n_rows)]).tolist()


CSV = "file_name,sea,label,sky\na,1,x,0\nb,,,2.0\nc,0,y,0\n"


def test_csv_has_a_column_a_word(tmp_path):
    source = read_csv_counts(_write(tmp_path / "c.csv", CSV), Columns())
    assert source.counts.annotations == ("sea", "sky")
    assert (source.counts.n_visual_words, source.counts.n_words) == (0, 2)
    assert _dense(source) == [[1, 0], [0, 2], [0, 0]]
    assert source.rows.to_pylist()[:2] == [
        {"file_name": "a", "tags": [], "labels": ["x"], "split": None},
        {"file_name": "b", "tags": [], "labels": None, "split": None},
    ]
    assert (source.pictures, source.multi_label) == (False, False)


@pytest.mark.parametrize("n_rows", [1, 2, 3, 100])
def test_blocks_have_at_most_that_many_rows(tmp_path, n_rows):
    source = read_csv_counts(_write(tmp_path / "c.csv", CSV), Columns())
    blocks = [block for block, features in source.counts.blocks(n_rows) if features is None]
    assert max(block.shape[0] for block in blocks) <= n_rows
    assert sum(block.shape[0] for block in blocks) == 3
    assert {(block.dtype, block.shape[1], block.format) for block in blocks} == {(np.dtype(np.int32), 2, "csr")}


def test_csv_without_names_is_numbered_and_an_index_of_pandas_is_left_out(tmp_path):
    source = read_csv_counts(_write(tmp_path / "c.csv", ",sea\n0,1\n1,2\n"), Columns())
    assert source.rows["file_name"].to_pylist() == ["1", "2"]
    assert _dense(source) == [[1], [2]]


def test_of_two_csv_rows_of_a_name_the_first_is_kept(tmp_path):
    source = read_csv_counts(_write(tmp_path / "c.csv", "file_name,sea\na,1\na,2\nb,3\n"), Columns())
    assert source.skipped == [("a", "duplicate row")]
    assert _dense(source) == [[1], [3]]


def test_other_columns_of_csv_can_be_named(tmp_path):
    path = _write(tmp_path / "c.csv", "group,part,sea\ng,test,1\n")
    source = read_csv_counts(path, Columns(label_column="group", split_column="part"))
    assert source.rows.to_pylist() == [{"file_name": "1", "tags": [], "labels": ["g"], "split": "test"}]
    assert source.counts.annotations == ("sea",)


def test_csv_can_have_several_labels(tmp_path):
    source = read_csv_counts(_write(tmp_path / "c.csv", "labels,sea\nx;y,1\n"), Columns())
    assert (source.multi_label, source.rows["labels"].to_pylist()) == (True, [["x", "y"]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sea\n1\n-2\n", "row 3: 'sea' has the count '-2'"),
        ("sea\n1.5\n", "row 2: 'sea' has the count '1.5'"),
        ("sea\nmany\n", "row 2: 'sea' has the count 'many'"),
        ("sea\nnan\n", "row 2: 'sea' has the count 'nan'"),
        ("sea\n3000000000\n", "row 2: 'sea' has the count '3000000000'"),
        ("sea\n1e400\n", "row 2: 'sea' has the count '1e400'"),
        ("sea\n-inf\n", "row 2: 'sea' has the count '-inf'"),
        ("sea\n" + "9" * 9_000 + "\n", "row 2: 'sea' has the count '9999"),
        ("sea,sky\n1,1\n2147483647,1\n", "row 3: 2,147,483,648 words, more than"),
        ("x" * 201 + "\n1\n", "a word of more than 200 characters: xxx"),
        ("sea,sea\n1,2\n", "the word 'sea' is there twice"),
        ("sea,sky\n1,2,3\n", "row 2: 3 cells, but 2 columns"),
    ],
)
def test_mistakes_in_csv_name_file_and_row(tmp_path, text, message):
    with pytest.raises(ValueError, match=rf"c\.csv.*{message}"):
        read_csv_counts(_write(tmp_path / "c.csv", text), Columns())


def test_a_csv_column_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="no column 'group'; its columns are sea"):
        read_csv_counts(_write(tmp_path / "c.csv", "sea\n1\n"), Columns(label_column="group"))


LDAC = "2 0:1 3:2\n0\n1 1:4\n"


def test_ldac_without_words_has_visual_words(tmp_path):
    source = read_ldac(_write(tmp_path / "c.ldac", LDAC))
    assert (source.counts.n_visual_words, source.counts.annotations, source.counts.n_words) == (4, None, 4)
    assert _dense(source) == [[1, 0, 0, 2], [0, 0, 0, 0], [0, 4, 0, 0]]
    assert source.rows["file_name"].to_pylist() == ["1", "2", "3"]


@pytest.mark.parametrize("name", ["c.vocab", "vocab.txt"])
def test_ldac_words_are_read_beside_it(tmp_path, name):
    _write(tmp_path / name, "sea\nsky\nsand\nsun\nunused\n")
    source = read_ldac(_write(tmp_path / "c.ldac", LDAC))
    assert source.counts.annotations == ("sea", "sky", "sand", "sun", "unused")
    assert source.counts.n_visual_words == 0
    assert _dense(source)[0] == [1, 0, 0, 2, 0]


@pytest.mark.parametrize("name", ["c.labels", "labels.txt", "labels"])
def test_ldac_labels_are_read_beside_it(tmp_path, name):
    _write(tmp_path / name, "x\n\n3\n")
    source = read_ldac(_write(tmp_path / "c.ldac", LDAC))
    assert source.rows["labels"].to_pylist() == [["x"], None, ["3"]]


def test_words_that_occur_twice_in_a_line_are_added_and_zeros_left_out(tmp_path):
    source = read_ldac(_write(tmp_path / "c.ldac", "3 0:1 0:2 1:0\n\n"))
    block, _ = next(source.counts.blocks(9))
    assert (block.toarray().tolist(), block.nnz) == ([[3, 0]], 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 0:1\n2 0:1\n", "row 2: not a number of words, followed by as many word:count"),
        ("1 0\n", "row 1: not a number"),
        ("1 0:1:2\n", "row 1: not a number"),
        ("x 0:1\n", "row 1: not a number"),
        ("1 -1:1\n", "row 1: there is no word -1"),
        ("1 0:-1\n", "row 1: word 0 has the count -1"),
        ("1 0:2147483648\n", "row 1: word 0 has the count 2147483648"),
        ("2 0:2147483647 0:1\n", "row 1: 2,147,483,648 words, more than"),
        ("1 0:1\n2 0:2147483647 1:2147483647\n", "row 2: 4,294,967,294 words, more than"),
        ("1 10000000:1\n", "row 1: there is no word 10000000"),
        ("1 0:1.0\n", "row 1: not a number"),
        ("1 0:nan\n", "row 1: not a number"),
        ("1 0:1e400\n", "row 1: not a number"),
        ("1 0:" + "9" * 9_000 + "\n", "row 1: not a number"),
        ("1 0:" + "9" * 4_000 + "\n", "row 1: word 0 has the count 9999"),
        ("1 " + "9" * 4_000 + ":1\n", "row 1: there is no word 9999"),
        ("1 0:1\n\n1 0:1\n", "row 2: an empty line"),
    ],
)
def test_mistakes_in_ldac_name_file_and_row(tmp_path, text, message):
    with pytest.raises(ValueError, match=rf"c\.ldac, {message}") as error:
        read_ldac(_write(tmp_path / "c.ldac", text))
    assert len(str(error.value)) < 500


def test_the_largest_counts_are_kept(tmp_path):
    assert _dense(read_ldac(_write(tmp_path / "c.ldac", "2 0:2147483646 0:1\n"))) == [[2**31 - 1]]
    assert _dense(read_csv_counts(_write(tmp_path / "c.csv", "sea\n2147483647\n"), Columns())) == [[2**31 - 1]]


def test_an_ldac_word_outside_of_the_vocabulary_is_an_error(tmp_path):
    _write(tmp_path / "vocab.txt", "sea\n")
    with pytest.raises(ValueError, match="row 1: there is no word 3, only 1"):
        read_ldac(_write(tmp_path / "c.ldac", LDAC))


@pytest.mark.parametrize("labels", ["x\n", "x\ny\nz\nw\n"])
def test_another_number_of_ldac_labels_is_an_error(tmp_path, labels):
    _write(tmp_path / "labels.txt", labels)
    with pytest.raises(ValueError, match=rf"labels\.txt has {labels.count(chr(10))} rows, but .*c\.ldac has 3"):
        read_ldac(_write(tmp_path / "c.ldac", LDAC))


def test_a_vocabulary_may_have_numbers_and_frequencies(tmp_path):
    assert read_words(_write(tmp_path / "v", "0 sea 10\n1 sky 5\n")) == ("sea", "sky")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\n\nb\n", "row 2: there is no word"),
        ("a\nb\na\n", "'a' is there twice"),
        ("x" * 201, "more than 200 characters"),
    ],
)
def test_mistakes_in_a_vocabulary_are_named(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_words(_write(tmp_path / "v", text))


def test_counts_change_the_fingerprint(tmp_path):
    one, two = (read_ldac(_write(tmp_path / f"{n}.ldac", f"1 0:{n}\n")) for n in (1, 2))
    assert one.fingerprint != two.fingerprint


def test_counts_can_be_sent_to_other_processes(tmp_path):
    for source in (
        read_ldac(_write(tmp_path / "c.ldac", LDAC)),
        read_csv_counts(_write(tmp_path / "c.csv", CSV), Columns()),
    ):
        counts = pickle.loads(pickle.dumps(source.counts))  # noqa: S301
        assert next(counts.blocks(9))[0].shape[0] == 3

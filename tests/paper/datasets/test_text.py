"""Corpora of text."""

import numpy as np
import pytest

from pictopic.paper.datasets.text import PARTS, find_text_corpora, read_text
from tests.paper.datasets.conftest import write_text


def write_corpus(folder, documents="0,0 2 2\n1,1\n"):
    write_text(folder / "vocab_docnade.vocab", "goal\nball\nstock\n")
    for part in PARTS:
        write_text(folder / f"{part}_docnade.csv", documents)


@pytest.fixture
def corpus(tmp_path):
    """Two documents a part."""
    write_corpus(tmp_path)
    return tmp_path


def test_parts_have_counts_labels_and_words(corpus):
    parts = read_text(corpus)
    assert list(parts) == ["training", "validation", "test"]
    assert parts["test"].X.toarray().tolist() == [[1, 0, 2], [0, 1, 0]]
    assert parts["test"].X.dtype == np.int32
    assert parts["test"].labels.tolist() == ["0", "1"]
    assert parts["test"].vocabulary == ("goal", "ball", "stock")


def test_labels_have_the_names_of_their_file(corpus):
    write_text(corpus / "labels.txt", "sport\nbusiness\nworld\n")
    part = read_text(corpus)["training"]
    assert part.labels.tolist() == ["sport", "business"]
    assert part.classes == ("sport", "business", "world")


def test_classes_without_names_are_those_of_all_parts_in_the_order_of_their_numbers(corpus):
    write_text(corpus / "test_docnade.csv", "10,0\n9,1\n")
    assert read_text(corpus)["training"].classes == ("0", "1", "9", "10")


def test_several_labels_of_a_document_make_matrices(corpus):
    write_text(corpus / "training_docnade.csv", "2:0,0 1\n1,2\n:0:,1\n")
    parts = read_text(corpus)
    assert parts["training"].classes == ("0", "1", "2")
    assert parts["training"].labels.tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert parts["test"].labels.tolist() == [[1, 0, 0], [0, 1, 0]]


def test_a_document_may_have_no_label(corpus):
    write_text(corpus / "training_docnade.csv", ",0 1\n1,2\n")
    assert read_text(corpus)["training"].labels.tolist() == [None, "1"]


def test_a_document_may_have_no_words(corpus):
    write_text(corpus / "training_docnade.csv", "0,\n1,2\n")
    assert read_text(corpus)["training"].X.sum(axis=1).tolist() == [0, 1]


def test_empty_lines_and_other_line_ends_do_not_matter(corpus):
    (corpus / "training_docnade.csv").write_bytes(b"0,0 2 2\r\n\r\n1,1\r\n\r\n")
    part = read_text(corpus)["training"]
    assert part.X.toarray().tolist() == [[1, 0, 2], [0, 1, 0]]


@pytest.mark.parametrize("name", [*(f"{part}_docnade.csv" for part in PARTS), "vocab_docnade.vocab"])
def test_what_is_missing_is_named(corpus, name):
    (corpus / name).unlink()
    with pytest.raises(ValueError, match=f"{name} is missing: .*; `pictopic reproduce text --help` shows the layout"):
        read_text(corpus)


@pytest.mark.parametrize("name", ["training_docnade.csv", "vocab_docnade.vocab"])
def test_an_empty_file_is_an_error(corpus, name):
    write_text(corpus / name, "")
    with pytest.raises(ValueError, match=f"{name} is empty"):
        read_text(corpus)


@pytest.mark.parametrize("word", ["3", "-1", "1.0", "ball", "²", "9" * 5000])
def test_a_bad_word_is_an_error_with_file_and_row(corpus, word):
    write_text(corpus / "validation_docnade.csv", f"0,0 1\n1,1 {word}\n")
    with pytest.raises(ValueError, match=r"validation_docnade\.csv, row 2: .* is not the id of a word, 0 to 2"):
        read_text(corpus)


@pytest.mark.parametrize("label", ["2", "sport", "0:2"])
def test_a_label_without_a_name_is_an_error(corpus, label):
    write_text(corpus / "labels.txt", "sport\nbusiness\n")
    write_text(corpus / "test_docnade.csv", f"{label},1\n")
    with pytest.raises(ValueError, match=r"test_docnade\.csv, row 1: .* is not the number of a label, 0 to 1"):
        read_text(corpus)


def test_a_line_without_a_comma_is_an_error(corpus):
    write_text(corpus / "test_docnade.csv", "0 1 2\n")
    with pytest.raises(ValueError, match=r"test_docnade\.csv, row 1: not a label, a comma and word ids: 0 1 2"):
        read_text(corpus)


@pytest.mark.parametrize("place", ["", "text"])
def test_corpora_are_found_in_sub_folders(tmp_path, place):
    for name in ("TMN", "20NSshort"):
        write_corpus(tmp_path / place / name)
    (tmp_path / place / "notes").mkdir()
    assert find_text_corpora(tmp_path) == [tmp_path / place / "20NSshort", tmp_path / place / "TMN"]


def test_a_folder_may_be_a_corpus_itself(corpus):
    assert find_text_corpora(corpus) == [corpus]


def test_no_corpus_at_all_is_an_error(tmp_path):
    with pytest.raises(ValueError, match=r"training_docnade\.csv is missing: no sub-folder has such a file"):
        find_text_corpora(tmp_path)

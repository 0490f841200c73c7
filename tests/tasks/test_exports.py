import csv
import io

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pictopic import Corpus
from pictopic.tasks.exports import cut_patch, mosaic, tags_csv, write_tags, write_thumbnails, write_vectors
from pictopic.words.codebook import Patch
from pictopic.words.tags import split_tags
from tests.corpus.conftest import WORDS, photos  # noqa: F401 - a fixture


def test_tags_are_written_as_they_are_read(tmp_path):
    write_tags(tmp_path / "tags.csv", ['a, "b".jpg', "c.jpg"], [[("sea", 0.5), ("sky", 0.2)], []])
    rows = list(csv.DictReader((tmp_path / "tags.csv").open(newline="")))
    assert rows == [{"file_name": 'a, "b".jpg', "tags": "sea;sky"}, {"file_name": "c.jpg", "tags": ""}]


@given(st.lists(st.tuples(st.text(min_size=1), st.lists(st.text(min_size=1), max_size=3)), max_size=3))
def test_names_and_tags_of_any_characters_are_read_back(rows):
    tags = [(name, split_tags(own)) for name, own in rows]
    cells = list(csv.reader(io.StringIO(tags_csv(tags), newline="")))
    assert cells[0] == ["file_name", "tags"]
    assert [(name, split_tags(cell)) for name, cell in cells[1:]] == tags


def test_vectors_that_cannot_be_written_leave_the_old_file(tmp_path, photos, monkeypatch):  # noqa: F811
    corpus = Corpus.build(photos, tmp_path / "corpus", **WORDS)
    folder = tmp_path / "out"
    write_vectors(folder / "v.parquet", corpus, np.ones((12, 3)))
    before = (folder / "v.parquet").read_bytes()
    assert pq.read_table(folder / "v.parquet")["vector"].to_pylist() == [[1.0] * 3] * 12
    write = pq.write_table

    def full(table, where):
        write(table, where)
        raise OSError("disk full")

    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    with pytest.raises(OSError, match="disk full"):
        write_vectors(folder / "v.parquet", corpus, np.zeros((12, 3)))
    assert [(path.name, path.read_bytes()) for path in folder.iterdir()] == [("v.parquet", before)]


def test_hostile_names_are_only_text_on_a_page(tmp_path):
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    write_thumbnails(tmp_path / "page.html", "<script>x</script>", [('"><script>', tmp_path / "a.png", "<b>")])
    page = (tmp_path / "page.html").read_text()
    assert "<script>" not in page
    assert "<b>" not in page


def test_a_picture_that_is_gone_leaves_its_name_on_the_page(tmp_path):
    write_thumbnails(tmp_path / "page.html", "found", [("gone.jpg", tmp_path / "gone.jpg", "0.5")])
    assert "gone.jpg: missing" in (tmp_path / "page.html").read_text()


def test_a_patch_is_cut_where_it_was_found(tmp_path):
    pixels = np.zeros((40, 40, 3), np.uint8)
    pixels[12:28, 4:20] = 200
    Image.fromarray(pixels).save(tmp_path / "a.png")
    found = cut_patch(Patch("a.png", 12, 20, 4), tmp_path / "a.png", None)
    assert found.size == (16, 16)
    assert np.asarray(found).min() == 200


def test_a_patch_of_a_picture_that_is_gone_is_none(tmp_path):
    assert cut_patch(Patch("a.png", 12, 20, 4), tmp_path / "a.png", None) is None


def test_mosaic_puts_tiles_row_by_row():
    colours = ["red", "lime", "blue"]
    page = mosaic([Image.new("RGB", (16, 16), colour) for colour in colours], columns=2, side=10)
    assert [page.getpixel(place) for place in [(5, 5), (17, 5), (5, 17)]] == [(255, 0, 0), (0, 255, 0), (0, 0, 255)]


def test_tiles_that_are_missing_are_grey():
    page = mosaic([None, Image.new("RGB", (4, 4), "red")], columns=2, side=10)
    assert page.getpixel((5, 5)) == (128, 128, 128)
    assert page.getpixel((17, 17)) == (128, 128, 128)
    assert page.getpixel((17, 5)) == (255, 0, 0)

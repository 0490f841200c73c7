import pytest
from PIL import Image

from pictopic import Corpus
from pictopic.corpus.sources import read_source
from pictopic.corpus.summary import estimate
from pictopic.words.extract import WordOptions
from tests.corpus.conftest import WORDS
from tests.support.pictures import made_photo


def test_disk_space_is_near_to_what_is_used(photos, tmp_path):
    cost = estimate(read_source(photos), WordOptions(n_words=6, step=12, features=("cld", "ehd")), n_jobs=1)
    corpus = Corpus.build(photos, tmp_path / "corpus", **WORDS, features=("cld", "ehd"))
    used = sum(path.stat().st_size for path in (corpus.folder / "shards").rglob("*.npy"))
    assert cost.pictures == cost.tried == 12
    assert cost.bytes == pytest.approx(used, rel=0.4)


def test_more_pictures_cost_more_time(photos):
    source = read_source(photos)
    cheap = estimate(source, WordOptions(n_words=6, step=12))
    dear = estimate(source, WordOptions(n_words=500, step=1, bin_sizes=(2, 3)))
    assert dear.seconds > 3 * cheap.seconds > 0


def test_large_pictures_get_a_hint(tmp_path):
    Image.fromarray(made_photo(900, 1200)).save(tmp_path / "a.jpg")
    lines = estimate(read_source(tmp_path), WordOptions()).lines()
    assert "with --max-side 480 each has 6 times fewer patches" in lines[-1]


def test_unreadable_pictures_are_told(photos):
    for k in range(3):
        (photos / f"{k}.jpg").write_bytes(b"nothing")
    assert "3 of 12 could not be read" in estimate(read_source(photos), WordOptions(n_words=6)).lines()


def test_tags_alone_cost_nothing(tmp_path):
    (tmp_path / "metadata.csv").write_text("tags\nsea\n")
    assert estimate(read_source(tmp_path, pictures="none"), WordOptions()).seconds == 0

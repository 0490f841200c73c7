from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.svm import SVC

from pictopic.corpus.corpus import Corpus
from pictopic.corpus.sources import read_source
from pictopic.demo import scenes
from pictopic.demo.scenes import SCENES, TAGS, Scene, draw_scene, write_scenes


@pytest.fixture(scope="module")
def made() -> list[Scene]:
    return [draw_scene(number, seed=11) for number in range(200)]


def _by_label(made: list[Scene]) -> dict[str, Counter[str]]:
    """How many pictures of each class have each tag."""
    counts: dict[str, Counter[str]] = {label: Counter() for label in SCENES}
    for scene in made:
        counts[scene.label].update(scene.true_tags)
    return counts


def _read_all(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.*")}


# ---- pictures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(8))
def test_same_number_and_seed_give_the_same_scene(number):
    first, second = draw_scene(number, seed=3), draw_scene(number, seed=3)
    assert first.pixels.tobytes() == second.pixels.tobytes()
    assert first[1:] == second[1:]


def test_another_number_or_seed_gives_another_picture():
    pictures = {draw_scene(number, seed).pixels.tobytes() for number in (0, 8) for seed in (0, 1)}
    assert len(pictures) == 4


def test_pictures_are_256_pixels_square_with_bytes_of_red_green_and_blue(made):
    assert {(scene.pixels.shape, scene.pixels.dtype.name) for scene in made} == {((256, 256, 3), "uint8")}


def test_classes_are_balanced(made):
    assert Counter(scene.label for scene in made) == dict.fromkeys(SCENES, 25)


def test_label_can_be_chosen():
    assert draw_scene(0, label="forest").label == "forest"


def test_unknown_label_is_an_error_that_names_the_known_ones():
    with pytest.raises(ValueError, match=r"no scene 'kitchen'; there are highway, .*, mountain"):
        draw_scene(0, label="kitchen")


def test_some_pictures_are_gray_and_most_are_not(made):
    gray = [(scene.pixels[..., 0] == scene.pixels[..., 2]).mean() > 0.99 for scene in made]
    assert 0.01 < np.mean(gray) < 0.15


def test_light_varies_within_each_class(made):
    for label in SCENES:
        brightness = [scene.pixels.mean() for scene in made if scene.label == label]
        assert np.std(brightness) > 8


def test_nothing_is_left_unpainted(made):
    # Bare canvas would be a black patch whose pixels differ by the camera's noise only.
    for scene in made:
        patches = scene.pixels.reshape(16, 16, 16, 16, 3).max(axis=(1, 3, 4))
        assert (patches == 0).mean() < 0.02


# ---- tags ------------------------------------------------------------------------------------------------------------


def test_vocabulary_has_30_to_45_tags_and_no_class_is_among_them():
    assert 30 <= len(set(TAGS)) == len(TAGS) <= 45
    assert set(TAGS) & set(SCENES) == set()


def test_each_picture_has_three_to_nine_different_tags_of_the_vocabulary(made):
    for scene in made:
        assert 3 <= len(set(scene.tags)) == len(scene.tags) <= 9
        assert set(scene.tags) | set(scene.true_tags) <= set(TAGS)
        assert len(scene.true_tags) >= 3


def test_about_15_percent_of_the_true_tags_are_missing(made):
    missing = sum(tag not in scene.tags for scene in made for tag in scene.true_tags)
    assert 0.11 < missing / sum(len(scene.true_tags) for scene in made) < 0.2


def test_about_3_percent_of_the_tags_are_wrong(made):
    wrong = sum(tag not in scene.true_tags for scene in made for tag in scene.tags)
    assert 0.015 < wrong / sum(len(scene.tags) for scene in made) < 0.05


def test_some_tags_are_rare_and_some_are_in_most_pictures(made):
    shares = Counter(tag for scene in made for tag in scene.true_tags)
    assert sum(shares[tag] <= 2 for tag in TAGS) >= 3  # 1 % of 200
    assert shares["sky"] > 120


@pytest.mark.parametrize(
    ("label", "tags"),
    [
        ("highway", {"road", "sky"}),
        ("insidecity", {"building", "window"}),
        ("coast", {"sea", "sky"}),
        ("forest", {"tree"}),
        ("tallbuilding", {"building", "window"}),
        ("street", {"road", "building"}),
        ("opencountry", {"grass", "sky"}),
        ("mountain", {"peak", "sky"}),
    ],
)
def test_what_makes_a_scene_is_nearly_always_among_its_true_tags(made, label, tags):
    counts = _by_label(made)[label]
    assert all(counts[tag] >= 0.8 * 25 for tag in tags)


@pytest.mark.parametrize("label", SCENES)
def test_every_class_has_tags_that_are_rarer_elsewhere(made, label):
    counts = _by_label(made)
    everywhere = sum(counts.values(), Counter())
    assert any(n > 0.5 * 25 and 7 * n > 2 * (everywhere[tag] - n) for tag, n in counts[label].items())


@pytest.mark.parametrize("label", SCENES)
def test_every_class_shares_tags_with_others(made, label):
    counts = _by_label(made)
    elsewhere = {tag for other in SCENES if other != label for tag in counts[other]}
    assert len(set(counts[label]) & elsewhere) >= 5


# ---- the folder ------------------------------------------------------------------------------------------------------


def test_written_folder_is_a_source_with_tags_and_labels(tmp_path):
    source = read_source(write_scenes(tmp_path / "scenes", n=9, seed=2))
    rows = source.rows.to_pylist()
    assert source.skipped == []
    assert [row["labels"] for row in rows] == [[SCENES[number % 8]] for number in range(9)]
    assert [row["tags"] for row in rows] == [draw_scene(number, seed=2).tags for number in range(9)]


def test_metadata_have_the_columns_of_an_image_folder(tmp_path):
    folder = write_scenes(tmp_path, n=1)
    with (folder / "metadata.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["file_name", "tags", "label"]
    assert rows[0]["file_name"] == "images/highway/00000.jpg"
    assert rows[0]["tags"].split(";") == draw_scene(0).tags


def test_written_pictures_look_as_drawn(tmp_path):
    folder = write_scenes(tmp_path, n=1, quality=95)
    pixels = np.asarray(Image.open(folder / "images/highway/00000.jpg"), float)
    assert np.abs(pixels - draw_scene(0).pixels).mean() < 4


def test_pictures_do_not_depend_on_how_many_are_written(tmp_path):
    few, more = _read_all(write_scenes(tmp_path / "few", n=2)), _read_all(write_scenes(tmp_path / "more", n=5))
    for name in ("images/highway/00000.jpg", "images/insidecity/00001.jpg"):
        assert few[name] == more[name]


def test_complete_folder_is_reused(tmp_path, monkeypatch):
    before = _read_all(write_scenes(tmp_path, n=2))
    monkeypatch.setattr(scenes, "draw_scene", None)
    assert _read_all(write_scenes(tmp_path, n=2)) == before


def test_folder_with_other_options_is_written_anew(tmp_path):
    write_scenes(tmp_path, n=3, seed=0)
    source = read_source(write_scenes(tmp_path, n=2, seed=1))
    assert [row["tags"] for row in source.rows.to_pylist()] == [draw_scene(number, seed=1).tags for number in range(2)]


def test_killed_write_leaves_no_metadata_and_can_be_repeated(tmp_path, monkeypatch):
    def killed(number, seed):
        if number == 2:
            raise KeyboardInterrupt
        return draw_scene(number, seed)

    monkeypatch.setattr(scenes, "draw_scene", killed)
    with pytest.raises(KeyboardInterrupt):
        write_scenes(tmp_path / "a", n=3)
    assert (tmp_path / "a" / "images").is_dir()
    assert not (tmp_path / "a" / "metadata.csv").exists()
    monkeypatch.undo()
    assert _read_all(write_scenes(tmp_path / "a", n=3)) == _read_all(write_scenes(tmp_path / "b", n=3))


def test_folder_of_other_pictures_is_not_overwritten(tmp_path):
    (tmp_path / "metadata.csv").write_text("file_name,tags\na.jpg,sea\n")
    with pytest.raises(ValueError, match="not from here"):
        write_scenes(tmp_path, n=1)
    assert (tmp_path / "metadata.csv").read_text() == "file_name,tags\na.jpg,sea\n"


def test_nothing_is_written_among_pictures_without_metadata(tmp_path):
    (tmp_path / "holiday.jpg").write_bytes(b"precious")
    with pytest.raises(ValueError, match="not from here"):
        write_scenes(tmp_path, n=1)
    assert [path.name for path in tmp_path.iterdir()] == ["holiday.jpg"]


# ---- how hard they are -----------------------------------------------------------------------------------------------


def _colours(path: Path) -> np.ndarray:
    pixels = np.asarray(Image.open(path).convert("RGB").convert("HSV")).reshape(-1, 3)
    return np.histogramdd(pixels, bins=(8, 4, 4), range=[(0, 256)] * 3)[0].ravel() / len(pixels)


def _accuracy(X: np.ndarray, y: np.ndarray) -> float:
    """Of an RBF SVM that learns from half of the pictures; mean of three splits."""
    gamma = [factor / X.shape[1] / X.var() for factor in (0.1, 0.3, 1, 3)]
    search = GridSearchCV(SVC(), {"C": [1, 10, 100], "gamma": gamma}, cv=3)
    splits = StratifiedShuffleSplit(3, test_size=0.5, random_state=0).split(X, y)
    return float(np.mean([search.fit(X[train], y[train]).score(X[test], y[test]) for train, test in splits]))


@pytest.mark.slow
def test_colours_do_not_give_the_classes_away_but_shapes_tell_them_apart(tmp_path):
    folder = write_scenes(tmp_path / "scenes", n=400, seed=100)
    corpus = Corpus.build(folder, tmp_path / "corpus", n_jobs=1)
    colours = np.sqrt([_colours(folder / name) for name in corpus.file_names])
    words = corpus.X.toarray()[:, : -corpus.vocabulary.n_annotation_words]
    assert words.shape[1] == 960
    assert 0.4 < _accuracy(colours, corpus.labels) < 0.75
    assert 0.7 < _accuracy(np.sqrt(words / 961), corpus.labels) < 0.98

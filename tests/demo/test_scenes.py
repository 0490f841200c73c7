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
from pictopic.demo.scenes.canvas import Canvas
from pictopic.demo.scenes.land import flat_land, see_land
from pictopic.demo.scenes.tags import given_tags, visible_tags
from pictopic.demo.scenes.view import Camera, choose_light


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


def test_what_is_painted_over_is_no_longer_visible():
    canvas = Canvas()
    everywhere = np.ones((256, 256), np.float32)
    canvas.layer(np.full((3, 256, 256), 90.0), everywhere, "sea")
    canvas.layer(np.full((3, 256, 256), 90.0), everywhere, "sand")
    canvas.ellipse((128, 128), 20, 20, (200, 0, 0), "boat")
    assert set(canvas.shares()) == {"sand", "boat"}
    assert canvas.shares()["boat"] == pytest.approx(np.pi * 100 / 256**2, rel=0.15)


def test_a_tag_is_true_from_a_size_on():
    large = {"sky": 0.4, "grass": 0.3, "tree": 0.2}
    assert "car" in visible_tags({**large, "car": 0.01})
    assert "car" not in visible_tags({**large, "car": 0.0005})


def test_nobody_gives_fewer_than_three_tags():
    rng = np.random.default_rng(0)
    assert min(len(given_tags(rng, ["sky", "sea", "sand", "boat"])) for _ in range(300)) == 3


# ---- the ground ------------------------------------------------------------------------------------------------------


def test_ground_without_hills_is_the_same_in_slices_as_in_one_formula():
    camera = Camera(horizon=100, height=2)
    light = choose_light(np.random.default_rng(0))
    seen = see_land(camera, light, lambda x, z: 0 * x, np.geomspace(2, 5000, 200))
    flat = flat_land(camera)
    near = slice(110 - 256, None)
    np.testing.assert_allclose(seen.z[near], flat.z[near], rtol=0.02)
    np.testing.assert_allclose(seen.x[near], flat.x[near], rtol=0.02, atol=0.02)


def test_each_pixel_shows_the_first_ground_that_its_ray_meets():
    camera = Camera(horizon=120, height=6)
    light = choose_light(np.random.default_rng(0))

    def height(x, z):
        return 8 * np.sin(z / 25) ** 2 + 3 * np.cos(x / 15)

    land = see_land(camera, light, height, np.geomspace(2, 300, 800))
    distance = np.linspace(2, 300, 60_000)
    for row, column in [(110, 30), (118, 128), (130, 200), (150, 60), (180, 128), (140, 10)]:
        up, right = (camera.horizon - row - 0.5) / camera.focal, (column + 0.5 - camera.centre) / camera.focal
        below = camera.height + up * distance < height(right * distance, distance)
        if not below.any():
            assert row < land.top or land.seen[row - land.top, column] == 0
        else:
            assert land.z[row - land.top, column] == pytest.approx(distance[below.argmax()], rel=0.03)


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

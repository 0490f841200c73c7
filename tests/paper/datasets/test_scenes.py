"""LabelMe and UIUC-Sports, in all the ways they lie on disks."""

import warnings

import numpy as np
import pytest

from pictopic.paper.datasets.scenes import SCENES, SPORTS, read_labelme, read_splits, read_uiuc_sports
from tests.paper.datasets.conftest import column, labelme_xml, write_picture, write_text

PICTURES = "spatial_envelope_256x256_static_8outdoorcategories"
SPORTS_FOLDERS = ("badminton", "bocce", "croquet", "polo", "RockClimbing", "Rowing", "sailing", "snowboarding")


def write_scenes(folder, pattern, n=2):
    """Pictures of every scene; the pattern has {scene} and {k}."""
    for scene in SCENES:
        for k in range(n):
            write_picture(folder / pattern.format(scene=scene, k=k), k)


@pytest.fixture
def scenes(tmp_path):
    """Pictures in one folder, as in the archive."""
    write_scenes(tmp_path, PICTURES + "/{scene}_art{k}.jpg")
    return tmp_path


def test_the_class_is_the_name_up_to_the_underscore(scenes):
    source = read_labelme(scenes)
    assert (len(source), source.pictures, source.multi_label, source.skipped) == (16, True, False, [])
    assert source.folder == scenes
    labels = column(source, "labels")
    assert labels[f"{PICTURES}/coast_art0.jpg"] == ["coast"]
    assert sorted({label for (label,) in labels.values()}) == sorted(SCENES)


@pytest.mark.parametrize(
    "pattern",
    [
        "{scene}_art{k}.jpg",
        "Images/" + PICTURES + "/{scene}_art{k}.jpg",
        "images/" + PICTURES + "/{scene}_art{k}.JPG",
        "{scene}/x{k}.jpg",
        "Images/{scene}/x{k}.jpg",
        PICTURES + "/{scene}/{scene}_art{k}.jpg",
        "labelme/{scene}/x{k}.jpg",
    ],
)
def test_other_layouts_are_read_too(tmp_path, pattern):
    write_scenes(tmp_path, pattern)
    source = read_labelme(tmp_path)
    assert [labels for (labels,) in source.rows["labels"].to_pylist()] == [scene for scene in SCENES for _ in range(2)]


def test_rows_have_one_order_whatever_the_file_system_says(scenes):
    names = read_labelme(scenes).rows["file_name"].to_pylist()
    assert names == sorted(names)


def test_tags_come_from_annotations_beside_the_pictures(scenes):
    write_text(scenes / PICTURES / "coast_art1.xml", labelme_xml("Sky", "sea water", deleted="boat"))
    tags = column(read_labelme(scenes), "tags")
    assert tags.pop(f"{PICTURES}/coast_art1.jpg") == ["sky", "sea water"]
    assert set(map(len, tags.values())) == {0}


def test_tags_come_from_labelmes_own_folders(tmp_path):
    write_scenes(tmp_path, "Images/" + PICTURES + "/{scene}_art{k}.jpg")
    write_text(tmp_path / "Annotations" / PICTURES / "street_art0.xml", labelme_xml("car"))
    assert column(read_labelme(tmp_path), "tags")[f"Images/{PICTURES}/street_art0.jpg"] == ["car"]


def test_damaged_annotations_are_named_in_a_warning_and_the_picture_stays(scenes):
    write_text(scenes / PICTURES / "coast_art0.xml", "<annotation><object>")
    write_text(scenes / PICTURES / "coast_art1.xml", "<!DOCTYPE a>" + labelme_xml("sky"))
    with pytest.warns(UserWarning, match=r"no tags: .*coast_art0\.xml \(not XML.*coast_art1\.xml \(it has a .*DOCTYPE"):
        source = read_labelme(scenes)
    assert len(source) == 16
    assert column(source, "tags")[f"{PICTURES}/coast_art1.jpg"] == []


def test_many_damaged_files_are_counted(scenes):
    for scene in SCENES:
        write_text(scenes / PICTURES / f"{scene}_art0.xml", "")
    with pytest.warns(UserWarning, match=r"and 5 more$"):
        read_labelme(scenes)


def test_without_damage_there_is_no_warning(scenes):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        source = read_labelme(scenes)
    assert source.skipped == []


def test_a_folder_without_pictures_is_an_error_that_names_what_is_missing(tmp_path):
    with pytest.raises(ValueError, match=rf"/{PICTURES} is missing: the pictures \({PICTURES}\.zip\); `pictopic"):
        read_labelme(tmp_path)


@pytest.mark.parametrize("pattern", ["{scene}_{k}.jpg", "{scene}/{k}.jpg"])
def test_a_scene_without_pictures_is_an_error(tmp_path, pattern):
    write_scenes(tmp_path, pattern, n=1)
    (tmp_path / pattern.format(scene="forest", k=0)).unlink()
    with pytest.raises(ValueError, match=r"/forest(_\*\.jpg)? is missing: the pictures of the class forest"):
        read_labelme(tmp_path)


def test_a_link_to_a_picture_elsewhere_is_skipped(scenes, tmp_path_factory):
    other = tmp_path_factory.mktemp("other") / "secret.jpg"
    write_picture(other)
    (scenes / PICTURES / "coast_link.jpg").symlink_to(other)
    source = read_labelme(scenes)
    assert (len(source), source.skipped) == (16, [(f"{PICTURES}/coast_link.jpg", "outside the folder")])


def test_other_files_are_no_pictures(scenes):
    write_text(scenes / PICTURES / "coast_notes.txt", "")
    write_text(scenes / PICTURES / "Thumbs.db", "")
    write_text(scenes / PICTURES / ".coast_hidden.jpg", "")
    assert len(read_labelme(scenes)) == 16


@pytest.fixture
def image_folder(tmp_path):
    """Three pictures with metadata."""
    folder = tmp_path / "labelme8"
    lines = ["file_name,label"]
    for k, label in enumerate(["coast", "forest", "street"]):
        write_picture(folder / "images" / f"{k}.jpg", k)
        lines.append(f"images/{k}.jpg,{label}")
    write_text(folder / "metadata.csv", "\n".join(lines))
    return folder


def test_an_image_folder_is_read(image_folder):
    source = read_labelme(image_folder)
    assert source.rows["labels"].to_pylist() == [["coast"], ["forest"], ["street"]]
    assert source.rows["tags"].to_pylist() == [[], [], []]


def test_an_image_folder_may_have_tags_and_a_split(image_folder):
    write_text(image_folder / "metadata.csv", "file_name,label,tags,split\nimages/1.jpg,forest,Tree;moss,train\n")
    assert read_labelme(image_folder).rows.to_pylist() == [
        {"file_name": "images/1.jpg", "tags": ["tree", "moss"], "labels": ["forest"], "split": "train"}
    ]


def test_hostile_names_in_metadata_are_skipped(image_folder):
    with (image_folder / "metadata.csv").open("a") as file:
        file.write("\n../secret.jpg,coast\n")
    assert read_labelme(image_folder).skipped == [("../secret.jpg", "outside the folder")]


def test_metadata_of_other_data_sets_is_not_taken(scenes):
    write_text(scenes / "corel5k" / "metadata.csv", "file_name,tags\na.jpg,sun\n")
    assert len(read_labelme(scenes)) == 16


SPLITS = "file_name,split1,split2\nimages/2.jpg,train,test\nimages/0.jpg,test,train\n./images/1.jpg,train,train\n"


def test_splits_are_masks_over_the_rows_of_the_source(image_folder):
    write_text(image_folder / "splits.csv", SPLITS)
    first, second = read_splits(image_folder, read_labelme(image_folder))
    assert (first.dtype, first.tolist(), second.tolist()) == (np.bool_, [False, True, True], [True, True, False])


def test_splits_lie_with_the_data_set(image_folder):
    write_text(image_folder / "splits.csv", SPLITS)
    assert len(read_splits(image_folder.parent, read_labelme(image_folder.parent))) == 2


def test_without_a_file_there_are_no_splits(image_folder):
    assert read_splits(image_folder, read_labelme(image_folder)) is None


def test_pictures_that_are_not_in_the_source_do_not_matter(image_folder):
    write_text(image_folder / "splits.csv", SPLITS + "images/9.jpg,test,test\n")
    assert len(read_splits(image_folder, read_labelme(image_folder))[0]) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SPLITS.replace("images/0.jpg", "images/7.jpg"), "has no row for images/0.jpg, row 1 of the pictures"),
        (SPLITS.replace("test", "tset"), r"splits\.csv, row 2: neither train nor test: 'tset'"),
        (SPLITS + "images/1.jpg,test,test\n", r"splits\.csv, row 5: images/1\.jpg is there twice"),
        ("file_name,part\n", "needs the columns file_name and split1, has file_name, part"),
        ("", "is empty"),
    ],
)
def test_damaged_splits_are_errors_with_file_and_row(image_folder, text, message):
    write_text(image_folder / "splits.csv", text)
    with pytest.raises(ValueError, match=message):
        read_splits(image_folder, read_labelme(image_folder))


# ---- UIUC-Sports -----------------------------------------------------------------------------------------------------


def write_sports(home):
    for folder in SPORTS_FOLDERS:
        for k in (1, 2):
            write_picture(home / folder / f"image_000{k}.jpg", k)


@pytest.fixture
def sports(tmp_path):
    """Two pictures of each sport."""
    write_sports(tmp_path / "event_dataset" / "event_img")
    return tmp_path


def write_lists(folder, rows):
    """The two lists, of (class, file name, tags)."""
    write_text(folder / "uiuc-sports-info.txt", "".join(f"{sport} {name}\n" for sport, name, _ in rows))
    write_text(folder / "uiuc-sports-annotations.txt", "".join(f"{tags}\n" for *_, tags in rows))


@pytest.mark.parametrize(
    "place", ["", "event_img", "event_dataset", "event_dataset/event_img", "uiuc_sports/event_img"]
)
def test_class_folders_are_found_in_their_usual_places(tmp_path, place):
    write_sports(tmp_path / place)
    source = read_uiuc_sports(tmp_path)
    assert (len(source), source.pictures, source.multi_label) == (16, True, False)
    assert [label for (label,) in source.rows["labels"].to_pylist()] == [sport for sport in SPORTS for _ in range(2)]


def test_names_are_those_on_disk(sports):
    names = read_uiuc_sports(sports).rows["file_name"].to_pylist()
    assert "event_dataset/event_img/RockClimbing/image_0001.jpg" in names


def test_tags_come_from_the_two_lists(sports):
    rows = [(sport, f"image_000{k}.jpg", f"athlete, Net, athlete, {sport}, ") for sport in SPORTS for k in (1, 2)]
    write_lists(sports, rows)
    tags = column(read_uiuc_sports(sports), "tags")
    assert tags["event_dataset/event_img/Rowing/image_0002.jpg"] == ["athlete", "net", "rowing"]


def test_pictures_that_the_lists_do_not_name_are_named_in_a_warning(sports):
    rows = [(sport, f"image_000{k}.jpg", "sky, ") for sport in SPORTS for k in (1, 2)]
    write_lists(sports, rows[1:])
    with pytest.warns(UserWarning, match=r"uiuc-sports-info\.txt does not name.*: event_.*/badminton/image_0001\.jpg$"):
        tags = column(read_uiuc_sports(sports), "tags")
    assert tags["event_dataset/event_img/badminton/image_0001.jpg"] == []


def test_an_empty_line_is_a_picture_without_tags(sports):
    rows = [(sport, f"image_000{k}.jpg", "" if k == 1 else "sky,") for sport in SPORTS for k in (1, 2)]
    write_lists(sports, rows)
    tags = column(read_uiuc_sports(sports), "tags")
    assert tags["event_dataset/event_img/polo/image_0001.jpg"] == []
    assert tags["event_dataset/event_img/polo/image_0002.jpg"] == ["sky"]


@pytest.mark.parametrize("name", ["uiuc-sports-info.txt", "uiuc-sports-annotations.txt"])
def test_half_of_the_lists_is_an_error(sports, name):
    write_lists(sports, [("polo", "image_0001.jpg", "horse,")])
    (sports / name).unlink()
    with pytest.raises(ValueError, match=f"{name} is missing: the other half of the annotations; `pictopic"):
        read_uiuc_sports(sports)


@pytest.mark.parametrize("name", ["uiuc-sports-info.txt", "uiuc-sports-annotations.txt"])
def test_lists_of_different_lengths_are_an_error(sports, name):
    write_lists(sports, 3 * [("polo", "image_0001.jpg", "horse,")])
    write_text(sports / name, "polo image_0001.jpg\n")
    with pytest.raises(ValueError, match=f"{name} ends before row 2"):
        read_uiuc_sports(sports)


def test_a_row_that_names_no_picture_is_an_error(sports):
    write_lists(sports, [("polo", "", "horse,")])
    with pytest.raises(ValueError, match=r"uiuc-sports-info\.txt, row 1: not a class and a file name: polo"):
        read_uiuc_sports(sports)


def test_hostile_names_in_the_lists_are_no_pictures(sports):
    rows = [(sport, f"image_000{k}.jpg", "sky,") for sport in SPORTS for k in (1, 2)]
    write_lists(sports, [*rows, ("..", "../../secret.jpg", "secret,")])
    source = read_uiuc_sports(sports)
    assert len(source) == 16
    assert {tag for tags in source.rows["tags"].to_pylist() for tag in tags} == {"sky"}


def test_tags_come_from_labelmes_files(sports):
    home = sports / "event_dataset" / "event_img"
    write_text(home / "polo" / "image_0001.xml", labelme_xml("Horse"))
    write_text(home / "polo" / "image_0002.xml", "<annotation>")
    with pytest.warns(UserWarning, match=r"no tags: event_dataset/event_img/polo/image_0002\.xml \(not XML"):
        tags = column(read_uiuc_sports(sports), "tags")
    assert tags["event_dataset/event_img/polo/image_0001.jpg"] == ["horse"]


def test_a_folder_without_sports_is_an_error(tmp_path):
    with pytest.raises(ValueError, match=r"event_img/badminton is missing: the pictures \(event_dataset\.rar\)"):
        read_uiuc_sports(tmp_path)


def test_a_sport_without_pictures_is_an_error(sports):
    for path in (sports / "event_dataset" / "event_img" / "croquet").iterdir():
        path.unlink()
    with pytest.raises(ValueError, match="event_img/croquet is missing: the pictures of the class croquet"):
        read_uiuc_sports(sports)


def test_sports_with_metadata_are_read_as_an_image_folder(tmp_path):
    write_picture(tmp_path / "a.jpg")
    write_text(tmp_path / "metadata.csv", "file_name,label,tags\na.jpg,polo,horse;grass\n")
    assert read_uiuc_sports(tmp_path).rows.to_pylist() == [
        {"file_name": "a.jpg", "tags": ["horse", "grass"], "labels": ["polo"], "split": None}
    ]

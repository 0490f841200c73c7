"""UIUC-Sports: folders of pictures, and three kinds of tags."""

import pytest

from pictopic.paper.datasets.uiuc_sports import SPORTS, read_uiuc_sports
from tests.paper.datasets.conftest import column, labelme_xml, write_picture, write_text

FOLDERS = ("badminton", "bocce", "croquet", "polo", "RockClimbing", "Rowing", "sailing", "snowboarding")


def write_sports(home):
    for folder in FOLDERS:
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


def test_an_empty_folder_is_an_error(tmp_path):
    with pytest.raises(ValueError, match=r"event_img/badminton is missing: the pictures \(event_dataset\.rar\)"):
        read_uiuc_sports(tmp_path)


def test_a_sport_without_pictures_is_an_error(sports):
    for path in (sports / "event_dataset" / "event_img" / "croquet").iterdir():
        path.unlink()
    with pytest.raises(ValueError, match="event_img/croquet is missing: the pictures of the class croquet"):
        read_uiuc_sports(sports)


def test_an_image_folder_is_read(tmp_path):
    write_picture(tmp_path / "a.jpg")
    write_text(tmp_path / "metadata.csv", "file_name,label,tags\na.jpg,polo,horse;grass\n")
    assert read_uiuc_sports(tmp_path).rows.to_pylist() == [
        {"file_name": "a.jpg", "tags": ["horse", "grass"], "labels": ["polo"], "split": None}
    ]

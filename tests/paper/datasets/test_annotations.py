"""LabelMe's XML files, which anybody may have written."""

import pytest

from pictopic.paper.datasets.annotations import AnnotationError, AnnotationFiles, object_names
from tests.paper.datasets.conftest import labelme_xml, write_text


def test_objects_are_tags_each_once_and_normalised():
    assert object_names(labelme_xml("Sky", "tall  building", "sky").encode()) == ["sky", "tall building"]


def test_deleted_objects_are_left_out():
    assert object_names(labelme_xml("sky", deleted="sea").encode()) == ["sky"]


def test_white_space_around_values_does_not_matter():
    xml = b"<annotation>\n<object>\n<name>\nsea\n</name>\n<deleted>\n1\n</deleted></object></annotation>"
    assert object_names(xml) == []
    assert object_names(xml.replace(b"1", b"0")) == ["sea"]


def test_only_the_names_of_objects_count():
    xml = b"""<annotation><name>no</name><source><name>no</name></source>
    <object><name>yes</name><part><name>no</name><deleted>1</deleted></part></object></annotation>"""
    assert object_names(xml) == ["yes"]


def test_an_object_without_a_flag_is_not_deleted():
    assert object_names(b"<annotation><object><name>sea</name></object></annotation>") == ["sea"]


def test_other_encodings_are_read():
    xml = '<?xml version="1.0" encoding="iso-8859-1"?>' + labelme_xml("café")
    assert object_names(xml.encode("latin-1")) == ["café"]


@pytest.mark.parametrize(
    "content",
    [b"", b"no XML", labelme_xml("sky").encode()[:-9], b"<a>\xff</a>", b"<a>R & B</a>"],
    ids=["empty", "text", "cut off", "not UTF-8", "ampersand"],
)
def test_damaged_xml_is_an_error(content):
    with pytest.raises(AnnotationError, match="not XML"):
        object_names(content)


@pytest.mark.parametrize("encoding", ["nonsense", "utf-7", "euc-jp"])
def test_an_unknown_encoding_is_an_error(encoding):
    with pytest.raises(AnnotationError, match="not XML"):
        object_names(f'<?xml version="1.0" encoding="{encoding}"?><a>+AGE-\u00e9</a>'.encode())


def test_a_document_type_is_refused_before_its_entities_grow():
    entities = "".join(f'<!ENTITY e{k} "{10 * f"&e{k - 1};"}">' for k in range(1, 20))
    bomb = f'<!DOCTYPE annotation [<!ENTITY e0 "sky">{entities}]>' + labelme_xml("&e19;")
    with pytest.raises(AnnotationError, match="DOCTYPE"):
        object_names(bomb.encode())


def test_an_external_document_type_is_refused():
    with pytest.raises(AnnotationError, match="DOCTYPE"):
        object_names(b'<!DOCTYPE annotation SYSTEM "file:///etc/passwd"><annotation/>')


@pytest.mark.parametrize(
    ("picture", "annotations"),
    [
        ("a/b.jpg", "a/b.xml"),
        ("a/b.jpg", "Annotations/a/b.xml"),
        ("Images/a/b.jpg", "Annotations/a/b.xml"),
        ("images/a/b.jpg", "annotations/a/b.xml"),
        ("x/Images/b.jpg", "x/Annotations/b.xml"),
    ],
)
def test_annotations_lie_beside_the_picture_or_in_their_own_folder(tmp_path, picture, annotations):
    write_text(tmp_path / annotations, labelme_xml("sky"))
    assert AnnotationFiles(tmp_path).tags(picture) == ["sky"]


def test_a_picture_without_annotations_has_no_tags_and_no_problem(tmp_path):
    files = AnnotationFiles(tmp_path)
    assert (files.tags("a.jpg"), files.problems) == ([], [])


def test_problems_are_kept_with_their_reasons(tmp_path):
    files = AnnotationFiles(tmp_path)
    write_text(tmp_path / "a.xml", "<a>")
    write_text(tmp_path / "b.xml", "<a>" + 5_000_000 * " " + "</a>")
    (tmp_path / "c.xml").mkdir()
    assert [files.tags(f"{name}.jpg") for name in "abc"] == [[], [], []]
    assert files.problems[0].startswith("a.xml (not XML: no element found")
    assert files.problems[1:] == ["b.xml (larger than 4 MB)", "c.xml (not a file)"]


def test_a_link_that_leads_out_is_not_followed(tmp_path):
    write_text(tmp_path / "outside.xml", labelme_xml("secret"))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.xml").symlink_to(tmp_path / "outside.xml")
    files = AnnotationFiles(tmp_path / "in")
    assert (files.tags("a.jpg"), files.problems) == ([], ["a.xml (outside the folder)"])

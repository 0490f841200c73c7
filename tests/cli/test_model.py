import csv
import json
import os
import re
import shutil

import pyarrow.parquet as pq
import pytest
from PIL import Image

from pictopic import PictureModel
from pictopic.corpus.sources.picture_folder import keywords
from pictopic.tasks.decisions import Decisions
from tests.support.commands import run
from tests.support.patterns import SMALL_NETWORK, pattern, write_patterns


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "model"
    model.save(folder)
    return str(folder)


@pytest.fixture
def new(tmp_path):
    for number in (201, 202):
        Image.fromarray(pattern(number)[0]).save(tmp_path / f"{number}.png")
    return tmp_path


def test_fit_learns_and_says_how_good_it_is(tmp_path):
    photos = write_patterns(tmp_path / "photos", range(100))
    (tmp_path / "best.json").write_text(json.dumps(SMALL_NETWORK))
    result = run("fit", str(photos), "--out", str(tmp_path / "m"), "--words", "12", "--features", "cld", "--jobs", "1",
                 "--tuned", str(tmp_path / "best.json"))  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "rows with SupDeepDocNADE; on " in result.stdout
    assert "always the same" in result.stdout
    assert run("classify", str(tmp_path / "m"), str(photos / "3.png"), "-k", "1").stdout.startswith("stripes ")


def test_annotate_prints_a_line_a_picture(saved, new):
    lines = run("annotate", saved, str(new), "-k", "2").stdout.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"{new / '201.png'}: ")
    assert "lines" in lines[0]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_annotate_goes_on_past_what_is_no_picture(saved, new):
    (new / "loop").symlink_to("loop")
    (new / "gone.jpg").symlink_to("nothing")
    os.mkfifo(new / "pipe.jpg")
    result = run("annotate", saved, str(new), "-k", "1")
    assert result.returncode == 0
    names = [line.split(": ")[0] for line in result.stdout.splitlines() if not line.endswith(": -")]
    assert names == [str(new / "201.png"), str(new / "202.png")]
    for text in ("1 left out of", "loop: cannot be opened", "gone.jpg: missing", "pipe.jpg: not a file"):
        assert text in result.stderr


def test_annotate_writes_a_csv_that_build_reads(saved, new):
    run("annotate", saved, str(new / "201.png"), "--csv", str(new / "tags.csv"), "-k", "2")
    rows = list(csv.DictReader((new / "tags.csv").open()))
    assert rows[0]["file_name"] == str(new / "201.png")
    assert len(rows[0]["tags"].split(";")) == 2


def test_annotate_writes_sidecars_and_leaves_pictures_alone(saved, new):
    before = (new / "201.png").read_bytes()
    run("annotate", saved, str(new / "201.png"), "--write-xmp", "-k", "2")
    assert "lines" in keywords(new / "201.png")
    assert (new / "201.png").read_bytes() == before


def test_sidecars_of_other_programs_are_left_alone(saved, new):
    (new / "201.xmp").write_text("<x:xmpmeta xmlns:x='adobe:ns:meta/'>precious</x:xmpmeta>")
    result = run("annotate", saved, str(new / "201.png"), "--write-xmp")
    assert "201.xmp was written by another program" in result.stderr
    assert "precious" in (new / "201.xmp").read_text()


def test_a_bad_picture_among_others_costs_a_line(saved, new):
    (new / "bad.jpg").write_bytes(b"nothing")
    result = run("annotate", saved, str(new))
    assert result.returncode == 0
    assert result.stderr.splitlines() == [f"pictopic: {new / 'bad.jpg'}: not a picture"]
    assert len(result.stdout.splitlines()) == 3


def test_classify_for_machines_is_json(saved, new):
    found = json.loads(run("classify", saved, str(new / "202.png"), "--json").stdout)
    assert found["pictures"][0]["classes"][0]["name"] == "dots"


def test_search_writes_a_page_of_thumbnails(saved, tmp_path):
    result = run("search", saved, "17.png", "-k", "4", "--html", str(tmp_path / "found.html"))
    assert len(result.stdout.splitlines()) == 4
    assert (tmp_path / "found.html").read_text().count("<img ") == 4


def test_search_by_tags_and_filter(saved):
    found = json.loads(run("search", saved, "--tags", "red, lines", "--label", "dots", "--json").stdout)["pictures"]
    assert {pattern(int(own["name"].split(".")[0]))[1] for own in found} == {"dots"}


def test_topics_writes_a_page_with_patches(saved, tmp_path):
    result = run("topics", saved, "--html", str(tmp_path / "topics.html"))
    assert result.stdout.splitlines()[0].startswith("dots: ")
    page = (tmp_path / "topics.html").read_text()
    assert page.count("example patches") >= 8
    assert page.count("<img ") > 50
    assert result.stdout.splitlines()[-1].startswith("coherence (NPMI) ")


@pytest.fixture(scope="module")
def plain(plain_model, tmp_path_factory):
    """Folder of a model of pictures with neither tags nor classes."""
    folder = tmp_path_factory.mktemp("models") / "plain"
    plain_model.save(folder)
    return str(folder)


def test_topics_of_pictures_without_tags_are_told_by_pictures_and_visual_words(plain, tmp_path):
    result = run("topics", plain, "--html", str(tmp_path / "topics.html"))
    assert (result.returncode, result.stderr) == (0, "")
    assert re.fullmatch(
        r"topic \d+ \(\d+ pictures\): typical pictures (\d+\.png(, )?){3}; visual words (\d+(, )?){4}",
        result.stdout.splitlines()[0],
    )
    page = (tmp_path / "topics.html").read_text()
    cards = page.split("<section>")[1:]
    assert len(cards) > 5
    for card in cards:
        assert card.startswith("<h3>Topic ")
        assert card.count("example patches") == 4
        assert card.count("<img ") == 9  # four visual words and five typical pictures


def test_topics_as_json_have_weights_and_typical_pictures(plain):
    found = json.loads(run("topics", plain, "--json").stdout)
    assert (found["classes"], found["quality"]) == ([], {})
    [word, weight] = found["topics"][0]["Visual_Words"][0]
    assert 0 <= word < 12
    assert weight > found["topics"][0]["Visual_Words"][1][1]
    assert found["topics"][0]["Representative_Docs"][0].endswith(".png")


@pytest.mark.parametrize(("command", "what"), [("annotate", "no tags"), ("classify", "no classes")])
def test_what_a_collection_cannot_answer_is_one_line_and_misuse(plain, new, command, what):
    result = run(command, plain, str(new / "201.png"))
    assert result.returncode == 2
    assert what in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_evaluate_of_pictures_without_tags_and_classes_is_of_their_words(plain, new):
    result = run("evaluate", plain, str(new))
    assert result.returncode == 0, result.stderr
    assert result.stdout.split()[::2] == ["log_likelihood_per_word", "log_likelihood_per_word_baseline"]


def test_evaluate_prints_figures(saved, tmp_path):
    photos = write_patterns(tmp_path / "more", range(300, 312))
    found = json.loads(run("evaluate", saved, str(photos), "--json").stdout)
    assert found["accuracy"] > 0.8


@pytest.mark.slow
def test_update_adds_pictures(tmp_path):
    photos = write_patterns(tmp_path / "photos", range(40))
    run("fit", str(photos), "--out", str(tmp_path / "m"), "--words", "12", "--features", "none", "--jobs", "1")
    more = write_patterns(tmp_path / "more", range(400, 410))
    result = run("update", str(tmp_path / "m"), str(more), "--passes", "1")
    assert result.stdout.startswith("10 pictures more"), result.stderr
    assert len(run("search", str(tmp_path / "m"), "400.png", "-k", "99").stdout.splitlines()) == 49


@pytest.fixture
def decided(saved, tmp_path):
    """The model at a place of its own, with two decisions beside it."""
    shutil.copytree(saved, tmp_path / "m")
    decisions = Decisions.beside(tmp_path / "m")
    decisions.add("0.png", "lines", "accepted")
    decisions.add("1.png", "lines", "rejected")
    return tmp_path / "m"


def test_update_learns_from_decisions_without_new_pictures(decided):
    result = run("update", str(decided), "--passes", "1")
    assert result.stdout.splitlines()[:2] == ["0 pictures more", "2 decisions used"], result.stderr
    tags = PictureModel.load(decided).corpus_.tags
    assert tags[:2] == [["spots", "blue", "lines"], ["blue"]]
    assert len(Decisions.beside(decided)) == 2


@pytest.mark.slow
def test_update_can_leave_decisions_out(decided, tmp_path):
    more = write_patterns(tmp_path / "more", range(400, 402))
    found = json.loads(run("update", str(decided), str(more), "--no-decisions", "--passes", "1", "--json").stdout)
    assert (found["rows"], found["decisions"]) == (102, 0)
    assert PictureModel.load(decided).corpus_.tags[1] == ["lines", "blue"]


def test_export_writes_what_was_decided_as_csv_and_sidecars(decided, tmp_path):
    result = run("export", str(decided), "--accepted", str(tmp_path / "tags.csv"), "--xmp", str(tmp_path / "xmp"))
    assert result.stdout.splitlines() == [
        f"tags of 2 pictures: {tmp_path / 'tags.csv'}", f"2 XMP files of 2 pictures: {tmp_path / 'xmp'}",
    ], result.stderr  # fmt: skip
    assert (tmp_path / "tags.csv").read_text() == "file_name,tags\n0.png,spots;blue;lines\n1.png,blue\n"
    assert keywords(tmp_path / "xmp" / "0.png") == ["spots", "blue", "lines"]


def test_export_writes_all_sidecars_whose_names_are_not_too_long(tmp_path):
    photos = write_patterns(tmp_path / "photos", range(6))
    rows = (photos / "metadata.csv").read_text()
    for number, extension in ((1, ".png"), (2, ".PNG")):  # the same but for the extension
        (photos / f"{number}.png").rename(photos / ("x" * 250 + extension))
        rows = rows.replace(f"{number}.png", "x" * 250 + extension)
    (photos / "metadata.csv").write_text(rows)
    PictureModel(n_words=6, features=(), model="shallow", max_side=64, options={"max_iter": 1}).fit(photos).save(
        tmp_path / "m"
    )
    decisions = Decisions.beside(tmp_path / "m")
    for name in ("0.png", "x" * 250 + ".png", "x" * 250 + ".PNG", "5.png"):
        decisions.add(name, "sea", "accepted")
    result = run("export", str(tmp_path / "m"), "--xmp", str(tmp_path / "xmp"))
    assert result.returncode == 1
    assert result.stdout.startswith("2 XMP files of 4 pictures")
    assert result.stderr.count("\n") == 1
    assert "their names are too long: 2, the first xxx" in result.stderr
    assert sorted(path.name for path in (tmp_path / "xmp").iterdir()) == ["0.xmp", "5.xmp"]


def test_annotate_takes_a_picture_whose_name_is_not_utf8(saved, new):
    name = os.fsencode(new) + b"/caf\xe9.png"
    try:
        shutil.copy(os.fsencode(new / "201.png"), name)
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    result = run("annotate", saved, os.fsdecode(name), str(new / "201.png"), "--csv", str(new / "tags.csv"))
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"{new}/caf\\udce9.png: ")
    assert "caf\\udce9.png" in (new / "tags.csv").read_text()


def test_annotate_writes_all_sidecars_whose_names_are_not_too_long(saved, new):
    shutil.copy(new / "201.png", new / ("x" * 255))
    result = run("annotate", saved, str(new / ("x" * 255)), str(new / "201.png"), "--write-xmp")
    assert result.returncode == 1
    assert len(result.stdout.splitlines()) == 2
    assert "their names are too long: 1, the first " in result.stderr
    assert (new / "201.xmp").exists()


def test_sidecars_are_not_written_beside_the_pictures(decided, patterns):
    result = run("export", str(decided), "--xmp", str(patterns))
    assert result.returncode == 2
    assert "holds the pictures themselves" in result.stderr
    assert list(patterns.glob("*.xmp")) == []


def test_a_damaged_file_of_decisions_is_named_with_its_line(decided):
    path = Decisions.beside(decided).path
    path.write_text("nonsense\n" + path.read_text())
    result = run("update", str(decided))
    assert result.returncode == 2
    assert f"{path}, line 1: not a decision" in result.stderr


def test_export_writes_vectors(saved, tmp_path):
    run("export", saved, "--vectors", str(tmp_path / "v.parquet"))
    table = pq.read_table(tmp_path / "v.parquet")
    assert table.num_rows == 100
    assert len(table["vector"][0]) == 200


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["annotate", "MISSING", "a.jpg"], "is not a picture model"),
        (["search", "SAVED"], "a picture, tags, or both"),
        (["search", "SAVED", "--tags", "unknown"], "no picture of the collection has the tag"),
        (["annotate", "SAVED", "EMPTY"], "there is no picture in"),
        (["fit", "MISSING", "--out", "m"], "does not exist"),
        (["update", "SAVED"], "there is nothing new"),
        (["update", "SAVED", "--no-decisions"], "there is nothing new"),
        (["update", "SAVED", "MISSING"], "does not exist"),
        (["export", "SAVED"], "say what to write: --vectors FILE"),
        (["export", "SAVED", "--accepted", "tags.csv"], "nothing is decided about tags yet"),
        (["fit", "EMPTY", "--out", "m", "--model", "wide"], "'auto', 'shallow' or 'deep'"),
    ],
)
def test_misuse_exits_with_2_and_one_line(saved, tmp_path, arguments, message):
    places = {"SAVED": saved, "MISSING": str(tmp_path / "missing"), "EMPTY": str(tmp_path)}
    result = run(*(places.get(argument, argument) for argument in arguments))
    assert result.returncode == 2, result.stderr
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", ["annotate", "classify", "search"])
def test_an_unreadable_picture_fails_with_1(saved, tmp_path, command):
    (tmp_path / "bad.jpg").write_bytes(b"nothing")
    result = run(command, saved, str(tmp_path / "bad.jpg"))
    assert result.returncode == 1
    assert "bad.jpg: not a picture" in result.stderr


@pytest.mark.slow
def test_tune_writes_trials_down_and_goes_on(tmp_path):
    photos = write_patterns(tmp_path / "photos", range(100))
    arguments = ["tune", str(photos), "--out", str(tmp_path / "tuned"), "--minutes", "0.01", "--jobs", "1"]
    assert "defaults" in run(*arguments).stdout
    lines = run(*arguments).stdout.splitlines()
    assert len(lines) == 4
    assert len((tmp_path / "tuned" / "trials.jsonl").read_text().splitlines()) == 2
    result = run("fit", str(tmp_path / "tuned" / "corpus"), "--out", str(tmp_path / "m"), "--model", "deep", "--tuned",
                 str(tmp_path / "tuned" / "best.json"), "--jobs", "1")  # fmt: skip
    assert result.returncode == 0, result.stderr


def test_info_of_a_model_says_how_good_it_is_and_what_it_knows(saved):
    found = run("info", saved).stdout
    assert "rows with SupDocNADE" in found
    assert "12 visual words, 4 tags" in found
    assert found.splitlines()[-1] == "all files are as they were saved"

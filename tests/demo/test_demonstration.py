import pytest

from pictopic import PictureModel, processes
from pictopic.demo import demonstration
from pictopic.demo.demonstration import LEAST_PICTURES, run
from pictopic.demo.report.contents import Step


def figures(text):
    """The printed table: for each method its figures, None where there is none."""
    found = {}
    for line in text.splitlines():
        for name in ("most frequent", "RBF SVM, histograms", "SupDocNADE", "SupDeepDocNADE"):
            if line.startswith(f"{name} "):
                cells = line.removeprefix(name).replace("%", "").split()
                found[name] = [None if cell == "–" else float(cell) for cell in cells]  # noqa: RUF001
    return found


def test_too_few_pictures_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ValueError, match=f"at least {LEAST_PICTURES} pictures"):
        run(tmp_path / "out", n=LEAST_PICTURES - 1)
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """A demonstration of the usual size: its folder, and the figures it prints."""
    folder = tmp_path_factory.mktemp("demonstration")
    return folder, figures(run(folder))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SupDocNADE", "SupDeepDocNADE"])
def test_models_are_ahead_of_trivial_answers(shown, name):
    accuracy, _, similar, perplexity, _ = shown[1][name]
    usual = shown[1]["most frequent"]
    assert accuracy > usual[0] + 50
    assert similar > usual[2] + 50
    assert perplexity < usual[3]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SupDocNADE", "SupDeepDocNADE"])
def test_tags_are_ahead_of_the_most_frequent_ones(shown, name):
    assert shown[1][name][1] > shown[1]["most frequent"][1] + 15


@pytest.mark.slow
def test_the_report_is_small_enough_to_be_sent(shown):
    assert (shown[0] / "report.html").stat().st_size < 4_000_000


@pytest.mark.slow
def test_demo_can_be_run_again_and_its_model_answers(tmp_path):
    first, second = (figures(run(tmp_path, n=48)) for _ in range(2))
    assert first == second
    assert sorted(path.name for path in tmp_path.glob("[!.]*")) == ["model", "pictures", "report.html"]
    model = PictureModel.load(tmp_path / "model", verbose=0)
    assert len(model.annotate(tmp_path / "pictures" / "images" / "coast" / "00002.jpg", k=3)) == 3


@pytest.mark.parametrize(
    ("found", "called", "expected"),
    [
        ("/usr/bin/pictopic", "/usr/bin/pictopic", "  pictopic serve"),
        (None, ".venv/bin/pictopic", "  .venv/bin/pictopic serve"),
        (None, "pytest", " -m pictopic serve"),
    ],
)
def test_what_to_type_next_can_be_typed_here(monkeypatch, found, called, expected):
    monkeypatch.setattr(processes.shutil, "which", lambda name: found)
    monkeypatch.setattr(processes.sys, "argv", [called])
    assert demonstration._next_lines([Step("Explore:", "pictopic serve pictopic")])[1].endswith(f"{expected} pictopic")


def test_only_folders_of_stopped_runs_are_removed(tmp_path):
    for name in ("40-0", "80-0", "plans-of-the-house"):
        (tmp_path / demonstration.BUILDING / name).mkdir(parents=True)
    assert demonstration._work_folder(tmp_path, "40-0") == tmp_path / demonstration.BUILDING / "40-0"
    assert sorted(path.name for path in (tmp_path / demonstration.BUILDING).iterdir()) == ["40-0", "plans-of-the-house"]

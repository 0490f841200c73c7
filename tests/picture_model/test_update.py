import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from pictopic import Corpus, PictureModel
from pictopic.models.run import Run
from pictopic.picture_model import update as updating
from pictopic.tasks.decisions import Decisions
from tests.support.patterns import QUICK, write_patterns


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A model of a hundred pictures, large enough to hold some out; not to be changed."""
    folder = tmp_path_factory.mktemp("original")
    PictureModel(**QUICK, model="shallow").fit(write_patterns(folder / "photos", range(100))).save(folder / "model")
    return folder / "model"


@pytest.fixture
def folder(original, tmp_path):
    loaded(original).save(tmp_path / "model")
    return tmp_path / "model"


def loaded(folder):
    return PictureModel.load(folder, n_jobs=1, verbose=0)


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_models_own_folder_stays_as_it_is_until_it_is_saved(folder, tmp_path):
    before = contents(folder)
    model = loaded(folder)
    model.update(write_patterns(tmp_path / "more", range(400, 404)), passes=1)
    assert contents(folder) == before
    model.save(folder)
    assert len(loaded(folder).corpus_) == 104


def test_a_class_that_the_model_does_not_know_is_refused_before_anything_is_written(folder, tmp_path):
    model, before = loaded(folder), contents(folder)
    work = tmp_path / "work"
    with pytest.raises(ValueError, match="does not know the class 'zigzag'"):
        model.update(write_patterns(tmp_path / "odd", range(400, 404), label="zigzag"), passes=1, folder=work)
    assert not work.exists()
    assert contents(folder) == before
    assert len(model.corpus_) == 100
    model.update(write_patterns(tmp_path / "more", range(500, 504)), passes=1, folder=work)
    assert len(model.corpus_) == 104


class StopError(Exception):
    pass


def stopped(*_, **__):
    raise StopError


def test_pictures_of_an_update_that_failed_while_learning_are_learnt_by_the_next(folder, tmp_path, monkeypatch):
    more, work = write_patterns(tmp_path / "more", range(400, 404)), tmp_path / "work"
    expected = loaded(folder).update(more, passes=1)
    model = loaded(folder)
    weights = model.estimator_.components_.copy()
    with monkeypatch.context() as patch:
        patch.setattr("pictopic.picture_model.refit", stopped)
        with pytest.raises(StopError):
            model.update(more, passes=1, folder=work)
    assert len(model.corpus_) == 100
    np.testing.assert_array_equal(model.estimator_.components_, weights)
    again = loaded(folder).update(more, passes=1, folder=work)
    assert again.corpus_.file_names == expected.corpus_.file_names
    assert again.corpus_.skipped == expected.corpus_.skipped
    np.testing.assert_array_equal(again.estimator_.components_, expected.estimator_.components_)


def test_an_update_stopped_right_after_appending_skips_nothing_when_it_goes_on(folder, tmp_path, monkeypatch):
    more, work = write_patterns(tmp_path / "more", range(400, 404)), tmp_path / "work"

    def append_and_stop(*arguments, **options):
        append(*arguments, **options)
        raise StopError

    append = Corpus.append
    with monkeypatch.context() as patch:
        patch.setattr(Corpus, "append", append_and_stop)
        with pytest.raises(StopError):
            loaded(folder).update(more, passes=1, folder=work)
    again = loaded(folder).update(more, passes=1, folder=work).corpus_
    assert again.file_names[100:] == ["400.png", "401.png", "402.png", "403.png"]
    assert again.skipped == []


def test_an_update_that_fails_in_the_middle_of_learning_leaves_the_model_as_it_was(folder, tmp_path, monkeypatch):
    model = loaded(folder)
    before = model.annotate(write_patterns(tmp_path / "more", range(400, 402)) / "400.png")
    monkeypatch.setattr("pictopic.tasks.fit.ClassHead.learn", stopped)
    with pytest.raises(StopError):
        model.update(tmp_path / "more", passes=3)
    assert model.annotate(tmp_path / "more" / "400.png") == before


def test_counting_that_was_stopped_goes_on_without_being_asked(folder, tmp_path, monkeypatch):
    more, work = write_patterns(tmp_path / "more", range(400, 404)), tmp_path / "work"
    with monkeypatch.context() as patch:
        patch.setattr("pictopic.corpus.edit.finish", stopped)
        with pytest.raises(StopError):
            loaded(folder).update(more, passes=1, folder=work)
    pieces = list((work / "corpus" / "building").glob("piece-*"))
    assert pieces
    monkeypatch.setattr("pictopic.corpus.build.count_words", stopped)  # everything is counted
    assert len(loaded(folder).update(more, passes=1, folder=work).corpus_) == 104


def test_what_an_update_of_another_model_has_left_is_not_used(folder, tmp_path):
    work = tmp_path / "work"
    loaded(folder).update(write_patterns(tmp_path / "more", range(400, 404)), passes=1, folder=work)
    other = loaded(folder)
    other.update(write_patterns(tmp_path / "some", range(600, 602)), passes=1)
    other.save(folder)
    again = loaded(folder).update(write_patterns(tmp_path / "last", range(700, 701)), passes=1, folder=work)
    assert again.corpus_.file_names[100:] == ["600.png", "601.png", "700.png"]


@pytest.mark.parametrize("step", ["copy_corpus", "write_text"])
def test_a_copy_that_was_cut_off_is_made_again(folder, tmp_path, monkeypatch, step):
    more, work = write_patterns(tmp_path / "more", range(400, 404)), tmp_path / "work"
    with monkeypatch.context() as patch:
        patch.setattr(updating, step, stopped)
        with pytest.raises(StopError):
            loaded(folder).update(more, passes=1, folder=work)
    assert len(loaded(folder).update(more, passes=1, folder=work).corpus_) == 104


def test_a_corpus_of_the_users_own_is_not_changed(tmp_path):
    source = write_patterns(tmp_path / "photos", range(20))
    corpus = Corpus.build(source, tmp_path / "corpus", n_words=12, regions="1x1", n_jobs=1)
    PictureModel(**QUICK).fit(corpus).update(write_patterns(tmp_path / "more", range(400, 404)), passes=1)
    assert len(Corpus.open(tmp_path / "corpus")) == 20


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.0, 0.5, 1.5])
def test_a_killed_update_leaves_the_model_and_the_next_one_learns_everything(folder, tmp_path, delay):
    more, before = write_patterns(tmp_path / "more", range(400, 420)), contents(folder)
    code = """
        import sys
        from pictopic import PictureModel
        model = PictureModel.load(sys.argv[1], n_jobs=1, verbose=0)
        print("begin", flush=True)
        model.update(sys.argv[2], passes=30, folder=sys.argv[3])
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(folder), str(more), str(tmp_path / "work")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout.readline() == b"begin\n"
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGKILL)
    assert contents(folder) == before
    assert len(loaded(folder).update(more, passes=1, folder=tmp_path / "work").corpus_) == 120


def test_learning_that_was_interrupted_goes_on_to_the_same_model(folder, tmp_path):
    more, work = write_patterns(tmp_path / "more", range(400, 404)), tmp_path / "work"
    expected = loaded(folder).update(more, passes=6)

    def stop(stage, status):
        if status.epoch == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        loaded(folder).update(more, passes=6, folder=work, run=Run(report=stop, raise_on_interrupt=True))
    epochs = []
    again = loaded(folder).update(
        more, passes=6, folder=work, run=Run(report=lambda stage, status: epochs.append(status.epoch))
    )
    assert min(epochs) >= 3
    np.testing.assert_array_equal(again.estimator_.components_, expected.estimator_.components_)


def stop_before_learning(monkeypatch, folder, source, work, **options):
    with monkeypatch.context() as patch:
        patch.setattr("pictopic.picture_model.refit", stopped)
        with pytest.raises(StopError):
            loaded(folder).update(source, passes=1, folder=work, **options)


def test_pictures_of_a_stopped_update_from_another_folder_are_not_learnt(folder, tmp_path, monkeypatch):
    wrong, right = (
        write_patterns(tmp_path / name, range(first, first + 4)) for name, first in (("w", 400), ("r", 500))
    )
    stop_before_learning(monkeypatch, folder, wrong, tmp_path / "work")
    again = loaded(folder).update(right, passes=1, folder=tmp_path / "work").corpus_
    assert again.file_names[100:] == ["500.png", "501.png", "502.png", "503.png"]


def test_counting_for_another_folder_that_was_stopped_is_not_in_the_way(folder, tmp_path, monkeypatch):
    wrong, right = (
        write_patterns(tmp_path / name, range(first, first + 4)) for name, first in (("w", 400), ("r", 500))
    )
    with monkeypatch.context() as patch:
        patch.setattr("pictopic.corpus.edit.finish", stopped)
        with pytest.raises(StopError):
            loaded(folder).update(wrong, passes=1, folder=tmp_path / "work")
    again = loaded(folder).update(right, passes=1, folder=tmp_path / "work").corpus_
    assert again.file_names[100:] == ["500.png", "501.png", "502.png", "503.png"]


def test_pictures_that_changed_since_an_update_was_stopped_are_read_again(folder, tmp_path, monkeypatch):
    more, work = write_patterns(tmp_path / "more", range(400, 404)), tmp_path / "work"
    stop_before_learning(monkeypatch, folder, more, work)
    metadata = more / "metadata.csv"
    lines = [line for line in metadata.read_text().splitlines() if not line.startswith("401.png")]
    metadata.write_text("\n".join(lines).replace("stripes", "dots") + "\n")
    again = loaded(folder).update(more, passes=1, folder=work).corpus_
    model = loaded(folder).update(more, passes=1)
    expected = model.corpus_
    assert again.file_names == expected.file_names
    assert again.tags == expected.tags
    assert again.label_lists == expected.label_lists


def test_a_decision_that_was_taken_back_since_an_update_was_stopped_does_not_count(folder, tmp_path, monkeypatch):
    more, work = write_patterns(tmp_path / "more", range(400, 404)), tmp_path / "work"
    decisions = Decisions(tmp_path / "decisions.jsonl")
    for name in ("1.png", "402.png"):
        decisions.add(name, "kept", "accepted")
        decisions.add(name, "taken back", "accepted")
    stop_before_learning(monkeypatch, folder, more, work, decisions=decisions)
    for name in ("1.png", "402.png"):
        decisions.add(name, "taken back", "undecided")
    again = loaded(folder).update(more, decisions=decisions, passes=1, folder=work).corpus_
    model = loaded(folder).update(more, decisions=decisions, passes=1)
    assert again.tags == model.corpus_.tags


def test_a_model_too_small_to_hold_any_out_refuses_unknown_classes_before_anything_is_written(tmp_path):
    model = PictureModel(**QUICK, model="shallow").fit(write_patterns(tmp_path / "photos", range(20)))
    work = tmp_path / "work"
    with pytest.raises(ValueError, match="does not know the class 'zigzag'"):
        model.update(write_patterns(tmp_path / "odd", range(400, 404), label="zigzag"), passes=1, folder=work)
    assert not work.exists()

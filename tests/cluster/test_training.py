import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import pictopic
from pictopic import Checkpoint, Corpus, DocNADE, Rows, Run, SupDeepDocNADE
from pictopic.cluster.training import fair_threads, fit_on_cluster, fit_rows_on_cluster, run_together
from pictopic.tasks.pretraining import pretrain
from tests.support.dying import fit_and_die
from tests.support.patterns import write_patterns
from tests.support.texts import make_texts

slow = pytest.mark.slow
OPTIONS = {"n_components": (12, 8), "max_iter": 4, "batch_size": 16, "random_state": 3}


def near(one, two):
    for name, array in one.parameters_.items():
        np.testing.assert_allclose(array, two.parameters_[name], atol=1e-4, err_msg=name)
    for name in ("nll", "class_loss", "validation_score"):
        np.testing.assert_allclose(one.history_[name], two.history_[name], rtol=1e-4)


@pytest.mark.parametrize(
    ("processors", "workers", "threads"), [([2], 1, 2), ([2], 2, 1), ([4, 4], 1, 4), ([4, 4], 3, 2), ([16, 0], 4, 4)]
)
def test_threads_that_a_cluster_has_room_for(processors, workers, threads):
    assert fair_threads(processors, workers) == threads


def test_more_workers_than_processors_are_refused():
    with pytest.raises(ValueError, match="has 2 processors, which are too few for 3 workers"):
        fair_threads([2], 3)


@pytest.mark.parametrize("workers", [pytest.param(n, marks=slow) for n in (1, 2)])
def test_a_model_trained_on_a_cluster_is_that_of_one_process(cluster, topics, workers):
    X, y = topics
    alone = SupDeepDocNADE(**OPTIONS).fit(X, y)
    model = fit_on_cluster(
        SupDeepDocNADE(**OPTIONS), Rows(X, labels=y), None, Run(), address="auto", workers=workers, threads=1
    )
    near(model, alone)
    np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("rank", [pytest.param(n, marks=slow) for n in (0, 1)])
def test_after_a_worker_was_killed_training_goes_on_from_its_checkpoint(cluster, topics, tmp_path, rank):
    X, y = topics
    alone = SupDeepDocNADE(**OPTIONS).fit(X, y)
    estimator, run = SupDeepDocNADE(**OPTIONS), Run(Checkpoint(tmp_path / "checkpoints", epochs=1))
    log = tmp_path / "steps"
    model = run_together(
        fit_and_die, estimator, X, y, run, str(tmp_path / "killed"), rank, 13, str(log), workers=2, threads=1
    )  # fmt: skip
    assert (tmp_path / "killed").exists()
    near(model, alone)
    steps = [int(line.split()[0]) for line in log.read_text().splitlines()]
    # Five steps an epoch: killed in the third epoch, after step 13, it goes on after step 10.
    assert steps == [*range(1, 14), *range(11, 21)]


@pytest.mark.slow
def test_a_damaged_shard_is_named_at_once(cluster, tmp_path):
    corpus = make_texts(tmp_path / "a")
    path = next((corpus.folder / "shards").iterdir()) / "counts.npy"
    content = bytearray(path.read_bytes())
    content[-4] ^= 1
    path.unlink()
    path.write_bytes(content)
    train = {"address": "auto", "workers": 2, "threads": 1}

    def fit(*arguments):
        return fit_rows_on_cluster(*arguments, **train)

    with pytest.raises(ValueError, match=r"shards/[0-9a-f]+/counts\.npy is damaged"):
        pretrain(Corpus.open(corpus.folder), sizes=(4,), epochs=1, fit=fit)


@pytest.mark.slow
def test_a_shallow_model_stays_here(cluster, topics):
    with pytest.raises(ValueError, match="only the deep models can"):
        fit_on_cluster(DocNADE(), Rows(topics[0]), None, Run(), address="auto", workers=2)


@pytest.mark.slow
def test_a_driver_that_was_killed_goes_on_to_the_same_model(tmp_path):
    corpus = make_texts(tmp_path / "a", n=600)
    command = [
        sys.executable, "-m", "pictopic", "pretrain", str(corpus.folder), "--layers", "24,12", "--epochs", "60",
        "--jobs", "1", "--batch", "32", "--checkpoint-minutes", "0", "--out",
    ]  # fmt: skip
    subprocess.run([*command, str(tmp_path / "whole")], check=True, capture_output=True)
    arguments = [*command, str(tmp_path / "killed"), "--cluster", "auto", "--workers", "2"]
    driver = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while driver.poll() is None and not Checkpoint(tmp_path / "killed.checkpoints").names():
        time.sleep(0.02)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    assert not (tmp_path / "killed").exists()
    again = subprocess.run(arguments, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    near(pictopic.load(tmp_path / "killed"), pictopic.load(tmp_path / "whole"))


@pytest.mark.slow
def test_fit_on_a_cluster_writes_the_model_of_one_process(tmp_path):
    photos = write_patterns(tmp_path / "photos", range(60))
    command = [
        sys.executable,
        "-m",
        "pictopic",
        "fit",
        str(photos),
        "--words",
        "12",
        "--features",
        "cld",
        "--jobs",
        "1",
    ]
    subprocess.run([*command, "--out", str(tmp_path / "here")], check=True, capture_output=True)
    cluster = ["--cluster", "auto", "--workers", "2"]
    there = subprocess.run([*command, "--out", str(tmp_path / "there"), *cluster], capture_output=True, text=True)
    assert there.returncode == 0, there.stderr
    one, two = (pictopic.load(tmp_path / name / "network") for name in ("here", "there"))
    np.testing.assert_allclose(one.history_["nll"][:3], two.history_["nll"][:3], rtol=1e-3)
    assert one.history_["nll"] != two.history_["nll"]  # rounding of sums over two processes: they did take part
    assert not (tmp_path / "there.building").exists()

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest

import pictopic
from pictopic import DeepDocNADE, DocNADE, SupDeepDocNADE, SupDocNADE
from tests.support.processes import alarm, pipe_in_place_of


def fitted(topics, kind=SupDocNADE, **options):
    X, y = topics
    names = np.array(["city", "sea"])[y]
    return kind(**({"n_components": 5, "max_iter": 3, "random_state": 0} | options)).fit(X, names)


@pytest.mark.parametrize("kind", [DocNADE, SupDocNADE])
@pytest.mark.parametrize("output", ["tree", "softmax"])
def test_loaded_model_gives_the_same_answers(topics, tmp_path, kind, output):
    model = fitted(topics, kind, output=output)
    model.save(tmp_path / "model")
    loaded = pictopic.load(tmp_path / "model")
    X = topics[0]
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    np.testing.assert_array_equal(loaded.log_likelihood(X), model.log_likelihood(X))
    assert loaded.history_ == model.history_
    if kind is SupDocNADE:
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize("kind", [DeepDocNADE, SupDeepDocNADE])
@pytest.mark.parametrize("output", ["tree", "softmax"])
def test_loaded_deep_model_gives_the_same_answers(topics, tmp_path, kind, output, rng):
    X, y = topics
    features = rng.normal(2, 3, (80, 2))
    model = kind(n_components=(6, 5), max_iter=3, random_state=0, output=output, n_annotation_words=4)
    model.fit(X, y, global_features=features).save(tmp_path / "model")
    loaded = pictopic.load(tmp_path / "model")
    assert loaded.get_params() == model.get_params()
    assert (loaded.annotation_weight_, loaded.normalize_) == (model.annotation_weight_, model.normalize_)
    for f in (None, features):
        np.testing.assert_array_equal(loaded.transform(X, global_features=f), model.transform(X, global_features=f))
    np.testing.assert_array_equal(loaded.log_likelihood(X), model.log_likelihood(X))


def test_deep_model_keeps_no_path_of_the_machine_it_was_trained_on(topics, tmp_path):
    DeepDocNADE(n_components=3, max_iter=1).fit(topics[0]).save(tmp_path / "secret")
    model = DeepDocNADE(n_components=3, max_iter=1, init=tmp_path / "secret").fit(topics[0])
    model.save(tmp_path / "model")
    assert "secret" not in (tmp_path / "model" / "config.json").read_text()
    assert pictopic.load(tmp_path / "model").init is None


@pytest.mark.parametrize("names", [["a", "b"], [3, 7], [True, False], [1.0, 2.0]], ids=["str", "int", "bool", "float"])
def test_class_labels_keep_their_type(topics, tmp_path, names):
    X, y = topics
    model = SupDocNADE(n_components=3, max_iter=1).fit(X, np.array(names)[y])
    model.save(tmp_path / "model")
    loaded = pictopic.load(tmp_path / "model")
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.classes_.tolist() == model.classes_.tolist()


def test_column_names_are_kept(topics, tmp_path):
    X = pd.DataFrame(topics[0], columns=[f"word {i}" for i in range(12)])
    DocNADE(n_components=3, max_iter=1).fit(X).save(tmp_path / "model")
    assert pictopic.load(tmp_path / "model").feature_names_in_.tolist() == X.columns.tolist()


def test_loaded_model_can_be_trained_further(topics, tmp_path):
    fitted(topics).save(tmp_path / "model")
    X, y = topics
    loaded = pictopic.load(tmp_path / "model")
    loaded.partial_fit(X, np.array(["city", "sea"])[y])
    assert loaded.n_iter_ == 4


def test_saving_again_replaces_the_model(topics, tmp_path):
    fitted(topics).save(tmp_path / "model")
    fitted(topics, n_components=7).save(tmp_path / "model")
    assert pictopic.load(tmp_path / "model").n_components == 7
    names = sorted(p.name.partition("-")[0] for p in (tmp_path / "model").iterdir())
    assert names == ["README.md", "config.json", "model", "timings.json"]


_SAVE_FOR_EVER = """
import sys, numpy as np, pictopic
X = np.random.RandomState(0).poisson(1, (30, 400))
models = [pictopic.DocNADE(n_components=n, max_iter=1, random_state=0).fit(X) for n in (50, 60)]
while True:
    for model in models:
        model.save(sys.argv[1])
        print("saved", flush=True)
"""


@pytest.mark.slow
def test_model_survives_processes_that_are_killed_while_saving(tmp_path, rng):
    folder = tmp_path / "model"
    for _ in range(8):
        process = subprocess.Popen([sys.executable, "-c", _SAVE_FOR_EVER, str(folder)], stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(rng.uniform(0.01, 0.3))
        process.kill()
        process.wait()
        process.stdout.close()
        assert pictopic.load(folder).n_components in (50, 60)


def test_folder_that_is_no_model_is_not_overwritten(topics, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_text("x")
    with pytest.raises(ValueError, match="not a model"):
        fitted(topics).save(tmp_path / "photos")
    assert (tmp_path / "photos" / "a.jpg").exists()


def test_model_card_and_config_say_versions_options_and_data(topics, tmp_path):
    model = fitted(topics)
    model.save(tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config["versions"]["pictopic"] == pictopic.__version__
    assert config["options"]["n_components"] == 5
    assert config["learnt"]["data_fingerprint_"] == model.data_fingerprint_
    assert model.data_fingerprint_ in (tmp_path / "model" / "README.md").read_text()


def arrays_of(folder):
    return next(folder.glob("model-*.safetensors"))


def _change_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def _truncate(folder):
    path = arrays_of(folder)
    path.write_bytes(path.read_bytes()[:-10])


def _flip(folder):
    path = arrays_of(folder)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))


def _not_safetensors(folder):
    arrays_of(folder).write_bytes(b"PK\x03\x04 no tensors")
    _change_config(folder, tensors_sha256=hashlib.sha256(b"PK\x03\x04 no tensors").hexdigest())


def _other_shape(folder):
    from safetensors.numpy import load_file, save

    tensors = load_file(arrays_of(folder))
    tensors["hidden_intercept_"] = np.zeros(99, np.float32)
    content = save(tensors)
    arrays_of(folder).write_bytes(content)
    _change_config(folder, tensors_sha256=hashlib.sha256(content).hexdigest())


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_truncate, "damaged or was changed"),
        (_flip, "damaged or was changed"),
        (_not_safetensors, "damaged"),
        (_other_shape, "should hold arrays"),
        (lambda f: arrays_of(f).unlink(), "there is no model-"),
        (lambda f: (f / "config.json").unlink(), "is not a model"),
        (lambda f: (f / "config.json").write_text('{"format_ver'), "damaged"),
        (lambda f: (f / "config.json").write_text("[]"), "not a JSON object"),
        (lambda f: _change_config(f, format_version=99), "update pictopic"),
        (lambda f: _change_config(f, model="os.system"), "unknown model"),
        (lambda f: _change_config(f, options={"n_components": 5, "output": "tree", "evil": 1}), "does not take"),
        (lambda f: _change_config(f, options={}), "damaged"),
        (lambda f: _change_config(f, tensors="../secret.safetensors"), "not the name of a model's arrays"),
        (lambda f: _change_config(f, classes=7), "'classes' is missing or wrong"),
        (lambda f: _change_config(f, learnt={}), "damaged"),
    ],
)
def test_damaged_tampered_or_newer_model_gives_a_clear_error(topics, tmp_path, damage, message):
    fitted(topics).save(tmp_path / "model")
    damage(tmp_path / "model")
    with pytest.raises(ValueError, match=message):
        pictopic.load(tmp_path / "model")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_in_place_of_a_file_is_not_waited_for(topics, tmp_path):
    DocNADE(max_iter=1, n_components=2).fit(topics[0]).save(tmp_path / "model")
    files = [path for path in (tmp_path / "model").iterdir() if path.suffix == ".safetensors" or path.stem == "config"]
    assert len(files) == 2
    for path in files:
        with pipe_in_place_of(path), alarm(20), pytest.raises(ValueError, match=r"is not a file|there is no"):
            pictopic.load(tmp_path / "model")


def test_a_saved_model_is_replaced_under_a_lock(topics, tmp_path):
    from pictopic.processes import LockedError, lock_beside

    model, seen = fitted(topics), []

    def another():
        try:
            with lock_beside(tmp_path / "model", timeout=0.05):
                seen.append("free")
        except LockedError:
            seen.append("locked")

    def arrays():
        thread = threading.Thread(target=another)
        thread.start()
        thread.join()
        return type(model)._get_arrays(model)

    model._get_arrays = arrays
    model.save(tmp_path / "model")
    assert seen == ["locked"]


def test_what_killed_saves_left_is_removed_and_what_is_not_ours_stays(topics, tmp_path):
    fitted(topics).save(tmp_path / "model")
    ours, others = (
        [".abcd_123.tmp", "model-0123456789abcdef.safetensors"],
        ["notes.txt", ".hidden", "model-1.safetensors"],
    )
    for name in ours + others:
        (tmp_path / "model" / name).write_text("x")
    fitted(topics).save(tmp_path / "model")
    names = {path.name for path in (tmp_path / "model").iterdir()}
    assert names & {*ours, *others} == set(others)
    assert pictopic.load(tmp_path / "model").n_components == 5


@pytest.mark.parametrize("call", range(4))
def test_a_save_that_is_interrupted_anywhere_leaves_a_model(topics, tmp_path, monkeypatch, call):
    fitted(topics).save(tmp_path / "model")
    replace, calls = os.replace, []

    def interrupted(source, target):
        calls.append(target)
        if len(calls) > call:
            raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
        patch.setattr("os.replace", interrupted)
        fitted(topics, n_components=7).save(tmp_path / "model")
    assert pictopic.load(tmp_path / "model").n_components in (5, 7)


def test_a_model_that_is_replaced_while_it_is_read_is_read_again(topics, tmp_path, monkeypatch):
    from pictopic.models import persistence

    fitted(topics).save(tmp_path / "model")
    read, reads = persistence._read_tensors, []

    def replaced_meanwhile(folder, config):
        reads.append(1)
        if len(reads) == 1:
            fitted(topics, n_components=7).save(folder)
        return read(folder, config)

    monkeypatch.setattr(persistence, "_read_tensors", replaced_meanwhile)
    assert pictopic.load(tmp_path / "model").n_components == 7


def _nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("learnt", "n_features_in_", 2**40), ("learnt", "n_features_in_", True), ("learnt", "mean_length_", 0),
        ("learnt", "mean_length_", float("nan")), ("learnt", "n_iter_", -1), ("learnt", "history_", {"nll": 1}),
        ("learnt", "best_validation_score_", 10**400), ("learnt", "multi_label_", None),
        ("classes", "dtype", "<U99999999999"), ("classes", "dtype", "V8"), ("classes", "values", [["a"], ["b"]]),
        ("classes", "values", ["a", "a"]), ("classes", "dtype", "<i8"), ("classes", "dtype", "<U1"),
        ("classes", "values", [10**20, 10**21]), ("options", "learning_rate", 10**400),
        ("options", "solver", _nested(700)),
        ("options", "n_jobs", 10**9), ("options", "device", "; rm"), ("options", "learning_rate", float("inf")),
        ("options", "n_annotation_words", 99), ("options", "n_components", 10**18),
    ],
)  # fmt: skip
def test_a_config_with_a_wrong_value_is_refused_in_one_line(topics, tmp_path, section, key, value):
    fitted(topics).save(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_text())
    config[section][key] = value
    path.write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"^[^\n]*(damaged|does not take)[^\n]*$"):
        pictopic.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("components_", lambda a: a * np.float32(np.nan)),
        ("components_", lambda a: a.astype(np.float64)),
        ("word_of_leaf", lambda a: a * 0),
        ("word_of_leaf", lambda a: a + 2**40),
        ("word_of_leaf", lambda a: a.astype(np.float32)),
    ],
)
def test_a_model_with_a_wrong_array_is_refused(topics, tmp_path, name, change):
    from safetensors.numpy import load_file, save

    fitted(topics).save(tmp_path / "model")
    path = arrays_of(tmp_path / "model")
    arrays = load_file(path)
    arrays[name] = np.ascontiguousarray(change(arrays[name]))
    content = save(arrays)
    path.write_bytes(content)
    _change_config(tmp_path / "model", tensors_sha256=hashlib.sha256(content).hexdigest())
    with pytest.raises(ValueError, match=f"damaged: {name} (should be|has values|must hold)"):
        pictopic.load(tmp_path / "model")


def test_a_model_of_a_device_that_is_not_here_runs_on_the_cpu(topics, tmp_path):
    model = fitted(topics, output="softmax")
    model.save(tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    _change_config(tmp_path / "model", options=config["options"] | {"device": "cuda:99"})
    with pytest.warns(UserWarning, match="no device 'cuda:99' here"):
        loaded = pictopic.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(topics[0]), model.transform(topics[0]))


def test_equal_fits_give_equal_files_but_for_their_timings(topics, tmp_path):
    for name in ("one", "other"):
        fitted(topics).save(tmp_path / name)
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "other").iterdir())
    for name in set(names) - {"timings.json"}:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


@pytest.mark.parametrize("text", [None, "{", '{"tensors": "another", "seconds": [1, 2, 3]}', '{"seconds": [1]}'])
def test_a_model_without_its_timings_is_a_model(topics, tmp_path, text):
    model = fitted(topics)
    model.save(tmp_path / "model")
    path = tmp_path / "model" / "timings.json"
    assert pictopic.load(tmp_path / "model").history_ == model.history_
    path.unlink()
    if text is not None:
        path.write_text(text)
    loaded = pictopic.load(tmp_path / "model")
    assert np.isnan(loaded.history_["seconds"]).tolist() == [True] * 3
    assert loaded.history_["nll"] == model.history_["nll"]

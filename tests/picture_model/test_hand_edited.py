"""Models whose JSON somebody has edited: they answer, or a ValueError of one line says why not.  Nothing else.

Each change is tried in a process of its own, forked when everything is loaded: a crash of compiled code is seen.
"""

import copy
import hashlib
import json
import os
import resource
import shutil
import signal
import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest

from pictopic import PictureModel
from pictopic.picture_model.files import checksum
from tests.support.patterns import pattern

NAMES = [
    "picture_model.json", "network/config.json", "index/index.json", "corpus/vocabulary.json", "corpus/corpus.json",
    "corpus/shards/*/counts.json", "network/timings.json",
]  # fmt: skip
DEEP = json.loads("[" * 200 + "]" * 200)
VALUES = [
    None, -1, 0, 1, 2, 0.5, 1e308, float("nan"), float("inf"), "", "../../x", "object", "tree", [], {}, [None], DEEP,
    10**30, 10**400, -(2**63), 2**31, True, False, "\u0000", "x" * 100_000, {"a": {"b": 1}}, ["a", "a"], [1e308],
]  # fmt: skip
MEMORY = 1 << 30  # bytes that a child may take beside what is there


def paths_in(value, path=()):
    """Paths of all values in JSON; of long lists, the first three."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from paths_in(value[key], (*path, key))
    elif isinstance(value, list):
        for i in range(min(3, len(value))):
            yield from paths_in(value[i], (*path, i))


def edits(content):
    """(what was done, edited content) for each path and each value, for deletions and for texts in place of numbers."""
    for path in paths_in(content):
        if not path:
            yield from ((f"whole = {value!r}"[:100], value) for value in ([], None, 1, DEEP))
            continue
        for value in (*VALUES, "delete", "retype"):
            edited = copy.deepcopy(content)
            parent = edited
            for key in path[:-1]:
                parent = parent[key]
            if value == "delete":
                del parent[path[-1]]
            else:
                parent[path[-1]] = str(parent[path[-1]]) if value == "retype" else value
            yield f"{path} = {value!r}"[:160], edited


def seal(folder, edited=None):
    """Write the hashes anew, as somebody who means harm would."""
    path = folder / "picture_model.json"
    content = json.loads(path.read_text()) if edited is None else edited
    if edited is None:
        for name, entry in content["files"].items():
            data = (folder / name).read_bytes()
            entry |= {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    if isinstance(content, dict):
        content["checksum"] = checksum(content)
    path.write_text(json.dumps(content))


def ask(folder):
    """Everything that a model is asked; what is wrong with it, if anything is, or None."""
    try:
        warnings.simplefilter("ignore")
        model = PictureModel.load(folder, n_jobs=1, verbose=0)
        picture = model.describe(pattern(201)[0])
        model.annotate(picture)
        model.annotate(picture, thresholds=True)
        model.classify(picture, dont_know=True)
        model.search(picture)
        model.get_topic_info()
        model.summary()
    except ValueError as error:
        return None if "\n" not in str(error) and len(str(error)) < 2000 else f"long error: {error}"[:500]
    except BaseException:
        return traceback.format_exc()[-1500:]
    return None


def in_a_child(folder):
    """The same in a forked process, with little memory and time."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        signal.alarm(60)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        with os.fdopen(write, "w") as pipe:
            pipe.write(ask(folder) or "")
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    status = os.waitpid(pid, 0)[1]
    return said or (None if status == 0 else f"the process ended with status {status}")


def check(saved, name, n, seed, folder):
    shutil.copytree(saved, folder)
    (path,) = folder.glob(name)
    name = path.relative_to(folder).as_posix()
    content = json.loads(path.read_text())
    every = list(edits(content))
    chosen = [every[i] for i in np.random.RandomState(seed).permutation(len(every))[:n]]
    wrong = []
    for done, edited in chosen:
        if name == "picture_model.json":
            seal(folder, edited)
        else:
            (folder / name).write_text(json.dumps(edited))
            seal(folder)
        said = in_a_child(folder)
        if said:
            wrong.append(f"{name}: {done}: {said}")
    assert not wrong, f"{len(wrong)} of {len(chosen)}\n" + "\n".join(wrong[:20])


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("edited") / "model"
    model.save(folder)
    ask(folder)  # compiles what is compiled at the first call
    return folder


@pytest.fixture(scope="module")
def saved_deep(deep_model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("edited-deep") / "model"
    deep_model.save(folder)
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_a_hand_edited_model_answers_or_says_in_one_line_what_is_wrong(saved, tmp_path, name):
    assert ask(saved) is None
    check(saved, name, 40, 0, tmp_path / "model")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_more_edits_of_a_model(saved, tmp_path, name):
    check(saved, name, 150, 1, tmp_path / "model")


@pytest.mark.slow
def test_edits_of_a_deep_networks_config(saved_deep, tmp_path):
    check(saved_deep, "network/config.json", 150, 1, tmp_path / "model")

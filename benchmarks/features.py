"""How fast pictures become words, beside what else is there: VLFeat, OpenCV, faiss, scikit-learn.

``python -m benchmarks.features --data DIR`` reads ``DIR/labelme8``.  One thread; baselines take turns with ours in one
run; CPU time, medians.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import cv2
import faiss
import numpy as np
import pyarrow as pa
from PIL import Image
from scipy import sparse
from sklearn.cluster import KMeans
from tests.support import vlfeat
from threadpoolctl import threadpool_limits

from benchmarks.timing import interleaved, report
from pictopic import Corpus
from pictopic.corpus.chunks import make_chunk
from pictopic.corpus.store import SCHEMA, Block, Manifest, write_shards
from pictopic.words.codebook import _ITERATIONS, Codebook, Drawn, sample_size
from pictopic.words.extract import PRESETS, Extractor
from pictopic.words.global_features import global_features
from pictopic.words.pictures import gray, open_picture, rgb
from pictopic.words.regions import Regions
from pictopic.words.sift import dense_sift

_MEMORY = """
import resource, sys
from pictopic import Corpus
Corpus.build(sys.argv[1], sys.argv[2], n_jobs=1, codebook_rows=list(range(400)), features=("gist", "mpeg7"))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def pictures(data: Path) -> list[Path]:
    """The pictures of labelme8, in the order of its metadata."""
    with (data / "labelme8" / "metadata.csv").open(encoding="utf-8", newline="") as file:
        return [data / "labelme8" / row["file_name"] for row in csv.DictReader(file)]


def opencv_sift(levels: np.ndarray, centres: np.ndarray, sift: cv2.SIFT) -> np.ndarray:
    """OpenCV's descriptors of the same patches."""
    keypoints = [cv2.KeyPoint(float(x), float(y), 2 * float(size) / 3, 0.0) for x, y, size in centres]
    return sift.compute(levels, keypoints)[1]


def sift(paths: list[Path]) -> None:
    """Dense SIFT of one picture, both presets."""
    vl, opencv = vlfeat.library(), cv2.SIFT_create()
    scene = gray(open_picture(paths[0], colour=False))
    large = np.asarray(Image.fromarray(scene).resize((480, 360), Image.Resampling.BICUBIC))
    for name, levels, repeats in (("scenes", scene, 15), ("flickr", large, 5)):
        options = {"step": PRESETS[name].step, "bin_sizes": PRESETS[name].bin_sizes}
        _, centres = dense_sift(levels, **options)
        runs = {
            "pictopic": lambda levels=levels, options=options: dense_sift(levels, **options),
            "opencv": lambda levels=levels, centres=centres: opencv_sift(levels, centres, opencv),
        }
        if vl is not None:
            runs["vlfeat"] = lambda levels=levels, options=options: [
                vlfeat.dense_sift(vl, levels, options["step"], size) for size in options["bin_sizes"]
            ]
        seconds = interleaved(runs, repeats)
        times = {f"times_{other}": seconds[other] / seconds["pictopic"] for other in seconds if other != "pictopic"}
        milliseconds = {f"{name}_ms": 1000 * value for name, value in seconds.items()}
        report(f"dense SIFT, {name}", patches=len(centres), **times, **milliseconds)


def sample(paths: list[Path], n: int) -> np.ndarray:
    """Descriptors of some pictures."""
    found = [dense_sift(gray(open_picture(path, colour=False)))[0] for path in paths[:: len(paths) // 250]]
    return np.random.default_rng(0).permutation(np.concatenate(found))[:n]


def assignment(paths: list[Path]) -> None:
    """Nearest of 2000 words for as many descriptors as a Flickr picture has."""
    descriptors = sample(paths, 69_176)
    codebook = Codebook(sample(paths[1:], 2000))
    index = faiss.IndexFlatL2(128)
    index.add(codebook.centres)
    seconds = interleaved(
        {
            "pictopic": lambda: codebook.predict(descriptors),
            "faiss": lambda: index.search(descriptors, 1),
            "product": lambda: descriptors @ codebook.centres.T,
        },
        5,
    )
    differ = np.mean(index.search(descriptors, 1)[1][:, 0] != codebook.predict(descriptors))
    report(
        "assignment to 2000 words", descriptors=len(descriptors), times_faiss=seconds["faiss"] / seconds["pictopic"],
        share_of_product=seconds["product"] / seconds["pictopic"], ms=1000 * seconds["pictopic"], differ=float(differ),
    )  # fmt: skip


def clustering(paths: list[Path]) -> None:
    """K-means: faiss against scikit-learn, the same number of rounds from random descriptors."""
    for n_words in (240, 2000):
        descriptors = sample(paths, min(sample_size(n_words), 100_000))
        n = len(descriptors)
        drawn = Drawn(np.arange(n) / n, descriptors, np.zeros((n, 3), np.float32), np.zeros(n, np.int64))
        centres = {}

        def with_faiss(n_words=n_words, descriptors=descriptors, centres=centres) -> None:
            kmeans = faiss.Kmeans(
                128, n_words, niter=_ITERATIONS, seed=1, max_points_per_centroid=10**9, min_points_per_centroid=1
            )
            kmeans.train(descriptors)
            centres["faiss"] = kmeans.centroids

        def with_scikit_learn(n_words=n_words, drawn=drawn, centres=centres) -> None:
            centres["scikit-learn"] = Codebook.learn(drawn, n_words, {0: ""}).centres

        seconds = interleaved({"faiss": with_faiss, "scikit-learn": with_scikit_learn}, 1)
        errors = {
            f"{name}_error": float(Codebook(own).quantise(descriptors)[1].mean()) for name, own in centres.items()
        }
        report(
            f"K-means, {n_words} words", descriptors=n, faiss_s=seconds["faiss"],
            scikit_learn_s=seconds["scikit-learn"], **errors,
        )  # fmt: skip


def whole_pictures(paths: list[Path]) -> None:
    """Global features of pictures of 480 pixels."""
    images = [rgb(open_picture(path).resize((480, 360))) for path in paths[:: len(paths) // 10]]
    for kinds in (("gist", "mpeg7"), ("gist",), ("csd",), ("scd",), ("cld",), ("ehd",), ("htd",)):
        seconds = interleaved({"run": lambda kinds=kinds: [global_features(image, kinds) for image in images]}, 5)
        report(f"global features, {'+'.join(kinds)}", ms_a_picture=1000 * seconds["run"] / len(images))


def opencv_and_scikit_learn(paths: list[Path], training: list[Path]) -> sparse.csr_array:
    """The same work as a build with the scenes preset: descriptors, 240 words, 2 x 2 regions."""
    opencv, preset = cv2.SIFT_create(), PRESETS["scenes"]
    first = cv2.imread(str(paths[0]), cv2.IMREAD_GRAYSCALE)
    _, centres = dense_sift(first)
    region = Regions.parse(preset.regions).of(centres, *first.shape)[0]

    def describe(path: Path) -> np.ndarray:
        return opencv_sift(cv2.imread(str(path), cv2.IMREAD_GRAYSCALE), centres, opencv)

    rng = np.random.default_rng(0)
    n_each = sample_size(preset.n_words) // len(training)
    some = np.concatenate([rng.permutation(describe(path))[:n_each] for path in training])
    kmeans = KMeans(preset.n_words, init="random", n_init=1, max_iter=_ITERATIONS, tol=0, random_state=0).fit(some)
    size = 4 * preset.n_words
    rows = [np.bincount(region * 240 + kmeans.predict(describe(path)), minlength=size) for path in paths]
    return sparse.csr_array(np.array(rows))


def whole_build(data: Path, paths: list[Path], repeats: int) -> None:
    """A corpus of 1600 scenes, words from half of them."""
    training = paths[::2]
    names = [path.relative_to(data / "labelme8").as_posix() for path in training]
    stages: dict[str, float] = {}

    def ours() -> None:
        with tempfile.TemporaryDirectory() as folder:
            marks: list[tuple[str, float]] = []

            def tell(stage: str, done: int, total: int) -> None:
                if not marks or marks[-1][0] != stage:
                    marks.append((stage, time.process_time()))

            start = time.process_time()
            Corpus.build(
                data / "labelme8", Path(folder) / "corpus", n_jobs=1, codebook_rows=names, progress=tell,
                tags_column=None,
            )  # fmt: skip
            ends = [mark for _, mark in marks[1:]] + [time.process_time()]
            begins = [start, *ends[:-1]]
            stages.update({stage: end - begin for (stage, _), begin, end in zip(marks, begins, ends, strict=True)})

    seconds = interleaved({"pictopic": ours, "opencv": lambda: opencv_and_scikit_learn(paths, training)}, repeats)
    report(
        "whole build, labelme8", pictures=len(paths),
        times_opencv_and_scikit_learn=seconds["opencv"] / seconds["pictopic"],
        pictures_a_second=len(paths) / seconds["pictopic"], seconds=seconds["pictopic"],
        **{f"share {stage}": value / sum(stages.values()) for stage, value in stages.items()},
    )  # fmt: skip


def a_picture(data: Path, paths: list[Path]) -> None:
    """What becomes of the time of counting one picture's words."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus.build(data / "labelme8", Path(folder) / "corpus", n_jobs=1, codebook_rows=list(range(100)))
        extractor = Extractor(PRESETS["scenes"], corpus.codebook)
        some = [str(path) for path in paths[::20]]
        images = [extractor.open(path) for path in some]
        described = [next(extractor.describe(image))[0] for image in images]
        seconds = interleaved(
            {
                "all": lambda: make_chunk(some, extractor),
                "decoding": lambda: [extractor.open(path) for path in some],
                "SIFT": lambda: [list(extractor.describe(image)) for image in images],
                "assignment": lambda: [extractor.codebook.predict(descriptors) for descriptors in described],
            },
            5,
        )
    whole = seconds.pop("all")
    shares = {f"share {name}": value / whole for name, value in seconds.items()}
    report("counting a picture's words", ms=1000 * whole / len(some), **shares)


def memory(paths: list[Path]) -> None:
    """Peak memory of a build, few pictures and many."""
    peaks = {}
    for n in (500, 5000):
        with tempfile.TemporaryDirectory() as folder:
            photos = Path(folder) / "photos"
            photos.mkdir()
            for k in range(n):
                shutil.copy(paths[k % len(paths)], photos / f"{k:05d}.jpg")
            command = [sys.executable, "-c", _MEMORY, str(photos), str(Path(folder) / "corpus")]
            run = subprocess.run(command, capture_output=True, text=True, check=True)
            peaks[n] = float(json.loads(run.stdout))
    report("peak memory of a build, MB", **{f"{n} pictures": peak for n, peak in peaks.items()})


def reading() -> None:
    """Random minibatches from a corpus on disk of 100,000 documents: 320 words and 64 global features each."""
    rng = np.random.default_rng(0)
    n, batch = 100_000, 128

    def blocks() -> Iterator[Block]:
        for start in range(0, n, 1000):
            indices = np.sort(rng.integers(0, 4000, (1000, 320), dtype=np.int32), axis=1).ravel()
            counts = sparse.csr_array((np.ones(320_000, np.int32), indices, np.arange(0, 320_001, 320)), (1000, 4000))
            names = pa.table({"file_name": [f"{start + k}.jpg" for k in range(1000)]})
            columns = [pa.nulls(1000, field.type) for field in SCHEMA][1:]
            rows = pa.table([names["file_name"], *columns], schema=SCHEMA)
            yield Block(counts, rng.random((1000, 64), dtype=np.float32), rows)

    with tempfile.TemporaryDirectory() as folder:
        manifest = Manifest(4000, 64, False, None, "made up")
        manifest.shards = [shard | {"pictures": None} for shard in write_shards(Path(folder), manifest, blocks())]
        manifest.write(Path(folder))
        corpus = Corpus.open(folder)
        counts, features = corpus.counts, corpus.global_features
        before = _resident()
        order = rng.permutation(n).reshape(-1, batch) if n % batch == 0 else rng.permutation(n)[: n // batch * batch]
        start = time.process_time()
        for rows in order.reshape(-1, batch):
            counts[rows]
            features[rows]
        seconds = time.process_time() - start
        report(
            "random minibatches from disk", documents=n, documents_a_second=order.size / seconds,
            resident_mb=_resident() - before,
        )  # fmt: skip


def _resident() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def main(arguments: list[str] | None = None) -> None:
    """Print all figures, or some."""
    parts = (
        "sift", "assignment", "clustering", "whole_pictures", "a_picture", "whole_build", "memory", "reading",
    )  # fmt: skip
    parser = argparse.ArgumentParser(prog="python -m benchmarks.features", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with labelme8/")
    parser.add_argument("--only", choices=parts)
    parser.add_argument("--repeats", type=int, default=3, help="of the whole build")
    options = parser.parse_args(arguments)
    paths = pictures(options.data)
    cv2.setNumThreads(1)
    faiss.omp_set_num_threads(1)
    runs = {
        "sift": lambda: sift(paths),
        "assignment": lambda: assignment(paths),
        "clustering": lambda: clustering(paths),
        "whole_pictures": lambda: whole_pictures(paths),
        "a_picture": lambda: a_picture(options.data, paths),
        "whole_build": lambda: whole_build(options.data, paths, options.repeats),
        "memory": lambda: memory(paths),
        "reading": reading,
    }
    with threadpool_limits(1):
        for name in parts:
            if options.only in (None, name):
                runs[name]()


if __name__ == "__main__":
    main()

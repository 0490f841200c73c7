"""How good PictureModel's answers are on real pictures: tags, similar pictures, classes.

``python -m benchmarks.annotation --data DIR`` reads ``DIR/corel5k`` (a random 4000 / 500 split) and ``DIR/labelme8``
(split 1).  Everything is learnt from training pictures; test pictures come without tags.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from benchmarks.labelme import accuracies, intersection
from benchmarks.timing import report
from pictopic import Corpus, PictureModel
from pictopic.corpus.pieces import make_piece
from pictopic.tasks.metrics import f_measure_at_k, per_word_scores
from pictopic.words.extract import Extractor
from pictopic.words.pictures import open_picture

N_TEST = 500
SEED = 7


def hsv_histogram(path: Path) -> np.ndarray:
    """Colours in 2 x 2 regions: 8 hues, 4 saturations, 4 values."""
    hsv = np.asarray(open_picture(path).convert("RGB").convert("HSV"))
    cells = (hsv[..., 0] // 32) * 16 + (hsv[..., 1] // 64) * 4 + hsv[..., 2] // 64
    height, width = cells.shape
    halves = [(0, 0), (0, 1), (1, 0), (1, 1)]
    quarters = [
        cells[i * height // 2 : (i + 1) * height // 2, j * width // 2 : (j + 1) * width // 2] for i, j in halves
    ]
    return np.concatenate([np.bincount(quarter.ravel(), minlength=128) for quarter in quarters])


def unit(rows: np.ndarray) -> np.ndarray:
    """Rows of length 1."""
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def neighbour_tags(train: np.ndarray, test: np.ndarray, tags: list[list[str]], k: int) -> list[list[str]]:
    """Tags of the k nearest training pictures, weighted by their similarity."""
    similarity = test @ train.T
    ranked = []
    for row in similarity:
        votes: dict[str, float] = {}
        for i in np.argsort(-row, kind="stable")[:k]:
            for tag in tags[i]:
                votes[tag] = votes.get(tag, 0.0) + float(np.exp(10 * (row[i] - 1)))
        ranked.append(sorted(votes, key=lambda tag: (-votes[tag], tag))[:5])
    return ranked


def best_k(train: np.ndarray, tags: list[list[str]]) -> int:
    """Number of neighbours, by the F-measure on a tenth of the training pictures."""
    n = len(train) // 10
    scores = {
        k: f_measure_at_k(tags[:n], neighbour_tags(train[n:], train[:n], tags[n:], k)) for k in (5, 8, 12, 20, 30)
    }
    return max(scores, key=lambda k: scores[k])


def pyramid_similarity(a: np.ndarray, b: np.ndarray, n_words: int) -> np.ndarray:
    """Intersection of two-level pyramids, SPM's kernel: the whole picture counts half as much as its quarters."""
    whole = [part.reshape(len(part), 4, n_words).sum(axis=1) for part in (a, b)]
    return 0.5 * intersection(*whole) + 0.5 * intersection(a, b)


def tag_report(name: str, true: list[list[str]], ranked: list[list[str]]) -> None:
    """Print the F-measure and the figures a word."""
    words = per_word_scores(true, ranked)
    report(
        f"corel5k tags, {name}", f_measure=f_measure_at_k(true, ranked), precision=words.precision, recall=words.recall,
        n_plus=words.n_plus,
    )  # fmt: skip


def corel(data: Path, jobs: int) -> None:
    """Tags and similar pictures of Corel5k."""
    with tempfile.TemporaryDirectory() as folder:
        order = np.random.RandomState(SEED).permutation(4500)
        corpus = Corpus.build(
            data / "corel5k", Path(folder) / "corpus", label_column="group", features=("gist", "mpeg7"), max_side=480,
            codebook_rows=np.sort(order[N_TEST:]), n_jobs=jobs, n_words=500,
        )  # fmt: skip
        test, train = corpus[np.sort(order[:N_TEST])], corpus[np.sort(order[N_TEST:])]
        start = time.process_time()
        model = PictureModel(n_jobs=jobs, verbose=1).fit(train)
        report("corel5k, learning", cpu_seconds=time.process_time() - start)
        _corel_tags(model, train, test)
        _corel_search(model, train, test)
        _speed(model, test)


def _corel_tags(model: PictureModel, train: Corpus, test: Corpus) -> None:
    n_pairs = train.vocabulary.n_pairs
    sift = [part.X[:, :n_pairs].toarray().astype(float) for part in (train, test)]
    colours = [np.array([hsv_histogram(path) for path in part.paths], float) for part in (train, test)]
    both = [np.hstack([unit(np.sqrt(a)), unit(np.sqrt(b))]) / np.sqrt(2) for a, b in zip(sift, colours, strict=True)]
    true, tags = test.tags, train.tags
    counts: dict[str, int] = {}
    for own in tags:
        for tag in own:
            counts[tag] = counts.get(tag, 0) + 1
    usual = sorted(counts, key=lambda tag: (-counts[tag], tag))[:5]
    tag_report("most frequent", true, [usual] * len(true))
    plain = [unit(np.sqrt(part)) for part in sift]
    tag_report("kNN on SIFT", true, neighbour_tags(*plain, tags, best_k(plain[0], tags)))
    tag_report("kNN on SIFT and HSV", true, neighbour_tags(*both, tags, best_k(both[0], tags)))
    share = [part / part.sum(axis=1, keepdims=True) for part in sift]
    n_words = train.vocabulary.n_visual_words
    spm = pyramid_similarity(share[1], share[0], n_words)
    own = pyramid_similarity(share[0][:400], share[0][400:], n_words)
    k = max((5, 8, 12, 20, 30), key=lambda k: f_measure_at_k(tags[:400], _votes(own, tags[400:], k)))
    tag_report("SPM + kNN", true, _votes(spm, tags, k))
    tag_report("PictureModel", true, [[tag for tag, _ in own] for own in model.annotate(test.paths)])
    _where_errors_are(model, test)


def _votes(similarity: np.ndarray, tags: list[list[str]], k: int) -> list[list[str]]:
    ranked = []
    for row in similarity:
        votes: dict[str, float] = {}
        for i in np.argsort(-row, kind="stable")[:k]:
            for tag in tags[i]:
                votes[tag] = votes.get(tag, 0.0) + float(row[i])
        ranked.append(sorted(votes, key=lambda tag: (-votes[tag], tag))[:5])
    return ranked


def _where_errors_are(model: PictureModel, test: Corpus) -> None:
    found = model.annotate(test.paths)
    missed: dict[str, int] = {}
    wrong: dict[str, int] = {}
    for own, true in zip(found, test.tags, strict=True):
        names = [tag for tag, _ in own]
        for tag in true:
            missed[tag] = missed.get(tag, 0) + (tag not in names)
        for tag in names:
            wrong[tag] = wrong.get(tag, 0) + (tag not in true)
    for what, counts in (("missed", missed), ("wrong", wrong)):
        top = sorted(counts, key=lambda tag: -counts[tag])[:8]
        report(f"corel5k tags most often {what}", **{tag: counts[tag] for tag in top})


def _corel_search(model: PictureModel, train: Corpus, test: Corpus) -> None:
    """Precision at 10 by shared group, for queries of a picture and its tags."""
    group = {name: own[0] for name, own in zip(train.file_names, train.label_lists, strict=True) if own}
    wanted = [own[0] if own else "" for own in test.label_lists]

    def precision(found: list[list[str]]) -> float:
        hits = [[group[name] == own for name in names] for names, own in zip(found, wanted, strict=True)]
        return float(np.mean([np.mean(own) for own in hits]))

    pairs = zip(test.paths, test.tags, strict=True)
    ours = [[name for name, _ in model.search(path, tags=own, k=10)] for path, own in pairs]
    n_pairs = train.vocabulary.n_pairs
    raw = [unit(part.X[:, :n_pairs].toarray().astype(float)) for part in (train, test)]
    nearest = NearestNeighbors(n_neighbors=10, metric="cosine", algorithm="brute").fit(raw[0]).kneighbors(raw[1])[1]
    by_tags = []
    for own in test.tags:
        likeness = [len(set(own) & set(other)) / max(1, len(set(own) | set(other))) for other in train.tags]
        by_tags.append([train.file_names[i] for i in np.argsort(-np.array(likeness), kind="stable")[:10]])
    report(
        "corel5k, similar pictures by picture and tags: precision at 10", picture_model=precision(ours),
        raw_histogram_cosine=precision([[train.file_names[i] for i in row] for row in nearest]),
        tags_only_jaccard=precision(by_tags),
    )  # fmt: skip


def _speed(model: PictureModel, test: Corpus) -> None:
    """Annotating pictures from disk, against describing them alone; one process."""
    model.n_jobs = model._reader.n_jobs = 1
    paths = [str(path) for path in (test.paths * 2)[:1000]]
    extractor = Extractor(test.options, test.codebook)
    with threadpool_limits(1):
        start = time.process_time()
        for k in range(0, len(paths), 32):
            make_piece(paths[k : k + 32], extractor)
        alone = time.process_time() - start
        start = time.process_time()
        model.annotate(paths)
        whole = time.process_time() - start
    report("annotate 1,000 pictures", share_of_feature_speed=alone / whole, ms_a_picture=whole)


def labelme(data: Path, jobs: int) -> None:
    """Classes of LabelMe, split 1, beside both SVMs."""
    with (data / "labelme8" / "splits.csv").open(encoding="utf-8", newline="") as file:
        training = {row["file_name"] for row in csv.DictReader(file) if row["split1"] == "train"}
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus.build(
            data / "labelme8", Path(folder) / "corpus", codebook_rows=sorted(training), features=("gist", "mpeg7"),
            max_side=480, n_jobs=jobs,
        )  # fmt: skip
        is_training = np.array([name in training for name in corpus.file_names])
        train, test = corpus[is_training], corpus[~is_training]
        model = PictureModel(n_jobs=jobs, verbose=1).fit(train)
        found = np.array([own[0][0] for own in model.classify(test.paths, 1)])
        with threadpool_limits(1):
            baselines = accuracies(train, test)
        report("labelme8 split 1, accuracy", **{"PictureModel": float(np.mean(found == test.labels)), **baselines})


def main(arguments: list[str] | None = None) -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.annotation", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with corel5k/ and labelme8/")
    parser.add_argument("--only", choices=["corel", "labelme"])
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args(arguments)
    if options.only != "labelme":
        corel(options.data, options.jobs)
    if options.only != "corel":
        labelme(options.data, options.jobs)


if __name__ == "__main__":
    main()

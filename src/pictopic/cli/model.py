"""Commands for models: fit, tune, annotate, classify, search, topics, evaluate, update, export."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from pictopic.cli import app
from pictopic.cli.output import (
    CLUSTER,
    JSON,
    WORKERS,
    MisuseError,
    answer,
    cluster_workers,
    misuse,
    progress_bars,
    tell_warnings,
    trainer,
)

if TYPE_CHECKING:
    from pictopic import Corpus, PictureModel
    from pictopic.tasks.reading import Answer

_SHOWN_TOPICS = 20
_Model = Annotated[Path, typer.Argument(help="Folder of a model, made by pictopic fit.")]
_Pictures = Annotated[list[Path], typer.Argument(help="Pictures, or folders of pictures.")]
_LabelColumn = Annotated[str, typer.Option(help="Column of the classes.")]
_TagsColumn = Annotated[str, typer.Option(help="Column of the tags.")]
_Moved = Annotated[Path | None, typer.Option("--pictures", help="Where the collection's pictures are, if they moved.")]


def _load(folder: Path, pictures: Path | None = None) -> PictureModel:
    from pictopic import PictureModel

    with misuse():
        return PictureModel.load(folder, pictures=pictures)


def _listed(paths: list[Path]) -> list[Path]:
    """The pictures, and those in the folders."""
    from pictopic.words.pictures import PICTURE_EXTENSIONS

    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = (own for own in sorted(path.rglob("*")) if own.suffix.lower() in PICTURE_EXTENSIONS)
            found += [own for own in inside if own.is_file() and not own.name.startswith(".")]
        else:
            found.append(path)
    if not found:
        raise MisuseError(f"there is no picture in {', '.join(map(str, paths))}")
    return found


def _try_sidecar(picture: Path, tags: list[str]) -> None:
    from pictopic.corpus.keywords import write_sidecar

    try:
        write_sidecar(picture, tags)
    except (OSError, ValueError) as error:
        warnings.warn(str(error), stacklevel=2)


def _pairs(found: list[tuple[str, float]]) -> list[dict[str, Any]]:
    return [{"name": name, "score": round(score, 6)} for name, score in found]


def _lines(names: list[str], found: list[list[tuple[str, float]]]) -> list[str]:
    texts = [", ".join(f"{name} {score:.2f}" for name, score in own) or "-" for own in found]
    return texts if len(names) == 1 else [f"{name}: {text}" for name, text in zip(names, texts, strict=True)]


@app.command()
def fit(
    source: Annotated[str, typer.Argument(help="Folder of pictures, metadata file, or a corpus (or its URL).")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the model.")],
    model: Annotated[str, typer.Option(help="auto, shallow or deep.")] = "auto",
    preset: Annotated[str, typer.Option(help="scenes or flickr.")] = "scenes",
    words: Annotated[int | None, typer.Option(help="Number of visual words.")] = None,
    regions: Annotated[str | None, typer.Option(help="Grid over a picture, as 2x2.")] = None,
    features: Annotated[str, typer.Option(help="Global features; none for none.")] = "gist,mpeg7",
    max_side: Annotated[int, typer.Option(help="Scale larger pictures down to this many pixels.")] = 480,
    label_column: _LabelColumn = "label",
    tags_column: _TagsColumn = "tags",
    split_column: Annotated[str | None, typer.Option(help="Column that says train, test, ...")] = None,
    tuned: Annotated[Path | None, typer.Option(help="Options that pictopic tune found: TUNED/best.json.")] = None,
    init: Annotated[str | None, typer.Option(help="A model of pictopic pretrain to start from.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes and threads; -1: one for each core.")] = -1,
    cluster: CLUSTER = None,
    workers: WORKERS = None,
    seed: Annotated[int, typer.Option(help="Another number gives another model.")] = 0,
    as_json: JSON = False,
) -> None:
    """Learn from a folder of pictures with tags or classes.

    Says how good the model is on pictures that it has not seen, beside trivial answers.

    With --cluster a Ray cluster's machines count the words and learn one network together (a deep one); they must see
    the pictures, and the checkpoints in OUT.checkpoints, under the same path.

    Example: pictopic fit photos --out photos.model
    """
    from pictopic import Checkpoint, Corpus, PictureModel
    from pictopic.corpus.store import MANIFEST
    from pictopic.storage import is_remote
    from pictopic.tasks.pretraining import load_pretrained
    from pictopic.tasks.tuning import read_options

    tell_warnings()
    kinds = () if features == "none" else tuple(kind.strip() for kind in features.split(",") if kind.strip())
    with misuse():
        learner = PictureModel(
            preset=preset, n_words=words, regions=regions, features=kinds, max_side=max_side, model=model,
            options=None if tuned is None else read_options(tuned), random_state=seed, n_jobs=jobs, verbose=0,
        )  # fmt: skip
        if not is_remote(source) and not Path(source).exists():
            raise ValueError(f"{source} does not exist")
        given: Any = Corpus.open(source) if is_remote(source) or (Path(source) / MANIFEST).is_file() else source
        if init is not None and isinstance(given, Corpus):
            load_pretrained(init, given)
        checkpoint = Checkpoint(f"{out}.checkpoints")
        train = trainer("fit_on_cluster", cluster, workers, checkpoint=checkpoint)
    with cluster_workers(cluster) as hands, progress_bars("pictures") as progress:
        columns = {"label_column": label_column, "tags_column": tags_column, "split_column": split_column}
        options: dict[str, Any] = {} if isinstance(given, Corpus) else columns | {"workers": hands}
        learner.fit(given, progress=progress, init=init, train=train, **options)
        progress("learning topics", 1, 1)
    learner.save(out)
    if train is not None:
        from pictopic.cluster.training import clear_checkpoints

        clear_checkpoints(checkpoint)
    lines = [*learner.summary(), f"Written: {out}.  Try: pictopic serve {out}"]
    answer({"model": str(out), "rows": len(learner.corpus_), "figures": learner.figures_}, lines, as_json)


@app.command()
def tune(
    source: Annotated[Path, typer.Argument(help="Folder of pictures, metadata file, or a corpus.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the trials.")],
    minutes: Annotated[float, typer.Option(help="How long to try.")] = 10.0,
    label_column: _LabelColumn = "label",
    tags_column: _TagsColumn = "tags",
    jobs: Annotated[int, typer.Option(help="Processes and threads; -1: one for each core.")] = -1,
    seed: Annotated[int, typer.Option(help="Another number gives other trials.")] = 0,
    as_json: JSON = False,
) -> None:
    """Try options of the model for some minutes, on a part of the pictures that is held out.

    Each trial is written down when it ends: run it again to go on.

    Example: pictopic tune photos --out tuned --minutes 30

    Then: pictopic fit photos --out photos.model --tuned tuned/best.json
    """
    from pictopic.tasks import tuning

    tell_warnings()
    with misuse():
        if not source.exists():
            raise ValueError(f"{source} does not exist")
        if minutes <= 0:
            raise ValueError(f"the minutes must be more than 0, got {minutes}")
    columns = {"label_column": label_column, "tags_column": tags_column}
    corpus = _corpus_for_trials(source, out / "corpus", jobs, columns)

    def tell(trial: tuning.Trial) -> None:
        print(tuning.table([trial])[1], file=sys.stderr, flush=True)

    trials = tuning.tune(corpus, out, minutes, random_state=seed, n_jobs=jobs, tell=tell)
    lines = [*tuning.table(trials), f"Best options: {out / tuning.BEST}"]
    answer({"trials": [trial._asdict() | {"score": trial.score} for trial in trials]}, lines, as_json)


def _corpus_for_trials(source: Path, folder: Path, jobs: int, columns: dict[str, Any]) -> Corpus:
    """The source, if it is a corpus; the one that an earlier run made; or a new one."""
    from pictopic import Corpus, PictureModel
    from pictopic.corpus.store import MANIFEST

    for place in (source, folder):
        if (place / MANIFEST).is_file():
            return Corpus.open(place)
    with progress_bars("pictures") as progress:
        return PictureModel(n_jobs=jobs).build_corpus(source, folder, progress=progress, resume=True, **columns)


@app.command()
def annotate(
    model: _Model,
    pictures: _Pictures,
    k: Annotated[int, typer.Option("-k", help="How many tags.")] = 5,
    tags: Annotated[str, typer.Option(help="Tags that are known, separated by commas.")] = "",
    thresholds: Annotated[bool, typer.Option(help="All tags one can believe, instead of the best k.")] = False,
    write_xmp: Annotated[bool, typer.Option(help="Write the tags to .xmp files beside the pictures.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Write a CSV file: file_name, tags.")] = None,
    as_json: JSON = False,
) -> None:
    """Give tags to pictures.

    Example: pictopic annotate photos.model new/ --thresholds --csv tags.csv
    """
    from pictopic.tasks.exports import write_tags

    tell_warnings()
    loaded, paths = _load(model), _listed(pictures)
    known = [tag for tag in tags.split(",") if tag.strip()]
    found = cast("list[Answer]", loaded.annotate(list(paths), k, tags=known, thresholds=thresholds))
    names = [str(path) for path in paths]
    if csv is not None:
        write_tags(csv, names, found)
    if write_xmp:
        for path, own in zip(paths, found, strict=True):
            if own:
                _try_sidecar(path, [tag for tag, _ in own])
    content = [{"file_name": name, "tags": _pairs(own)} for name, own in zip(names, found, strict=True)]
    answer({"pictures": content}, _lines(names, found), as_json)


@app.command()
def classify(
    model: _Model,
    pictures: _Pictures,
    k: Annotated[int, typer.Option("-k", help="How many classes.")] = 3,
    dont_know: Annotated[bool, typer.Option(help="Say so where the answer is not sure.")] = False,
    as_json: JSON = False,
) -> None:
    """Say of which class pictures are.

    Example: pictopic classify photos.model new.jpg --dont-know
    """
    tell_warnings()
    loaded, paths = _load(model), _listed(pictures)
    found = cast("list[Answer]", loaded.classify(list(paths), k, dont_know=dont_know))
    names = [str(path) for path in paths]
    content = [{"file_name": name, "classes": _pairs(own)} for name, own in zip(names, found, strict=True)]
    answer({"pictures": content}, _lines(names, found), as_json)


@app.command()
def search(
    model: _Model,
    picture: Annotated[Path | None, typer.Argument(help="A picture, or the name of one in the collection.")] = None,
    tags: Annotated[str, typer.Option(help="Tags, separated by commas.")] = "",
    k: Annotated[int, typer.Option("-k", help="How many pictures.")] = 10,
    label: Annotated[str | None, typer.Option(help="Only pictures of this class.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only pictures with this tag.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page of thumbnails.")] = None,
    moved: _Moved = None,
    as_json: JSON = False,
) -> None:
    """Find pictures of the collection: like a picture, by tags, or both.

    Example: pictopic search photos.model --tags sea,boat --html found.html
    """
    from pictopic.tasks.exports import write_thumbnails

    loaded = _load(model, moved)
    words = [own for own in tags.split(",") if own.strip()]
    with misuse():
        query = None if picture is None else str(picture)
        found = cast("Answer", loaded.search(query, words or None, k, label=label, tag=tag))
    if html is not None:
        paths = dict(zip(loaded.corpus_.file_names, loaded.corpus_.paths, strict=True))
        title = " + ".join(([str(picture)] if picture is not None else []) + words)
        write_thumbnails(html, title, [(name, paths[name], f"{score:.2f}") for name, score in found])
    answer({"pictures": _pairs(found)}, [f"{score:.3f}  {name}" for name, score in found], as_json)


@app.command()
def topics(
    model: _Model,
    html: Annotated[Path | None, typer.Option(help="Write a page with pictures of the visual words.")] = None,
    moved: _Moved = None,
    as_json: JSON = False,
) -> None:
    """Say what the collection turned out to be about.

    Example: pictopic topics photos.model --html topics.html
    """
    from pictopic.tasks.exports import write_topics

    loaded = _load(model, moved)
    classes = loaded.topics() if loaded.has_classes else []
    units, quality = loaded.get_topic_info(), loaded.topic_quality()
    if html is not None:
        write_topics(html, loaded.corpus_, classes, units)
    lines = [f"{topic.label}: {', '.join(tag for tag, _ in topic.tags)}" for topic in classes]
    for own in units[:_SHOWN_TOPICS]:
        lines.append(f"topic {own['Topic']} ({own['Count']} pictures): {', '.join(own['Representation'][:5])}")
    lines.append(f"coherence (NPMI) {quality['coherence']:.3f}, diversity {quality['diversity']:.3f}")
    content = {"classes": [topic._asdict() for topic in classes], "topics": units, "quality": quality}
    answer(content, lines, as_json)


@app.command()
def evaluate(
    model: _Model,
    source: Annotated[Path, typer.Argument(help="Pictures whose tags or classes are known.")],
    label_column: _LabelColumn = "label",
    tags_column: _TagsColumn = "tags",
    as_json: JSON = False,
) -> None:
    """Say how good a model is on other pictures.

    Example: pictopic evaluate photos.model more-photos
    """
    loaded = _load(model)
    with misuse():
        figures = loaded.evaluate(source, label_column=label_column, tags_column=tags_column)
    answer(figures, [f"{name:16} {value:.4g}" for name, value in figures.items()], as_json)


@app.command()
def update(
    model: _Model,
    source: Annotated[
        Path | None, typer.Argument(help="More pictures; may be left out if there are decisions.")
    ] = None,
    use_decisions: Annotated[
        bool, typer.Option("--decisions/--no-decisions", help="Learn from what was decided about tags.")
    ] = True,
    passes: Annotated[int, typer.Option(help="Passes over the whole collection.")] = 20,
    label_column: _LabelColumn = "label",
    tags_column: _TagsColumn = "tags",
    as_json: JSON = False,
) -> None:
    """Take more pictures, or decisions about tags, into a model, without starting over.

    Tags that you accepted or rejected in the page of pictopic serve are in MODEL.decisions.jsonl, beside the model: the
    collection gets them, and the model learns from them.  The file stays as it is.

    \b
    Example:
      pictopic update photos.model new-photos
      pictopic update photos.model
      pictopic update photos.model new-photos --no-decisions
    """  # noqa: D301 - the help needs the character itself: it keeps line breaks
    from pictopic.tasks.decision_files import decisions_about
    from pictopic.tasks.decisions import Decisions

    loaded = _load(model)
    loaded.verbose = 0
    before = len(loaded.corpus_)
    with misuse():
        if source is not None and not source.exists():
            raise ValueError(f"{source} does not exist")
        decisions = Decisions.beside(model) if use_decisions else None
        known = [] if decisions is None else decisions_about(decisions, loaded.corpus_.file_names)
        if source is None and not known:
            raise ValueError(
                f"there is nothing new: name more pictures, or decide about tags in pictopic serve {model}"
            )
    columns = {} if source is None else {"label_column": label_column, "tags_column": tags_column}
    loaded.update(source, decisions=decisions, passes=passes, **columns)
    loaded.save(model)
    lines = [f"{len(loaded.corpus_) - before:,} pictures more", f"{len(known):,} decisions used", *loaded.summary()]
    answer({"rows": len(loaded.corpus_), "decisions": len(known), "figures": loaded.figures_}, lines, as_json)


@app.command()
def export(
    model: _Model,
    vectors: Annotated[Path | None, typer.Option(help="Parquet file: file_name, labels, tags, vector.")] = None,
    accepted: Annotated[
        Path | None, typer.Option(help="CSV file of the pictures whose tags you decided about: file_name, tags.")
    ] = None,
    xmp: Annotated[
        Path | None, typer.Option(help="Folder for their XMP files; not the one where the pictures are.")
    ] = None,
    as_json: JSON = False,
) -> None:
    """Write the pictures' representations, or the tags that you decided about, for other programs.

    The CSV and the XMP files have all tags of a picture: with those you accepted in the page of pictopic serve, without
    those you rejected.  pictopic build reads the CSV, photo managers read the XMP files.

    \b
    Example:
      pictopic export photos.model --vectors vectors.parquet
      pictopic export photos.model --accepted tags.csv --xmp sidecars
    """  # noqa: D301 - the help needs the character itself: it keeps line breaks
    if vectors is None and accepted is None and xmp is None:
        raise MisuseError("say what to write: --vectors FILE, --accepted FILE or --xmp FOLDER")
    loaded = _load(model)
    written: dict[str, int] = {}
    lines = []
    if accepted is not None or xmp is not None:
        written |= _export_tags(model, loaded.corpus_, accepted, xmp)
    if accepted is not None:
        lines.append(f"tags of {written['pictures']:,} pictures: {accepted}")
    if xmp is not None:
        lines.append(f"{written['sidecars']:,} XMP files of {written['pictures']:,} pictures: {xmp}")
    if vectors is not None:
        from pictopic.tasks.exports import write_vectors

        written["rows"], written["dimensions"] = write_vectors(vectors, loaded.corpus_, loaded.vectors)
        lines.append(f"{written['rows']:,} vectors of {written['dimensions']} numbers: {vectors}")
    answer(written, lines, as_json)


def _export_tags(model: Path, corpus: Corpus, accepted: Path | None, xmp: Path | None) -> dict[str, int]:
    """Write the tags that were decided about; of how many pictures."""
    from pictopic.files import write_text
    from pictopic.tasks.decision_files import decided_tags, sidecars, write_sidecars
    from pictopic.tasks.decisions import Decisions
    from pictopic.tasks.exports import tags_csv

    with misuse():
        tags = decided_tags(Decisions.beside(model), corpus.file_names, corpus.tags)
        if not tags:
            raise ValueError(f"nothing is decided about tags yet: look at pictures in pictopic serve {model}")
        written = {"pictures": len(tags)}
        if xmp is not None:
            found = sidecars(tags, corpus.file_names)
            write_sidecars(xmp, found)
            written["sidecars"] = len(found)
    if accepted is not None:
        write_text(accepted, tags_csv(tags.items()))
    return written

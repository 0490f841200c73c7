"""Commands for models: annotate, classify, search, topics, evaluate, update, export."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from pictopic.cli.application import app
from pictopic.cli.output import (
    JSON,
    LABEL_COLUMN,
    TAGS_COLUMN,
    MisuseError,
    answer,
    misuse,
    print_warnings,
    progress_bars,
    training_report,
)

if TYPE_CHECKING:
    from pictopic import Corpus, PictureModel
    from pictopic.tasks.reading import Answer

_MAX_TOPICS = 20
_MEASURES = {"coherence": "coherence (NPMI)", "diversity": "diversity"}  # of topics
_Model = Annotated[Path, typer.Argument(help="Folder of a model, made by pictopic fit.")]
_Pictures = Annotated[list[Path], typer.Argument(help="Pictures, or folders of pictures.")]
_Moved = Annotated[Path | None, typer.Option("--pictures", help="Where the collection's pictures are, if they moved.")]


def _load(folder: Path, pictures: Path | None = None) -> PictureModel:
    from pictopic import PictureModel

    with misuse():
        return PictureModel.load(folder, pictures=pictures)


def _list_pictures(paths: list[Path]) -> list[Path]:
    """Return the pictures, and those in the folders."""
    from pictopic.corpus.sources.picture_folder import picture_names

    pictures: list[Path] = []
    for path in paths:
        if path.is_dir():
            names, skipped = picture_names(path)
            pictures += [path / name for name in names]
            if skipped:
                name, reason = skipped[0]
                warnings.warn(f"{len(skipped):,} left out of {path}, the first: {name}: {reason}", stacklevel=2)
        else:
            pictures.append(path)
    if not pictures:
        raise MisuseError(f"there is no picture in {', '.join(map(str, paths))}")
    return pictures


def _printable_names(paths: list[Path]) -> list[str]:
    """Return names that can be printed, whatever bytes the paths contain."""
    from pictopic.corpus.sources.listing import printable

    return [printable(str(path)) for path in paths]


def _try_sidecar(picture: Path, tags: list[str]) -> None:
    from pictopic.corpus.sources.picture_folder import write_sidecar

    try:
        write_sidecar(picture, tags)
    except (OSError, ValueError) as error:
        warnings.warn(str(error), stacklevel=2)


def _check_names(too_long: list[str]) -> None:
    """Raise an error (exit code 1) for XMP files that could not be written, after everything else is done."""
    if too_long:
        raise OSError(
            f"XMP files not written, because their names are too long: {len(too_long):,}, the first {too_long[0]}"
        )


def _to_json(scored: list[tuple[str, float]]) -> list[dict[str, Any]]:
    return [{"name": name, "score": round(score, 6)} for name, score in scored]


def _lines(names: list[str], answers: list[list[tuple[str, float]]]) -> list[str]:
    texts = [", ".join(f"{name} {score:.2f}" for name, score in scored) or "-" for scored in answers]
    return texts if len(names) == 1 else [f"{name}: {text}" for name, text in zip(names, texts, strict=True)]


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
    from pictopic.files import has_too_long_name
    from pictopic.tasks.exports import write_tags

    print_warnings()
    loaded, paths = _load(model), _list_pictures(pictures)
    known = [tag for tag in tags.split(",") if tag.strip()]
    with misuse():
        answers = cast("list[Answer]", loaded.annotate(list(paths), k, tags=known, thresholds=thresholds))
    names = _printable_names(paths)
    if csv is not None:
        write_tags(csv, names, answers)
    tagged = [
        (path, scored_tags) for path, scored_tags in zip(paths, answers, strict=True) if scored_tags and write_xmp
    ]
    too_long = [str(path) for path, _ in tagged if has_too_long_name(path.with_suffix(".xmp"))]
    for path, scored_tags in tagged:
        if not has_too_long_name(path.with_suffix(".xmp")):
            _try_sidecar(path, [tag for tag, _ in scored_tags])
    content = [
        {"file_name": name, "tags": _to_json(scored_tags)} for name, scored_tags in zip(names, answers, strict=True)
    ]
    answer({"pictures": content}, _lines(names, answers), as_json)
    _check_names(too_long)


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
    print_warnings()
    loaded, paths = _load(model), _list_pictures(pictures)
    with misuse():
        answers = cast("list[Answer]", loaded.classify(list(paths), k, dont_know=dont_know))
    names = _printable_names(paths)
    content = [
        {"file_name": name, "classes": _to_json(scored_classes)}
        for name, scored_classes in zip(names, answers, strict=True)
    ]
    answer({"pictures": content}, _lines(names, answers), as_json)


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
    words = [word for word in tags.split(",") if word.strip()]
    with misuse():
        query = None if picture is None else str(picture)
        matches = cast("Answer", loaded.search(query, words or None, k, label=label, tag=tag))
    if html is not None:
        paths = dict(zip(loaded.corpus_.file_names, loaded.corpus_.paths, strict=True))
        title = " + ".join(([str(picture)] if picture is not None else []) + words)
        write_thumbnails(html, title, [(name, paths[name], f"{score:.2f}") for name, score in matches])
    answer({"pictures": _to_json(matches)}, [f"{score:.3f}  {name}" for name, score in matches], as_json)


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
    lines = [f"{topic.label}: {_describe([tag for tag, _ in topic.tags], topic.visual_words)}" for topic in classes]
    for unit in [unit for unit in units if unit["Count"]][:_MAX_TOPICS]:
        n_pictures = "1 picture" if unit["Count"] == 1 else f"{unit['Count']:,} pictures"
        words = _describe(unit["Representation"], unit["Visual_Words"], unit["Representative_Docs"])
        lines.append(f"topic {unit['Topic']} ({n_pictures}): {words}")
    if quality:
        lines.append(", ".join(f"{_MEASURES[name]} {value:.3f}" for name, value in quality.items()))
    elif html is None and loaded.corpus_.options is not None:
        lines.append("To see the visual words, which are kinds of small patches, write a page: --html topics.html")
    content = {"classes": [topic._asdict() for topic in classes], "topics": units, "quality": quality}
    answer(content, lines, as_json)


def _describe(tags: list[str], visual_words: list[tuple[int, float]], typical: list[str] | None = None) -> str:
    """Describe a topic by its tags or, without tags, by typical pictures and visual words."""
    if tags:
        return ", ".join(tags[:5])
    words = f"visual words {', '.join(str(word) for word, _ in visual_words)}"
    return f"typical pictures {', '.join(typical[:3])}; {words}" if typical else words


@app.command()
def evaluate(
    model: _Model,
    source: Annotated[Path, typer.Argument(help="Pictures whose tags or classes are known.")],
    label_column: LABEL_COLUMN = "label",
    tags_column: TAGS_COLUMN = "tags",
    as_json: JSON = False,
) -> None:
    """Say how good a model is on other pictures.

    Example: pictopic evaluate photos.model more-photos
    """
    loaded = _load(model)
    with misuse():
        figures = loaded.evaluate(source, label_column=label_column, tags_column=tags_column)
    width = max(map(len, figures))
    answer(figures, [f"{name:{width}} {value:.4g}" for name, value in figures.items()], as_json)


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
    label_column: LABEL_COLUMN = "label",
    tags_column: TAGS_COLUMN = "tags",
    restart: Annotated[
        bool, typer.Option("--restart", help="Forget what an update or fit that was stopped has done.")
    ] = False,
    as_json: JSON = False,
) -> None:
    """Take more pictures, or decisions about tags, into a model, without starting over.

    Tags that you accepted or rejected in the page of pictopic serve are in MODEL.decisions.jsonl, beside the model: the
    collection gets them, and the model learns from them.  The file stays as it is.

    It can be stopped at any time (Ctrl-C): the same command goes on.  The model changes at the end, in one step; until
    then, everything is in MODEL.building.

    \b
    Example:
      pictopic update photos.model new-photos
      pictopic update photos.model
      pictopic update photos.model new-photos --no-decisions
    """  # noqa: D301 - the help needs the character itself: it keeps line breaks
    from pictopic.cli.jobs import stoppable, work_folder
    from pictopic.files import recovered
    from pictopic.models.run import Run
    from pictopic.picture_model.files import CONFIG
    from pictopic.tasks.decisions import Decisions, decisions_about

    print_warnings()
    if not (recovered(model) / CONFIG).is_file():
        _load(model)  # says what is wrong
    if source is not None and not source.exists():
        raise MisuseError(f"{source} does not exist")
    with stoppable(), work_folder(model, {"command": "update"}, restart) as work:
        loaded = _load(model)
        loaded.verbose = 0
        before = len(loaded.corpus_)
        with misuse():
            decisions = Decisions.beside(model) if use_decisions else None
            known = [] if decisions is None else decisions_about(decisions, loaded.corpus_.file_names)
            if source is None and not known:
                raise ValueError(
                    f"there is nothing new: name more pictures, or decide about tags in pictopic serve {model}"
                )
        options: dict[str, Any] = {}
        with progress_bars("pictures") as progress:
            if source is not None:
                options = {"label_column": label_column, "tags_column": tags_column, "progress": progress}
            run = Run(raise_on_interrupt=True, report=training_report(progress))
            loaded.update(source, decisions=decisions, passes=passes, folder=work, run=run, **options)
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
    lines: list[str] = []
    too_long: list[str] = []
    if accepted is not None or xmp is not None:
        written, too_long = _export_tags(model, loaded.corpus_, accepted, xmp)
    if accepted is not None:
        lines.append(f"tags of {written['pictures']:,} pictures: {accepted}")
    if xmp is not None:
        lines.append(f"{written['sidecars']:,} XMP files of {written['pictures']:,} pictures: {xmp}")
    if vectors is not None:
        from pictopic.tasks.exports import write_vectors

        written["rows"], written["dimensions"] = write_vectors(vectors, loaded.corpus_, loaded.vectors)
        lines.append(f"{written['rows']:,} vectors of {written['dimensions']} numbers: {vectors}")
    answer(written, lines, as_json)
    _check_names(too_long)


def _export_tags(
    model: Path, corpus: Corpus, accepted: Path | None, xmp: Path | None
) -> tuple[dict[str, int], list[str]]:
    """Write decided tags; return numbers of pictures and sidecars, and the XMP files with too long names."""
    from pictopic.files import write_text
    from pictopic.tasks.decisions import Decisions, decided_tags, sidecars, write_sidecars
    from pictopic.tasks.exports import tags_csv

    with misuse():
        tags = decided_tags(Decisions.beside(model), corpus.file_names, corpus.tags)
        if not tags:
            raise ValueError(f"nothing is decided about tags yet: look at pictures in pictopic serve {model}")
        written, too_long = {"pictures": len(tags)}, []
        if xmp is not None:
            xmp_files = sidecars(tags, corpus.file_names)
            too_long = write_sidecars(xmp, xmp_files)
            written["sidecars"] = len(xmp_files) - len(too_long)
    if accepted is not None:
        write_text(accepted, tags_csv(tags.items()))
    return written, too_long

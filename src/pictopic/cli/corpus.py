"""Commands for corpora: build, info."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pictopic.cli.application import app
from pictopic.cli.output import CLUSTER, JSON, answer, cluster_workers, misuse, progress_bars

if TYPE_CHECKING:
    from pictopic.corpus.sources import Source


@app.command()
def build(
    source: Annotated[Path, typer.Argument(help="Folder of pictures, or a metadata or counts file.")],
    out: Annotated[str, typer.Option("--out", help="Folder or URL of the corpus.")],
    preset: Annotated[str, typer.Option(help="scenes (the paper's section 6.1) or flickr (6.2).")] = "scenes",
    words: Annotated[int | None, typer.Option(help="Number of visual words.  [scenes: 240, flickr: 2000]")] = None,
    regions: Annotated[
        str | None, typer.Option(help="Grid over a picture, as 2x2, or a pyramid, as 1x1+2x2.  [scenes: 2x2]")
    ] = None,
    features: Annotated[
        str | None, typer.Option(help="Global features: gist,mpeg7 (the paper's 1857), or semantic.  [none]")
    ] = None,
    max_side: Annotated[
        int | None, typer.Option(help="Scale larger pictures down to this many pixels.  [flickr: 480]")
    ] = None,
    label_column: Annotated[str, typer.Option(help="Column of the classes.")] = "label",
    tags_column: Annotated[str, typer.Option(help="Column of the tags.")] = "tags",
    split_column: Annotated[str | None, typer.Option(help="Column that says train, test, ...")] = None,
    codebook_split: Annotated[
        str | None, typer.Option(help="Learn the visual words from this part only, e.g. train.")
    ] = None,
    min_tag_count: Annotated[int, typer.Option(help="In how many pictures a tag must occur.")] = 1,
    max_tags: Annotated[int | None, typer.Option(help="Keep the most frequent tags only.")] = None,
    stop_tags: Annotated[Path | None, typer.Option(help="File of tags to leave out, one a line.")] = None,
    rename_tags: Annotated[Path | None, typer.Option(help="CSV file of tags to rename: from,to.")] = None,
    features_file: Annotated[
        Path | None, typer.Option(help="Global features of your own: .npy or .parquet, joined by file name.")
    ] = None,
    pictures: Annotated[str, typer.Option(help="auto, or none to use the tags only.")] = "auto",
    like: Annotated[
        Path | None, typer.Option(help="Another corpus whose visual words, tags and options are used.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes; -1: one for each core.")] = -1,
    cluster: CLUSTER = None,
    seed: Annotated[int, typer.Option(help="Another number gives another codebook.")] = 0,
    resume: Annotated[bool, typer.Option(help="Go on with a build that was stopped.")] = False,
    dry_run: Annotated[bool, typer.Option(help="Only say what it would cost.")] = False,
    strict: Annotated[bool, typer.Option(help="A picture that cannot be read is an error.")] = False,
    as_json: JSON = False,
) -> None:
    """Turn a folder of pictures into a corpus: counts of visual words, tags, labels.

    The folder may have a metadata.csv, .jsonl or .parquet with the columns file_name, tags (separated by ; , or |) and
    label (or labels).  Without one, the folders' names are the classes and the pictures' own keywords the tags.
    Pictures that cannot be read are listed in OUT/skipped.csv.

    With --cluster the work is spread over the machines of a Ray cluster, to the same result; they must see the pictures
    under the same path.

    Example: pictopic build photos --out photos.corpus --max-side 480
    """
    from pictopic.cli.jobs import stoppable
    from pictopic.corpus.corpus import Corpus
    from pictopic.corpus.sources import read_source
    from pictopic.words.extract import WordOptions
    from pictopic.words.tags import TagRules

    changes: dict[str, Any] = {"n_words": words, "regions": regions, "max_side": max_side}
    with misuse():
        if not dry_run:
            _check_out(out, resume)
        if features is not None:
            changes["features"] = tuple(kind.strip() for kind in features.split(",") if kind.strip())
        options = WordOptions.preset(preset, **changes)
        rules = TagRules.read(stop=stop_tags, rename=rename_tags) if stop_tags or rename_tags else None
        listing = read_source(
            source, label_column=label_column, tags_column=tags_column, split_column=split_column,
            pictures=pictures, tag_rules=rules,  # type: ignore[arg-type]
        )  # fmt: skip
        like_corpus = None if like is None else Corpus.open(like)
    if pictures == "auto" and not listing.pictures and listing.counts is None:
        typer.echo(f"none of the pictures is in {source}: only tags are used", err=True)
    if dry_run:
        _dry_run(listing, options, jobs, as_json)
        return
    with stoppable("--resume"), cluster_workers(cluster) as workers, progress_bars("pictures") as progress:
        corpus = Corpus.build(
            listing, out, codebook_rows=codebook_split, preset=preset, min_tag_count=min_tag_count,
            max_tags=max_tags, features_file=features_file, random_state=seed, n_jobs=jobs, resume=resume,
            strict=strict, progress=progress, like=like_corpus, workers=workers, **changes,
        )  # fmt: skip
    from pictopic.corpus.summary import describe, summary

    answer(summary(corpus), describe(corpus), as_json)


def _check_out(out: str, resume: bool) -> None:
    """An error before any picture is looked at, if the corpus could not be written."""
    from pictopic.corpus.store import BUILDING, MANIFEST
    from pictopic.files import check_place
    from pictopic.storage import is_remote, local

    if is_remote(out):
        return
    folder = local(out)
    check_place(folder, "a corpus", MANIFEST, BUILDING)
    if (folder / MANIFEST).is_file() and not resume:  # with it, the build may have been killed when all was done
        raise ValueError(f"{folder} holds a corpus already: choose another folder, or delete it first")
    if (folder / BUILDING / "plan.json").is_file() and not resume:
        raise ValueError(f"{folder} holds an unfinished build: resume it (--resume), or delete it first")


def _dry_run(source: Source, options: Any, jobs: int, as_json: bool) -> None:
    from pictopic.corpus.summary import estimate

    cost = estimate(source, options, jobs)
    answer(cost.to_dict(), cost.lines(), as_json)


@app.command()
def info(
    folder: Annotated[Path, typer.Argument(help="Folder of a corpus or a model.")],
    as_json: JSON = False,
) -> None:
    """Say what is in a corpus or a model.

    Example: pictopic info photos.corpus
    """
    from pictopic.corpus.corpus import Corpus
    from pictopic.corpus.summary import describe, summary
    from pictopic.files import recovered

    if (recovered(folder) / "picture_model.json").is_file():
        from pictopic import PictureModel

        with misuse():
            model = PictureModel.load(folder)
            model.check_files()
        content = {"figures": model.figures_, "corpus": summary(model.corpus_)}
        checked = "all files are as they were saved"
        answer(content, [*model.summary(), *describe(model.corpus_), checked], as_json)
        return
    with misuse():
        opened = Corpus.open(folder)
    answer(summary(opened), describe(opened), as_json)

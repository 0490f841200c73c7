"""The demonstration: the whole way from pictures to a report, on made-up scenes."""

from __future__ import annotations

import re
import shlex
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pictopic.corpus.build import Progress, silent
from pictopic.corpus.corpus import Corpus
from pictopic.demo.report import Report, write_report
from pictopic.demo.report import collect as collecting
from pictopic.demo.report.contents import Method, Step
from pictopic.demo.report.figures import MEASURES, NOTES, compare, highlights, text_table
from pictopic.demo.scenes import SCENES, write_scenes
from pictopic.models.run import Run, Status
from pictopic.picture_model import PictureModel
from pictopic.processes import program

BUILDING = "building"  # what a run that was stopped has done
_OF_RUN = re.compile(r"\d+-\d+")  # name of its folder there: number of pictures, seed
LEAST_PICTURES = 5 * len(SCENES)
_MODELS = {"SupDocNADE": "shallow", "SupDeepDocNADE": "deep"}
_TEST_SHARE = 0.25
_FEATURES = ("gist", "mpeg7")
_MAX_SIDE = 480  # pixels: the scenes are smaller, but what the model is tried on may not be


def run(
    folder: Path,
    seed: int = 0,
    n: int = 400,
    progress: Progress = silent,
    report: Callable[[str, Status], None] = lambda stage, status: None,
) -> str:
    """Make up pictures, learn from them, and write a report on those held out.

    Parameters
    ----------
    folder : Path
        For the pictures, the model and ``report.html``.
    seed : int, default=0
        Another number makes up other pictures.
    n : int, default=400
        How many pictures.
    progress : callable, optional
        Called with a stage's name, how much of it is done and of how much.
    report : callable, optional
        Called with the state of the training; see `pictopic.models.run.Run`.

    Returns
    -------
    str
        A table of figures, and what to type next.
    """
    if n < LEAST_PICTURES:
        raise ValueError(f"the demonstration needs at least {LEAST_PICTURES} pictures, got {n}")
    begin = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    progress("making up pictures", 0, n)
    pictures = write_scenes(folder / "pictures", n, seed)
    progress("making up pictures", n, n)
    work = _work_folder(folder, f"{n}-{seed}")
    learner = PictureModel(features=_FEATURES, max_side=_MAX_SIDE, random_state=seed)
    corpus = learner.build_corpus(pictures, work / "corpus", resume=True, progress=progress)
    parts = corpus.split(_TEST_SHARE, random_state=seed)
    train, test = parts["train"], parts["test"]
    models = {name: _learn(name, kind, train, seed, work / name, report) for name, kind in _MODELS.items()}
    progress("comparing", 0, 1)
    methods = compare(models, train, test, seed)
    progress("comparing", 1, 1)
    progress("writing the report", 0, 1)
    best = list(models.values())[-1]
    write_report(folder / "report.html", _report(corpus, train, test, models, methods))
    best.save(folder / "model")  # with a copy of the corpus
    shutil.rmtree(work)
    with suppress(OSError):  # something of the user's is in it
        work.parent.rmdir()
    progress("writing the report", 1, 1)
    return "\n".join([
        f"On {len(test)} of {n} made-up pictures, which the models have not seen:",
        "",
        text_table(MEASURES, methods),
        "",
        "accuracy: right class.  F, 5 tags: F-measure of the best five tags.  prec. at 10: share of the ten most",
        "similar pictures that are of the same class.  perpl.: perplexity; the smaller, the better.",
        "",
        f"Done in {time.perf_counter() - begin:.0f} seconds.  Look at {folder / 'report.html'}",
        "",
        *_next_lines(_steps(folder, test)),
    ])  # fmt: skip


def _work_folder(folder: Path, name: str) -> Path:
    """Where a run works that can be resumed; what runs with other options have left is removed."""
    work = folder / BUILDING / name
    for other in (folder / BUILDING).glob("*"):
        if other != work and _OF_RUN.fullmatch(other.name):  # a user may have a folder of this name
            shutil.rmtree(other)
    return work


def _learn(
    name: str, kind: str, train: Corpus, seed: int, work: Path, report: Callable[[str, Status], None]
) -> PictureModel:
    def tell(stage: str, status: Status) -> None:
        report(f"learning: {name}, {stage}", status)

    # One thread: on so few pictures, threads spend their time waiting for each other.
    model = PictureModel(model=kind, features=_FEATURES, max_side=_MAX_SIDE, random_state=seed, n_jobs=1, verbose=0)
    return model.fit(train, folder=work, run=Run(raise_on_interrupt=True, report=tell))


def _report(
    corpus: Corpus, train: Corpus, test: Corpus, models: dict[str, PictureModel], methods: list[Method]
) -> Report:
    name, best = list(models.items())[-1]
    confusion = collecting.confusion(best, test)
    return Report(
        title=f"What pictopic learnt from {len(train)} pictures",
        lead=f"Made-up pictures of {len(corpus.classes)} kinds of scenes with {len(corpus.vocabulary.annotations)} "
        f"different tags, some of which are missing or wrong, as in real collections. Another {len(test)} pictures "
        f"were kept aside to see how good the answers are. The answers below are those of {name}.",
        highlights=highlights(methods),
        measures=MEASURES,
        methods=methods,
        notes=[*NOTES, "The visual words were learnt from all pictures, without looking at tags or classes."],
        samples=collecting.samples(train),
        confusion=confusion,
        confused=collecting.confused_pictures(confusion, test),
        # Other pictures in each section.
        tagged=collecting.tagged(best, test, collecting.examples(test, 0)),
        neighbours=collecting.neighbours(best, test, collecting.examples(test, 1)),
        topics=collecting.topics(best, corpus),
        explained=collecting.explained(best, test, collecting.examples(test, 2)),
        runs=[collecting.training_run(name, model) for name, model in models.items()],
        steps=_steps(),
    )


def _steps(folder: Path | None = None, test: Corpus | None = None) -> list[Step]:
    """What to type next: with the demonstration's model, if its folder is given, and for one's own folder."""
    steps = []
    if folder is not None and test is not None:
        picture = folder / "pictures" / test.file_names[0]
        command = f"pictopic annotate {shlex.quote(str(folder / 'model'))} {shlex.quote(str(picture))}"
        steps.append(Step("Ask the model that was just made for tags:", command))
        explore = f"pictopic serve {shlex.quote(str(folder / 'model'))}"
        steps.append(Step("Explore its pictures in the browser:", explore))
    return [
        *steps,
        Step(
            "Learn from your own folder, with tags in metadata.csv (file_name, tags, label) or in the files:",
            "pictopic fit photos --out photos.model",
        ),
        Step("Give tags to new pictures:", "pictopic annotate photos.model new/ --csv tags.csv"),
        Step("Find pictures:", "pictopic search photos.model --tags sea,boat --html found.html"),
        Step("See what your collection is about, in the browser:", "pictopic serve photos.model"),
    ]


def _next_lines(steps: list[Step]) -> list[str]:
    return [line for step in steps for line in (step.text, f"  {step.command.replace('pictopic', program(), 1)}")]

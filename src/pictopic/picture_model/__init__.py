"""`PictureModel`: learns from a collection of pictures, then tags, classifies, finds and explains pictures."""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pictopic.corpus.corpus import Corpus
from pictopic.corpus.sources import Source, read_source
from pictopic.files import temporary_folder
from pictopic.models.checkpoint import Checkpoint
from pictopic.models.run import Run
from pictopic.picture_model.files import ModelFiles, read_model, write_model
from pictopic.picture_model.review import ReviewMixin
from pictopic.picture_model.update import updated_corpus
from pictopic.tasks.decisions import Decisions
from pictopic.tasks.fit import Fit, Fitted, fit_everything, refit, rows_to_learn_from
from pictopic.tasks.pretraining import load_pretrained
from pictopic.tasks.quality import evaluate
from pictopic.tasks.reading import PictureReader
from pictopic.tasks.search import Index

CHECKPOINTS = "checkpoints"  # sub-folder of a fit's work folder
_COLUMNS = ("label_column", "tags_column", "split_column", "pictures", "tag_rules")
_WORDS_FROM = {20_000: 1000, 2_000: 500}  # pictures: visual words


def usual_words(preset: str, n_pictures: int) -> int | None:
    """Return the number of visual words for a collection of this size; None for the preset's."""
    if preset != "scenes":
        return None
    return next((words for least, words in _WORDS_FROM.items() if n_pictures >= least), None)


class PictureModel(ReviewMixin):
    """Model of pictures, tags and classes that tags, classifies, finds and explains pictures.

    Parameters
    ----------
    preset : {"scenes", "flickr"}, default="scenes"
        How pictures become words; see `pictopic.words.extract.WordOptions`.
    n_words : int, optional
        Number of visual words; default: the preset's, and more for larger collections (500 from 2,000 pictures on, 1000
        from 20,000 on).
    regions : str, optional
        Regions in place of the preset's.
    features : sequence of str, default=("gist", "mpeg7")
        Global features.
    max_side : int or None, default=480
        Larger pictures are scaled down to this many pixels.
    model : {"auto", "shallow", "deep"}, default="auto"
        SupDocNADE or SupDeepDocNADE (DocNADE and DeepDocNADE without classes); "auto" goes by the size of the
        collection.
    options : dict, optional
        Options of the network that differ from its defaults, for example from `pictopic tune`.
    random_state : int, default=0
    n_jobs : int or None, default=-1
        Number of processes and threads; -1: one per core.
    verbose : int, default=1
        0: silent.

    Attributes
    ----------
    corpus_ : Corpus
        The collection.
    figures_ : dict
        Quality on held-out pictures, next to simple baselines.

    Examples
    --------
    >>> from pictopic import PictureModel
    >>> model = PictureModel().fit("photos")  # doctest: +SKIP
    >>> model.annotate("new.jpg", k=3)  # doctest: +SKIP
    [('sea', 0.31), ('sky', 0.22), ('boat', 0.08)]
    >>> model.search(tags=["sea"], k=2)  # doctest: +SKIP
    [('holiday/17.jpg', 0.93), ('holiday/3.jpg', 0.91)]
    """

    def __init__(
        self,
        *,
        preset: str = "scenes",
        n_words: int | None = None,
        regions: str | None = None,
        features: Sequence[str] = ("gist", "mpeg7"),
        max_side: int | None = 480,
        model: str = "auto",
        options: dict[str, Any] | None = None,
        random_state: int = 0,
        n_jobs: int | None = -1,
        verbose: int = 1,
    ):
        if model not in ("auto", "shallow", "deep"):
            raise ValueError(f"model must be 'auto', 'shallow' or 'deep', got {model!r}")
        self.preset, self.n_words, self.regions, self.features = preset, n_words, regions, tuple(features)
        self.max_side, self.model, self.options, self.random_state = max_side, model, options, random_state
        self.n_jobs, self.verbose = n_jobs, verbose
        self._temporary: tempfile.TemporaryDirectory[str] | None = None  # holds the corpus, if no other folder does
        self._files: ModelFiles | None = None  # None: neither loaded nor saved

    # ---- training ----------------------------------------------------------------------------------------------------

    def fit(
        self,
        source: str | os.PathLike[str] | Corpus,
        *,
        folder: str | os.PathLike[str] | None = None,
        progress: Callable[[str, int, int], None] | None = None,
        init: str | os.PathLike[str] | None = None,
        train: Fit | None = None,
        run: Run | None = None,
        **options: Any,
    ) -> PictureModel:
        """Learn from a source of pictures or a corpus.

        Parameters
        ----------
        source : path or Corpus
            See `Corpus.build` for what can be a source.
        folder : path, optional
            Work folder for the corpus and the checkpoints of the training; an interrupted fit resumes there and
            results in the same model.  It is needed until the model is saved.  Default: a temporary folder, kept as
            long as the model, and no checkpoints.
        progress : callable, optional
            Called with the build's stages.
        init : path, optional
            Model with the same words to start from, as ``pictopic pretrain`` writes it.
        train : callable, optional
            Function that trains the network, for example on a cluster; see `pictopic.cluster`.
        run : Run, optional
            Interval of checkpoints, effect of Ctrl-C, and progress reports of the training.
        **options
            Options of `Corpus.build`, such as `label_column`.

        Returns
        -------
        PictureModel
            Itself.
        """
        run = run or Run()
        if folder is not None and run.checkpoint is None:
            run = replace(run, checkpoint=Checkpoint(Path(folder) / CHECKPOINTS))
        if isinstance(source, Corpus):
            corpus = source.verified()
        else:
            if folder is None:
                self._temporary = temporary_folder()
                folder = self._temporary.name
            if progress is not None:
                options["progress"] = progress
            corpus = self.build_corpus(source, Path(folder) / "corpus", resume=True, **options)
        self._learn(corpus, None if init is None else load_pretrained(init, corpus), train, run)
        return self

    def build_corpus(
        self, source: str | os.PathLike[str] | Source, folder: str | os.PathLike[str], **options: Any
    ) -> Corpus:
        """Build the corpus that `fit` learns from.

        Parameters
        ----------
        source : path or Source
        folder : path
        **options
            Options of `Corpus.build`.  With ``resume=True``, a finished corpus of the same source is returned as it
            is.

        Returns
        -------
        Corpus
        """
        if not isinstance(source, Source):
            source = read_source(source, **{key: options.pop(key) for key in _COLUMNS if key in options})
        n_words = self.n_words or usual_words(self.preset, len(source))
        word_options: dict[str, Any] = {
            "n_words": n_words,
            "regions": self.regions,
            "max_side": self.max_side,
            "features": self.features,
        }
        return Corpus.build(
            source,
            folder,
            preset=self.preset,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            **word_options,
            **options,
        )

    def _learn(self, corpus: Corpus, init: Any, train: Fit | None, run: Run) -> None:
        fitted = fit_everything(
            corpus,
            kind=self.model,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            verbose=max(0, self.verbose - 1),
            options=self.options,
            init=init,
            fit=train,
            run=run,
        )
        self._set_parts(corpus, fitted, Index.build(fitted.estimator.transform(corpus)))
        if self.verbose:
            print("\n".join(self.summary()))

    def _set_parts(self, corpus: Corpus, fitted: Fitted, index: Index) -> None:
        self.corpus_, self._fitted, self._index = corpus, fitted, index
        self._files = None
        self._reader, self._suggestions = PictureReader(corpus, self.n_jobs), None
        self.figures_ = dict(fitted.figures)

    def summary(self) -> list[str]:
        """Return the quality on held-out pictures, next to simple baselines, as lines of text."""
        fitted = self._check_fitted()
        network = type(fitted.estimator).__name__
        lines = [f"learnt from {len(rows_to_learn_from(self.corpus_)):,} rows with {network}"]
        if fitted.held_out is None:
            lines.append("accuracy is unknown: too few pictures to hold any out")
        elif not fitted.figures:
            lines.append("accuracy is unknown: the held-out pictures have neither tags nor classes to compare with")
        else:
            lines[0] += f"; on {fitted.n_validation:,} of them, which were held out first:"
        figures = fitted.figures
        if "classes" in figures:
            measure, guess = (
                ("MAP", "always the same order") if self.corpus_.multi_label else ("right", "always the same")
            )
            head = fitted.head.name if fitted.head is not None else ""
            baseline = figures["classes_baseline"]
            lines.append(f"  classes  {figures['classes']:6.1%} {measure} ({head} classifier; {baseline:.1%} {guess})")
        if "tags" in figures:
            baseline = figures["tags_baseline"]
            lines.append(
                f"  tags     {figures['tags']:6.1%} F-measure of the best 5 ({baseline:.1%} with the most frequent 5)"
            )
        if "log_likelihood_per_word" in figures:
            value, baseline = figures["log_likelihood_per_word"], figures["log_likelihood_per_word_baseline"]
            lines.append(
                f"  words    {value:6.2f} log-likelihood per word, in nats ({baseline:.2f} by frequency alone)"
            )
        return lines

    # ---- other collections -------------------------------------------------------------------------------------------

    def evaluate(self, source: str | os.PathLike[str] | Corpus, **options: Any) -> dict[str, float]:
        """Measure the quality of the model on other pictures.

        Parameters
        ----------
        source : path or Corpus
            Other pictures; a corpus must have been built with this model's words.
        **options
            Options of `Corpus.build`, such as `label_column`.

        Returns
        -------
        dict
            "accuracy" or "map" of classes; "f_measure" of the best five tags; "precision", "recall" and "n_plus" per
            tag; "precision_at_10" of similar pictures (those of the same class); "log_likelihood_per_word" of all
            words and "log_likelihood_per_word_baseline" of the unigram model, in nats.  Only what can be measured.

        Raises
        ------
        ValueError
            If nothing can be measured.
        """
        self._check_fitted()
        with temporary_folder() as folder:
            other = source if isinstance(source, Corpus) else self._build_like(source, Path(folder) / "corpus", options)
            return evaluate(self._fitted, self._index, self.corpus_, other)

    def _build_like(self, source: Any, folder: Path, options: dict[str, Any]) -> Corpus:
        words = self.corpus_.options
        changes = {} if words is None else words.to_dict() | {"codebook": self.corpus_.codebook}
        changes.pop("n_words", None)
        return Corpus.build(source, folder, n_jobs=self.n_jobs, **changes, **options)

    def update(
        self,
        source: str | os.PathLike[str] | None = None,
        *,
        decisions: Decisions | str | os.PathLike[str] | None = None,
        passes: int = 20,
        folder: str | os.PathLike[str] | None = None,
        run: Run | None = None,
        **options: Any,
    ) -> PictureModel:
        """Add pictures, or decisions about tags, and continue training on everything.

        The folder that the model was loaded from does not change before `save`.  If the update fails, the model stays
        as it was.

        Parameters
        ----------
        source : path, optional
            New pictures; those whose name is already in the collection are skipped.
        decisions : Decisions or path, optional
            Decisions to apply to the collection's tags; those about other pictures are ignored.
        passes : int, default=20
            Number of passes over the whole collection.
        folder : path, optional
            Work folder, in which an interrupted update of the same model resumes.  Default: a temporary folder, kept
            as long as the model.
        run : Run, optional
            Progress reports of the training, and effect of Ctrl-C.
        **options
            Options of `Corpus.append`, such as `label_column`.

        Returns
        -------
        PictureModel
            Itself.
        """
        fitted = self._check_fitted()
        if source is None and decisions is None:
            raise ValueError("update needs a source of new pictures, decisions about tags, or both")
        if source is None and options:
            raise TypeError(f"{next(iter(options))} is an option of new pictures, but there is no source")
        if decisions is not None and not isinstance(decisions, Decisions):
            decisions = Decisions(decisions)
        temporary = temporary_folder() if folder is None else None
        work = Path(temporary.name) / "update" if temporary is not None else Path(folder)  # type: ignore[arg-type]
        if source is not None:
            options["n_jobs"] = self.n_jobs
        update = updated_corpus(self.corpus_, fitted, source, decisions, work, **options)
        run = run or Run()
        if temporary is None:
            run = replace(run, checkpoint=Checkpoint(update.checkpoints, minutes=1))
        # A copy: if training fails or is interrupted, this model stays as it was.
        refitted = refit(copy.deepcopy(fitted), update.corpus, passes, run)
        self._set_parts(update.corpus, refitted, Index.build(refitted.estimator.transform(update.corpus)))
        self._temporary = temporary or self._temporary
        if self.verbose:
            news = [f"{update.n_new:,} pictures more"]
            if decisions is not None:
                news.append(f"decisions about the tags of {update.n_retagged:,} pictures")
            print("\n".join([*news, *self.summary()]))
        return self

    # ---- files -------------------------------------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write collection, network, classifier, thresholds and index to a folder.

        Loading it never executes anything.  The pictures themselves stay where they are.
        """
        fitted = self._check_fitted()
        self._files = write_model(Path(folder), self._options(), self.corpus_, fitted, self._index)

    def check_files(self) -> None:
        """Check every byte of the files that the model was read from or saved to, and of its collection.

        `load` checks only small files and the sizes of all others, so that a large model answers at once.  This check
        takes a second for 1.4 GB; it may run in its own thread while the model answers.

        Raises
        ------
        ValueError
            If a file is not what was saved; the error names the first such file.

        Examples
        --------
        >>> model = PictureModel.load("photos.model")  # doctest: +SKIP
        >>> model.check_files()  # doctest: +SKIP
        """
        self._check_fitted()
        files = self._files
        if files is None:
            self.corpus_.verified()
        else:
            files.check()

    def _options(self) -> dict[str, Any]:
        names = ("preset", "n_words", "regions", "features", "max_side", "model", "options", "random_state")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        pictures: str | os.PathLike[str] | None = None,
        n_jobs: int | None = -1,
        verbose: int = 1,
    ) -> PictureModel:
        """Read a model that `save` wrote.

        Parameters
        ----------
        folder : path
        pictures : path, optional
            Where the collection's pictures are now, if they have moved.
        n_jobs, verbose
            As for the constructor.

        Returns
        -------
        PictureModel
        """
        saved = read_model(Path(folder), None if pictures is None else Path(pictures))
        model = cls(**saved.options, n_jobs=n_jobs, verbose=verbose)
        model._set_parts(saved.corpus, saved.fitted, saved.index)
        model._files = saved.files
        return model

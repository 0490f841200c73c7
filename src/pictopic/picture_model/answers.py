"""Answers of a picture model about single pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from pictopic.corpus.corpus import Corpus
from pictopic.corpus.rows import Rows
from pictopic.tasks.annotate import rank_tags, tag_proba
from pictopic.tasks.explain import Explanation, contributions, heat_map, overlay
from pictopic.tasks.fit import Fitted, class_names
from pictopic.tasks.reading import Answer, Described, PictureReader, Query
from pictopic.tasks.search import Index
from pictopic.words.duplicates import groups
from pictopic.words.tags import normalise_tag, split_tags

DONT_KNOW = "don't know"


class AnswersMixin:
    """Tags, classes, similar pictures and explanations."""

    corpus_: Corpus
    _fitted: Fitted
    _index: Index
    _reader: PictureReader

    def _check_fitted(self) -> Fitted:
        if not hasattr(self, "_fitted"):
            raise ValueError("this model is not fitted yet: call fit, or load a saved model")
        return self._fitted

    @property
    def estimator_(self) -> Any:
        """The topic model: one of the four estimators, fitted."""
        return self._check_fitted().estimator

    @property
    def has_classes(self) -> bool:
        """Whether the model has classes."""
        return self._check_fitted().head is not None

    @property
    def vectors(self) -> np.ndarray:
        """Representations of the collection's pictures, of length 1."""
        self._check_fitted()
        return self._index.vectors

    @property
    def has_thresholds(self) -> bool:
        """Whether tags have calibrated probabilities and thresholds."""
        return self._check_fitted().thresholds is not None

    def describe(self, picture: Any) -> Described:
        """Compute words and features of pictures once, for several questions about them.

        This takes much longer than answering.  All methods accept the result in place of the picture.

        Parameters
        ----------
        picture : path, bytes, PIL image or numpy array, or a list of them

        Returns
        -------
        Described

        Examples
        --------
        >>> picture = model.describe("new.jpg")  # doctest: +SKIP
        >>> model.annotate(picture), model.classify(picture), model.search(picture)  # doctest: +SKIP
        """
        self._check_fitted()
        return self._reader.describe(picture)

    def query(self, picture: Any = None, tags: Sequence[str] = ()) -> Query:
        """Describe pictures and pass them through the network once, with the tags they are known to have.

        What is returned can stand in place of the picture wherever one is asked about; the tags are then part of it.

        Parameters
        ----------
        picture : path, bytes, PIL image or numpy array, a list of them, or Described
            None: tags only.
        tags : sequence of str, default=()

        Returns
        -------
        Query

        Examples
        --------
        >>> query = model.query("new.jpg", tags=["sea"])  # doctest: +SKIP
        >>> model.annotate(query), model.classify(query), model.search(query)  # doctest: +SKIP
        """
        fitted = self._check_fitted()
        if not isinstance(picture, Query):
            return Query(self._reader, fitted.estimator, picture, split_tags(list(tags)) if tags else ())
        if tags:
            raise ValueError("a query has its tags already: give them to `query`")
        return picture

    def annotate(
        self, picture: Any, k: int = 5, *, tags: Sequence[str] = (), thresholds: bool = False
    ) -> Answer | list[Answer]:
        """Annotate pictures with tags.

        Parameters
        ----------
        picture : path, bytes, PIL image or numpy array, a list of them, Described or Query
        k : int, default=5
        tags : sequence of str, default=()
            Tags that the picture is known to have; they help to predict others, and are left out of the answer.
        thresholds : bool, default=False
            Return all tags above their threshold, with calibrated probabilities, instead of the k best.

        Returns
        -------
        list of (tag, score), best first; for a list of pictures, a list of these
            An unreadable picture in a list has no tags, with a warning.
        """
        fitted = self._check_fitted()
        names = self.corpus_.vocabulary.annotations
        if not names:
            raise ValueError(
                "the collection has no tags to annotate with: add tags to some of its pictures, and fit a new model"
            )
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        query = self.query(picture, tags)
        if not thresholds:
            return query.answers([rank_tags(p, names, k, query.tags) for p in query.tag_proba])
        if fitted.thresholds is None:
            raise ValueError("there were too few tagged pictures to learn thresholds from")
        answers = []
        for p in fitted.thresholds.probabilities(query.tag_proba):
            passed = [i for i in np.argsort(-p, kind="stable") if p[i] >= fitted.thresholds.thresholds[i]]
            answers.append([(names[i], float(p[i])) for i in passed if names[i] not in query.tags])
        return query.answers(answers)

    def tag_probabilities(self, picture: Any, *, tags: Sequence[str] = ()) -> dict[str, float]:
        """Return the calibrated probability that a picture has each tag.

        Parameters
        ----------
        picture : path, bytes, PIL image or numpy array, Described or Query
        tags : sequence of str, default=()
            Tags that the picture is known to have.

        Returns
        -------
        dict of str to float
        """
        fitted = self._check_fitted()
        if fitted.thresholds is None:
            raise ValueError("there were too few tagged pictures to learn probabilities from")
        query = self.query(picture, tags)
        if not query.is_one:
            raise ValueError("tag_probabilities takes one picture, not a list")
        probabilities = fitted.thresholds.probabilities(query.tag_proba)[0]
        return dict(zip(self.corpus_.vocabulary.annotations, probabilities.tolist(), strict=True))

    def classify(
        self, picture: Any, k: int | None = None, *, tags: Sequence[str] = (), dont_know: bool = False
    ) -> Answer | list[Answer]:
        """Classify pictures, with calibrated probabilities.

        Parameters
        ----------
        picture : path, bytes, PIL image or numpy array, a list of them, Described or Query
        k : int, optional
            Number of classes in the answer; default: all.
        tags : sequence of str, default=()
            Tags that the picture is known to have.
        dont_know : bool, default=False
            Answer ``("don't know", probability)`` first if fewer than nine of ten such answers would be right.

        Returns
        -------
        list of (class, probability), best first; for a list of pictures, a list of these
        """
        fitted = self._check_fitted()
        if fitted.head is None:
            raise ValueError(
                "the collection has no classes to tell apart: add a label column, or a folder per class, and fit a new "
                "model"
            )
        query = self.query(picture, tags)
        answers = []
        for p in fitted.head.predict_proba(query.hidden):
            order = np.argsort(-p, kind="stable")
            answer = [(fitted.head.classes[i], float(p[i])) for i in order][:k]
            if dont_know and p.max() < fitted.head.sure_from:
                answer.insert(0, (DONT_KNOW, float(1 - p.max())))
            answers.append(answer[:k])
        return query.answers(answers)

    def search(
        self,
        picture: Any = None,
        tags: Sequence[str] | None = None,
        k: int = 10,
        *,
        label: str | None = None,
        tag: str | None = None,
    ) -> Answer | list[Answer]:
        """Find pictures of the collection that are similar to a picture, go with tags, or both.

        Parameters
        ----------
        picture : path, bytes, PIL image or numpy array, a list of them, Described or Query
            Or the name of one in the collection.  The picture itself is not in the answer.
        tags : sequence of str, optional
        k : int, default=10
        label, tag : str, optional
            Search only pictures with this label or this tag.

        Returns
        -------
        list of (file_name, similarity), best first; for a list of pictures, a list of these
        """
        self._check_fitted()
        words = tuple(split_tags([tags] if isinstance(tags, str) else list(tags or ())))
        if picture is None and not words:
            raise ValueError("search needs a picture, tags, or both")
        unknown = [word for word in words if word not in self.corpus_.vocabulary]
        if unknown and picture is None and len(unknown) == len(words):
            raise ValueError(f"no picture of the collection has the tag {unknown[0]!r}")
        query = self.query(picture, words)
        query_rows = [self._reader.row_of(query.pictures[number]) for number in query.readable]
        nearest, similarities = self._index.search(
            query.hidden, k, among=self._matching(label, tag), exclude=query_rows
        )
        names = self.corpus_.file_names
        answers = [
            [(names[row], float(value)) for row, value in zip(rows, values, strict=True) if row >= 0]
            for rows, values in zip(nearest, similarities, strict=True)
        ]
        return query.answers(answers)

    def similar_tags(self, tag: str, k: int = 10) -> Answer:
        """Return the tags most similar to a tag, by the cosine of their representations."""
        fitted = self._check_fitted()
        vocabulary, name = self.corpus_.vocabulary, normalise_tag(tag)
        if name not in vocabulary:
            raise ValueError(f"no picture of the collection has the tag {tag!r}")
        n_tags = vocabulary.n_annotation_words
        single_tags = sparse.hstack(
            [sparse.csr_array((n_tags, vocabulary.n_pairs), dtype=np.int32), sparse.eye_array(n_tags, dtype=np.int32)]
        )
        Z = fitted.estimator.transform(Rows(single_tags, n_annotation_words=n_tags))
        query = vocabulary.annotations.index(name)
        rows, values = Index.build(Z).search(Z[[query]], k, exclude=[query])
        return [(vocabulary.annotations[row], float(v)) for row, v in zip(rows[0], values[0], strict=True) if row >= 0]

    def duplicates(self, similarity: float = 0.98) -> list[list[str]]:
        """Return groups of near-duplicate pictures, by their pixels and their representations.

        Parameters
        ----------
        similarity : float, default=0.98
            Minimum cosine of the representations of two pictures whose perceptual hashes are also similar.

        Returns
        -------
        list of lists of file names, largest group first
        """
        self._check_fitted()
        hashes = self.corpus_.table(["picture_hash"])["picture_hash"].to_pylist()
        known = [row for row, value in enumerate(hashes) if value is not None]
        group_numbers = groups(np.array([hashes[row] for row in known], dtype=np.uint64))
        group_rows: dict[int, list[int]] = {}
        for row, number in zip(known, group_numbers, strict=True):
            group_rows.setdefault(int(number), []).append(row)
        duplicate_groups = []
        for members in group_rows.values():
            vectors = np.asarray(self._index.vectors[members])
            near = [row for row, value in zip(members, vectors @ vectors[0], strict=True) if value >= similarity]
            if len(near) > 1:
                duplicate_groups.append([self.corpus_.file_names[row] for row in near])
        return sorted(duplicate_groups, key=len, reverse=True)

    def explain(self, picture: Any, name: str | None = None) -> Explanation:
        """Explain which places of a picture contribute to a tag or a class.

        Parameters
        ----------
        picture : path, bytes, PIL image or numpy array, Described or Query
        name : str, optional
            A class or a tag; default: the picture's most probable class, or tag if there are no classes.

        Returns
        -------
        Explanation
            Its `overlay` shows the contributions in the picture.
        """
        fitted = self._check_fitted()
        query = self.query(picture)
        if not query.is_one:
            raise ValueError("explain takes one picture, not a list")
        if name is None:
            answer = self.classify(query, 1) if fitted.head is not None else self.annotate(query, 1)
            name = str(answer[0][0])
        score = self._score_of(name)
        total, columns, falls = contributions(query.rows, score)
        counts = query.rows.read().toarray()[0]
        share = np.zeros(query.rows.n_visual)
        share[columns] = falls / counts[columns]
        extractor = self._reader.extractor
        image = extractor.open(self._reader.file_of(query.pictures[0]))
        heat = heat_map(image, extractor, share)
        order = np.argsort(-falls, kind="stable")
        words = [(int(columns[i]), float(falls[i])) for i in order]
        return Explanation(name, total, words, heat, overlay(image, heat))

    def _score_of(self, name: str) -> Callable[[Rows], np.ndarray]:
        """Return the log-probability of a class or a tag, as a function of rows."""
        fitted, vocabulary = self._check_fitted(), self.corpus_.vocabulary
        if fitted.head is not None and name in fitted.head.classes:
            # The network's own probability: smooth, and what it was trained for.
            k = class_names(fitted.estimator, self.corpus_.classes).index(name)
            return lambda rows: np.log(fitted.estimator.predict_proba(rows)[:, k] + 1e-12)
        if normalise_tag(name) in vocabulary:
            k = vocabulary.annotations.index(normalise_tag(name))
            return lambda rows: np.log(tag_proba(fitted.estimator, rows)[:, k] + 1e-12)
        raise ValueError(f"{name!r} is neither a class nor a tag of the collection")

    def _matching(self, label: str | None, tag: str | None) -> np.ndarray | None:
        """Return a mask of the pictures with this label and this tag; None for all."""
        if label is None and tag is None:
            return None
        matches = np.ones(len(self.corpus_), bool)
        if label is not None:
            if label not in self.corpus_.classes:
                raise ValueError(f"there is no class {label!r}; there are {', '.join(self.corpus_.classes[:20])}")
            matches &= [label in (labels or ()) for labels in self.corpus_.label_lists]
        if tag is not None:
            matches &= [normalise_tag(tag) in tags for tags in self.corpus_.tags]
        return matches

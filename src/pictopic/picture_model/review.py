"""How good a picture model is, and what its collection's tags lack."""

from __future__ import annotations

import numpy as np

from pictopic.corpus.rows import Rows
from pictopic.picture_model.topics import TopicsMixin
from pictopic.tasks.annotate import Ranking, Suggestions, suggest
from pictopic.tasks.likelihood import log_likelihood_per_word, odd_means
from pictopic.tasks.quality import Quality, quality
from pictopic.tasks.reading import Answer
from pictopic.words.tags import normalise_tag


class ReviewMixin(TopicsMixin):
    """Confusions, tags that are missing or in doubt, odd pictures."""

    _suggestions: Suggestions | None = None

    @property
    def n_held_out(self) -> int:
        """How many pictures were held out to measure how good the model is."""
        return self._check_fitted().n_validation

    def quality(self) -> Quality:
        """How good the model is, picture by picture.

        Returns
        -------
        Quality
            What it confuses and how well it finds each tag, on the pictures that were held out; how it was trained.
        """
        return quality(self._check_fitted(), self.corpus_)

    @property
    def odd_means(self) -> str:
        """A sentence that says what `odd` measures: it depends on what the network was trained for."""
        return odd_means(self.estimator_)

    def odd(self, k: int | None = 10) -> Answer:
        """Pictures of the collection whose words, or tags, the model finds least probable.

        Parameters
        ----------
        k : int or None, default=10
            None: all.

        Returns
        -------
        list of (file_name, log-likelihood per word), oddest first
            See `odd_means`.  Pictures of which nothing can be said are left out.
        """
        found = log_likelihood_per_word(self.estimator_, Rows.of(self.corpus_))
        order = [row for row in np.argsort(found, kind="stable") if np.isfinite(found[row])]
        return [(self.corpus_.file_names[row], float(found[row])) for row in order[:k]]

    def suggestions(self) -> Suggestions:
        """For all tags the pictures that probably lack it, or have it and should not: worked out once."""
        if self._suggestions is None:
            self._suggestions = suggest(self._check_fitted(), Rows.of(self.corpus_))
        return self._suggestions

    def missing(self, tag: str, k: int = 10) -> Answer:
        """Pictures of the collection without a tag that probably should have it.

        Parameters
        ----------
        tag : str
        k : int, default=10

        Returns
        -------
        list of (file_name, probability), most probable first
        """
        return self._ranked(self.suggestions().missing, tag, k)

    def doubtful(self, tag: str, k: int = 10) -> Answer:
        """Pictures of the collection with a tag that probably does not belong to them.

        Parameters
        ----------
        tag : str
        k : int, default=10

        Returns
        -------
        list of (file_name, probability), least probable first
        """
        return self._ranked(self.suggestions().doubtful, tag, k)

    def tag_number(self, tag: str) -> int:
        """The number of a tag among those that the model knows."""
        name, known = normalise_tag(tag), self.corpus_.vocabulary.annotations
        if name not in self.corpus_.vocabulary:
            raise ValueError(f"the model does not know the tag {tag!r}")
        return known.index(name)

    def _ranked(self, ranking: Ranking, tag: str, k: int) -> Answer:
        names = self.corpus_.file_names
        return [(names[row], p) for row, p in ranking.of(self.tag_number(tag))[:k]]

"""Review of a picture model: its quality, missing and doubtful tags, odd pictures."""

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
    """Quality, missing and doubtful tags, odd pictures."""

    _suggestions: Suggestions | None = None

    @property
    def n_held_out(self) -> int:
        """Number of pictures that were held out to measure quality."""
        return self._check_fitted().n_validation

    def quality(self) -> Quality:
        """Return the quality of the model in detail.

        Returns
        -------
        Quality
            Confusion matrix and tag scores on held-out pictures, figures, and training curves.
        """
        return quality(self._check_fitted(), self.corpus_)

    @property
    def odd_means(self) -> str:
        """A sentence that describes what `odd` measures, which depends on the network's training."""
        return odd_means(self.estimator_)

    def odd(self, k: int | None = 10) -> Answer:
        """Return the pictures of the collection whose words, or tags, the model finds least probable.

        Parameters
        ----------
        k : int or None, default=10
            Number of pictures; None for all.

        Returns
        -------
        list of (file_name, log-likelihood per word), oddest first
            See `odd_means`.  Pictures without such words are left out.
        """
        log_likelihoods = log_likelihood_per_word(self.estimator_, Rows.of(self.corpus_))
        order = [row for row in np.argsort(log_likelihoods, kind="stable") if np.isfinite(log_likelihoods[row])]
        return [(self.corpus_.file_names[row], float(log_likelihoods[row])) for row in order[:k]]

    def suggestions(self) -> Suggestions:
        """Return for all tags the pictures that probably lack it, or have it wrongly; computed once."""
        if self._suggestions is None:
            self._suggestions = suggest(self._check_fitted(), Rows.of(self.corpus_))
        return self._suggestions

    def missing(self, tag: str, k: int = 10) -> Answer:
        """Return the pictures of the collection that probably lack a tag.

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
        """Return the pictures of the collection with a tag that probably does not belong to them.

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
        """Return the number of a tag in the vocabulary."""
        name, known = normalise_tag(tag), self.corpus_.vocabulary.annotations
        if name not in self.corpus_.vocabulary:
            raise ValueError(f"the model does not know the tag {tag!r}")
        return known.index(name)

    def _ranked(self, ranking: Ranking, tag: str, k: int) -> Answer:
        names = self.corpus_.file_names
        return [(names[row], p) for row, p in ranking.of(self.tag_number(tag))[:k]]

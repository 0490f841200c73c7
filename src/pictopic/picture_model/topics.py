"""What a picture model's collection is about."""

from __future__ import annotations

from typing import Any

import numpy as np

from pictopic.picture_model.answers import AnswersMixin
from pictopic.tasks.explore import ClassTopic, class_topics, unit_tags
from pictopic.tasks.fitting import Rows
from pictopic.tasks.metrics import npmi_coherence, topic_diversity
from pictopic.tasks.projection import project
from pictopic.tasks.reading import Answer


class TopicsMixin(AnswersMixin):
    """What goes with each class, and what the hidden units stand for."""

    def topics(self, n_units: int = 3, n_visual_words: int = 4, n_tags: int = 5) -> list[ClassTopic]:
        """What goes with each class, as in the paper's figure; see `pictopic.tasks.explore.class_topics`."""
        fitted = self._check_fitted()
        if fitted.head is None:
            raise ValueError("the collection has no classes; get_topics tells what the hidden units stand for")
        rows = Rows.of(self.corpus_)
        return class_topics(
            fitted.network, rows, self.corpus_.vocabulary, self._own_classes(), n_units, n_visual_words, n_tags
        )

    def map(self, random_state: int = 0) -> np.ndarray:
        """Places of the collection's pictures in a plane, those that are alike near each other.

        Returns
        -------
        float32 array of shape (n_pictures, 2)
            Within 0 and 1; see `pictopic.tasks.projection.project`.
        """
        return project(self.vectors, random_state=random_state)

    def get_topics(self, n_tags: int = 10) -> dict[int, Answer]:
        """The tags that each hidden unit stands for, with weights."""
        return unit_tags(self._check_fitted().network, self.corpus_.vocabulary, n_tags)

    def get_topic(self, topic: int, n_tags: int = 10) -> Answer:
        """The tags that a hidden unit stands for, with weights."""
        topics = self.get_topics(n_tags)
        if topic not in topics:
            raise ValueError(f"there are topics 0 to {len(topics) - 1}, got {topic}")
        return topics[topic]

    def topic_quality(self, n_tags: int = 10) -> dict[str, float]:
        """How well the hidden units' tags go together in the collection (NPMI), and how different units are."""
        topics = [[tag for tag, _ in own] for own in self.get_topics(n_tags).values()]
        coherence = npmi_coherence(topics, self.corpus_.tags, n_tags)
        return {"coherence": float(np.nanmean(coherence)), "diversity": topic_diversity(topics, n_tags)}

    def get_topic_info(self, n_pictures: int = 5) -> list[dict[str, Any]]:
        """For each hidden unit: in how many pictures it is the strongest, its tags and its most typical pictures."""
        fitted = self._check_fitted()
        Z = fitted.network.represent(Rows.of(self.corpus_))
        Z = (Z - Z.mean(axis=0)) / (Z.std(axis=0) + 1e-6)
        counts = np.bincount(Z.argmax(axis=1), minlength=Z.shape[1])
        names, topics = self.corpus_.file_names, self.get_topics()
        info = []
        for unit in np.argsort(-counts, kind="stable"):
            typical = np.argsort(-Z[:, unit], kind="stable")[:n_pictures]
            tags = [tag for tag, _ in topics.get(int(unit), [])]
            info.append({
                "Topic": int(unit), "Count": int(counts[unit]), "Name": "_".join([str(unit), *tags[:4]]),
                "Representation": tags, "Representative_Docs": [names[row] for row in typical],
            })  # fmt: skip
        return info

"""Topics of a picture model's collection."""

from __future__ import annotations

from typing import Any

import numpy as np

from pictopic.corpus.rows import Rows
from pictopic.picture_model.answers import AnswersMixin
from pictopic.tasks.fit import class_names
from pictopic.tasks.metrics import npmi_coherence, topic_diversity
from pictopic.tasks.reading import Answer
from pictopic.tasks.topics import ClassTopic, UnitTopic, class_topics, project, unit_topics


class TopicsMixin(AnswersMixin):
    """Words of each class and of each hidden unit, and the map."""

    def topics(self, n_units: int = 3, n_visual_words: int = 4, n_tags: int = 5) -> list[ClassTopic]:
        """Return the words of each class, as in the paper's figure; see `pictopic.tasks.topics.class_topics`."""
        fitted = self._check_fitted()
        if fitted.head is None:
            raise ValueError("the collection has no classes; get_topics tells what the hidden units stand for")
        estimator, corpus = fitted.estimator, self.corpus_
        names = class_names(estimator, corpus.classes)
        return class_topics(estimator, Rows.of(corpus), corpus.vocabulary, names, n_units, n_visual_words, n_tags)

    def map(self, random_state: int = 0) -> np.ndarray:
        """Return places of the collection's pictures in a plane, with similar pictures near each other.

        Returns
        -------
        float32 array of shape (n_pictures, 2)
            Between 0 and 1; see `pictopic.tasks.topics.project`.
        """
        return project(self.vectors, random_state=random_state)

    def get_topics(self, n_tags: int = 10) -> dict[int, Answer]:
        """Return the tags, with weights, that each hidden unit stands for; empty lists without tags."""
        return {unit: topic.tags for unit, topic in enumerate(self._unit_topics(n_tags))}

    def get_topic(self, topic: int, n_tags: int = 10) -> Answer:
        """Return the tags, with weights, that a hidden unit stands for."""
        topics = self.get_topics(n_tags)
        if topic not in topics:
            raise ValueError(f"there are topics 0 to {len(topics) - 1}, got {topic}")
        return topics[topic]

    def _unit_topics(self, n_tags: int = 10, n_visual_words: int = 4) -> list[UnitTopic]:
        return unit_topics(self.estimator_, self.corpus_.vocabulary, n_visual_words, n_tags)

    def topic_quality(self, n_tags: int = 10) -> dict[str, float]:
        """Return coherence and diversity of the topics' tags.

        Parameters
        ----------
        n_tags : int, default=10
            Tags per topic that count.

        Returns
        -------
        dict of str to float
            "coherence": how well the tags of a topic go together in the collection (NPMI), which needs two tags;
            "diversity": how different the topics are.  Empty if the collection has no tags.
        """
        topics = [[tag for tag, _ in tags] for tags in self.get_topics(n_tags).values()]
        vocabulary = self.corpus_.vocabulary
        n_known = vocabulary.n_annotation_words
        measures: dict[str, float] = {}
        if min(n_known, n_tags) > 1:
            # From the counts: a collection that was made from counts has words there, but no tags.
            columns = [[vocabulary.index(tag) for tag in tags] for tags in topics]
            measures["coherence"] = float(np.mean(npmi_coherence(columns, self.corpus_.X, n_tags)))
        if n_known:
            measures["diversity"] = topic_diversity(topics, n_tags)
        return measures

    def get_topic_info(self, n_pictures: int = 5) -> list[dict[str, Any]]:
        """Return what each hidden unit stands for.

        Parameters
        ----------
        n_pictures : int, default=5
            Number of typical pictures per unit.

        Returns
        -------
        list of dict
            "Topic", the number of the unit; "Count", in how many pictures it is the strongest; "Name";
            "Representation", its tags; "Visual_Words", pairs of a visual word's number and its weight;
            "Representative_Docs", the pictures in which it is strongest.  The largest topics first.
        """
        fitted = self._check_fitted()
        Z = fitted.estimator.transform(Rows.of(self.corpus_))
        Z = (Z - Z.mean(axis=0)) / (Z.std(axis=0) + 1e-6)
        counts = np.bincount(Z.argmax(axis=1), minlength=Z.shape[1])
        names, topics = self.corpus_.file_names, self._unit_topics()
        info = []
        for unit in np.argsort(-counts, kind="stable").tolist():
            typical = np.argsort(-Z[:, unit], kind="stable")[:n_pictures]
            tags, visual_words = [tag for tag, _ in topics[unit].tags], topics[unit].visual_words
            words = tags or [f"word{word}" for word, _ in visual_words]
            info.append({
                "Topic": unit, "Count": int(counts[unit]), "Name": "_".join([str(unit), *words[:4]]),
                "Representation": tags, "Visual_Words": visual_words,
                "Representative_Docs": [names[row] for row in typical],
            })  # fmt: skip
        return info

"""A small built-in corpus: the tags of made-up holiday pictures, in eight kinds of scene."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from pictopic.words.vocabulary import Vocabulary

_SCENES = {
    "coast": "sea sky sand beach wave rock cloud boat horizon bird swimmer umbrella shell cliff",
    "forest": "tree leaf trunk path moss grass fern light mushroom bird deer stream ground branch",
    "harbour": "boat water mast sky pier building rope sail gull crane buoy fisherman net cloud",
    "highway": "road car sky truck sign lane bridge tree cloud guardrail bus light asphalt field",
    "city": "building car window person door street sign sidewalk shop bicycle light bus balcony flag",
    "mountain": "mountain sky snow rock cloud tree lake peak path hiker valley glacier grass hut",
    "countryside": "field sky grass tree cloud fence cow house road hill horse flower barn tractor",
    "kitchen": "table chair plate cup window lamp bread stove pan person flower knife fruit door",
}


class Sample(NamedTuple):
    """Counts of tags, the scene of each picture, and the tags' names."""

    X: sparse.csr_array
    y: np.ndarray
    vocabulary: Vocabulary


def load_sample(n_pictures: int = 1200, random_state: int | np.random.RandomState | None = 0) -> Sample:
    """Make up tags of pictures: for each picture a scene, and 3 to 9 of its tags, the first ones more often.

    One tag in ten is from any scene, as people tag.

    Parameters
    ----------
    n_pictures : int, default=1200
    random_state : int, RandomState instance or None, default=0

    Returns
    -------
    Sample

    Examples
    --------
    >>> from pictopic.corpus.sample import load_sample
    >>> sample = load_sample(100)
    >>> sample.X.shape[0], len(set(sample.y.tolist()))
    (100, 8)
    """
    rng = check_random_state(random_state)
    scenes = {name: tags.split() for name, tags in _SCENES.items()}
    all_tags = sorted({tag for tags in scenes.values() for tag in tags})
    weights = 1.0 / np.sqrt(np.arange(1, 15))
    pictures, labels = [], []
    for scene in rng.choice(list(scenes), n_pictures):
        n_tags = rng.randint(3, 10)
        tags = rng.choice(scenes[scene], n_tags, replace=False, p=weights / weights.sum())
        pictures.append([rng.choice(all_tags) if rng.uniform() < 0.1 else tag for tag in tags])
        labels.append(scene)
    vocabulary = Vocabulary.from_tags(pictures, min_count=1)
    return Sample(vocabulary.count_tags(pictures), np.array(labels), vocabulary)

"""The joint vocabulary of a picture: visual words in regions first, annotation words last."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from pictopic.checks import section, texts, whole
from pictopic.files import read_json, write_text

FORMAT_VERSION = 1
_MAX_COLUMNS = 2**31 - 1  # they are numbered with 32 bits


class Word(NamedTuple):
    """What a column of the counts stands for."""

    kind: str  # "visual" or "annotation"
    word: int | str  # number of the visual word, or the tag
    region: int | None  # where in the picture; None for a tag


class Vocabulary:
    """The words that the columns of the counts stand for.

    Every pair of a visual word and a region is a word of its own: column ``region * n_visual_words + word``.  The
    annotation words (tags) follow.

    Parameters
    ----------
    n_visual_words : int, default=0
        Size of the codebook.
    n_regions : int, default=1
        Number of regions of a picture, M.
    annotations : sequence of str, default=()
        Annotation words, in the order of their columns.

    Examples
    --------
    >>> from pictopic import Vocabulary
    >>> tags = [["sea", "sky"], ["sky", "boat"], ["sky", "sea"]]
    >>> vocabulary = Vocabulary.from_tags(tags, n_visual_words=240, n_regions=4, min_count=2)
    >>> len(vocabulary), vocabulary.annotations
    (962, ('sky', 'sea'))
    >>> vocabulary[245]
    Word(kind='visual', word=5, region=1)
    >>> vocabulary[960], vocabulary.index("sky"), vocabulary.index(5, region=1)
    (Word(kind='annotation', word='sky', region=None), 960, 245)
    """

    def __init__(self, n_visual_words: int = 0, n_regions: int = 1, annotations: Sequence[str] = ()):
        if n_visual_words < 0 or n_regions < 1:
            raise ValueError(f"need n_visual_words >= 0 and n_regions >= 1, got {n_visual_words} and {n_regions}")
        self.n_visual_words = int(n_visual_words)
        self.n_regions = int(n_regions)
        self.annotations = tuple(str(tag) for tag in annotations)
        self._columns = {tag: self.n_pairs + i for i, tag in enumerate(self.annotations)}
        if len(self._columns) < len(self.annotations):
            twice = next(tag for tag, count in Counter(self.annotations).items() if count > 1)
            raise ValueError(f"annotation word {twice!r} is there twice")

    @classmethod
    def from_tags(
        cls,
        tags: Iterable[Iterable[str]],
        *,
        n_visual_words: int = 0,
        n_regions: int = 1,
        min_count: int = 3,
        max_words: int | None = None,
    ) -> Vocabulary:
        """Take the annotation words from pictures' tags.

        Parameters
        ----------
        tags : iterable of iterables of str
            The tags of each picture.
        n_visual_words, n_regions : int
            See `Vocabulary`.
        min_count : int, default=3
            In how many pictures a tag must occur (the paper's 3).
        max_words : int or None, default=None
            Keep the most frequent ones only (the paper's 2000 for MIR Flickr).

        Returns
        -------
        Vocabulary
            Most frequent tags first, equally frequent ones in the order of the alphabet.
        """
        counts = Counter(tag for picture in tags for tag in set(picture))
        frequent = sorted((tag for tag, n in counts.items() if n >= min_count), key=lambda tag: (-counts[tag], tag))
        return cls(n_visual_words, n_regions, frequent[:max_words])

    @property
    def n_pairs(self) -> int:
        """Number of columns of visual words."""
        return self.n_visual_words * self.n_regions

    @property
    def n_annotation_words(self) -> int:
        """Number of columns of annotation words, the last ones."""
        return len(self.annotations)

    def __len__(self) -> int:
        return self.n_pairs + self.n_annotation_words

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash((self.n_visual_words, self.n_regions, self.annotations))

    def __contains__(self, tag: object) -> bool:
        return tag in self._columns

    def __repr__(self) -> str:
        return (
            f"Vocabulary({self.n_visual_words} visual words x {self.n_regions} regions, "
            f"{self.n_annotation_words} annotation words)"
        )

    def __getitem__(self, column: int) -> Word:
        """What a column stands for."""
        if not 0 <= column < len(self):
            raise IndexError(f"column {column} is outside 0..{len(self) - 1}")
        if column < self.n_pairs:
            region, word = divmod(int(column), self.n_visual_words)
            return Word("visual", word, region)
        return Word("annotation", self.annotations[column - self.n_pairs], None)

    def index(self, word: int | str, region: int = 0) -> int:
        """Column of a tag (str), or of a visual word (int) in a region."""
        if isinstance(word, str):
            if word not in self._columns:
                raise ValueError(f"{word!r} is not an annotation word of this vocabulary")
            return self._columns[word]
        if not (0 <= word < self.n_visual_words and 0 <= region < self.n_regions):
            raise ValueError(
                f"visual word {word} in region {region}: there are "
                f"{self.n_visual_words} words and {self.n_regions} regions"
            )
        return int(region) * self.n_visual_words + int(word)

    def count_tags(self, tags: Sequence[Iterable[str]]) -> sparse.csr_array:
        """Counts of the annotation words, one row per picture; tags outside the vocabulary are ignored.

        Returns
        -------
        csr_array of shape (n_pictures, n_annotation_words), int32
        """
        columns: list[int] = []
        ends = [0]
        for picture in tags:
            columns += [self._columns[tag] - self.n_pairs for tag in picture if tag in self._columns]
            ends.append(len(columns))
        data = np.ones(len(columns), np.int32)
        # 32-bit indices: some of scikit-learn's classifiers take no others.
        places, rows = np.array(columns, np.int32), np.array(ends, np.int32)
        counts = sparse.csr_array((data, places, rows), shape=(len(ends) - 1, self.n_annotation_words))
        counts.sum_duplicates()
        return counts

    def _content(self) -> dict:
        return {
            "format_version": FORMAT_VERSION,
            "n_visual_words": self.n_visual_words,
            "n_regions": self.n_regions,
            "annotations": list(self.annotations),
        }

    @property
    def sha256(self) -> str:
        """A fingerprint of the words and their order."""
        return hashlib.sha256(json.dumps(self._content()).encode()).hexdigest()

    def save(self, path: str | Path) -> None:
        """Write the vocabulary to a JSON file."""
        write_text(Path(path), json.dumps(self._content(), ensure_ascii=False, indent=1) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Vocabulary:
        """Read a vocabulary that `save` wrote."""
        content = read_json(Path(path))
        try:
            if whole(section(content, "format_version"), "format_version", 1) > FORMAT_VERSION:
                raise ValueError("it was written by a newer pictopic; update pictopic to read it")
            n_words = whole(section(content, "n_visual_words"), "n_visual_words", 0, _MAX_COLUMNS)
            n_regions = whole(section(content, "n_regions"), "n_regions", 1, _MAX_COLUMNS)
            annotations = texts(section(content, "annotations"), "annotations")
            if n_words * n_regions + len(annotations) > _MAX_COLUMNS:
                raise ValueError(f"it has more than {_MAX_COLUMNS} words")
        except ValueError as error:
            raise ValueError(f"{path} is not a vocabulary: {error}") from None
        return cls(n_words, n_regions, annotations)

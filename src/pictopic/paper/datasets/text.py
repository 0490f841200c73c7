"""Text in the files that DocNADE's papers use: one document per line, as its label and the ids of its words."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from pictopic.corpus.sources.counts_files import read_words
from pictopic.corpus.sources.metadata import TextLines
from pictopic.corpus.splits import labels_as_y
from pictopic.paper.datasets.layouts import LAYOUTS

LAYOUT = LAYOUTS["text"]
PARTS = ("training", "validation", "test")

_VOCABULARY, _LABELS = "vocab_docnade.vocab", "labels.txt"


class TextPart(NamedTuple):
    """The documents of one part of a corpus."""

    X: sparse.csr_array  # int32 counts, (n_documents, n_words)
    labels: np.ndarray  # one name per document; where documents can have several, 0 or 1 for each of the classes
    classes: tuple[str, ...]  # all labels of the corpus
    vocabulary: tuple[str, ...]


def read_text(folder: str | os.PathLike[str]) -> dict[str, TextPart]:
    r"""Read a corpus of text.

    Returns
    -------
    dict of str to TextPart
        For "training", "validation" and "test".  If any document has several labels, ``labels`` are matrices with one
        column for each of the ``classes``.  A document without a label has the label None, or NaN in the matrix.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pictopic.paper.datasets.text import read_text
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "vocab_docnade.vocab").write_text("goal\nball\nstock\n")
    >>> _ = (folder / "labels.txt").write_text("sport\nbusiness\n")
    >>> for part in ("training", "validation", "test"):
    ...     _ = (folder / f"{part}_docnade.csv").write_text("0,0 1 1\n1,2\n")
    >>> train = read_text(folder)["training"]
    >>> train.X.toarray().tolist(), train.labels.tolist()
    ([[1, 2, 0], [0, 0, 1]], ['sport', 'business'])
    """
    folder = Path(folder)
    for name in (*map(_file_name, PARTS), _VOCABULARY):
        if not (folder / name).is_file():
            raise LAYOUT.missing(folder / name, "a corpus of text has it")
    words = read_words(folder / _VOCABULARY)
    if not words:
        raise ValueError(f"{folder / _VOCABULARY} is empty")
    names = read_words(folder / _LABELS) if (folder / _LABELS).is_file() else None
    parts = {part: _Documents(folder / _file_name(part), len(words), names) for part in PARTS}
    label_lists = [labels for part in parts.values() for labels in part.labels if labels]
    classes = names
    if classes is None:
        classes = tuple(sorted({label for labels in label_lists for label in labels}, key=_by_number))
    several = any(len(labels) > 1 for labels in label_lists)
    return {
        name: TextPart(part.counts(), labels_as_y(part.labels, classes, several), classes, words)
        for name, part in parts.items()
    }


def find_text_corpora(folder: str | os.PathLike[str]) -> list[Path]:
    """The folders with a corpus of text: the folder itself, or sub-folders of it or of ``text`` in it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pictopic.paper.datasets.text import find_text_corpora
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("TMN", "20NS"):
    ...     (folder / "text" / name).mkdir(parents=True)
    ...     _ = (folder / "text" / name / "training_docnade.csv").write_text("0,0")
    >>> [path.name for path in find_text_corpora(folder)]
    ['20NS', 'TMN']
    """
    root = LAYOUT.inside(Path(folder))
    for home in (root, root / "text"):
        if not home.is_dir():
            continue
        corpora = [path for path in (home, *sorted(home.iterdir())) if (path / _file_name("training")).is_file()]
        if corpora:
            return corpora[:1] if corpora[0] == home else corpora
    raise LAYOUT.missing(root / "TMN" / _file_name("training"), "no sub-folder has such a file")


def _file_name(part: str) -> str:
    return f"{part}_docnade.csv"


def _number(text: str) -> int | None:
    """A whole number from 0 on; None for anything else."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def _by_number(label: str) -> tuple[bool, int, str]:
    number = _number(label)
    return number is None, number or 0, label


def _numbers(texts: list[str], n: int, what: str) -> list[int]:
    """Numbers below `n`."""
    numbers = []
    for text in texts:
        number = _number(text)
        if number is None or number >= n:
            raise ValueError(f"{text[:40]!r} is not {what}, 0 to {n - 1}")
        numbers.append(number)
    return numbers


class _Documents:
    """A file of documents."""

    def __init__(self, path: Path, n_words: int, names: tuple[str, ...] | None):
        self._n_words, self._names = n_words, names
        self.labels: list[list[str] | None] = []
        self._columns: list[int] = []
        self._ends = [0]
        for number, line in enumerate(TextLines(path), 1):
            try:
                if line.strip():
                    self._add(line.strip())
            except ValueError as error:
                raise ValueError(f"{path}, row {number}: {error}") from None
        if not self.labels:
            raise ValueError(f"{path} is empty")

    def _add(self, line: str) -> None:
        label, comma, ids = line.partition(",")
        if not comma:
            raise ValueError(f"not a label, a comma and word ids: {line[:60]}")
        self.labels.append(self._label_names(label))
        self._columns += _numbers(ids.split(), self._n_words, "the id of a word")
        self._ends.append(len(self._columns))

    def _label_names(self, text: str) -> list[str] | None:
        """The labels of a document: several are separated by colons; None without any."""
        labels = list(dict.fromkeys(label for part in text.split(":") if (label := part.strip())))
        if self._names is not None:
            labels = [self._names[k] for k in _numbers(labels, len(self._names), "the number of a label")]
        return labels or None

    def counts(self) -> sparse.csr_array:
        """How often each word occurs in each document."""
        ones = np.ones(len(self._columns), np.int32)
        parts = (ones, np.array(self._columns, np.int32), np.array(self._ends, np.int32))
        counts = sparse.csr_array(parts, shape=(len(self.labels), self._n_words))
        counts.sum_duplicates()
        return counts

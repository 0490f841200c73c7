"""A corpus of words without pictures."""

import numpy as np

from pictopic import Corpus


def make_texts(folder, n=120, split=False, words="abcdef"):
    """A corpus of texts of two kinds; half of them have a class, named after the kind."""
    rng = np.random.RandomState(0)
    lines = [",".join(["label", "part", *words])]
    for k in range(n):
        counts = rng.poisson(np.where(np.arange(6) // 3 == k % 2, 3, 0.3))
        part = ("test" if k % 10 == 0 else "val" if k % 10 == 1 else "train") if split else ""
        lines.append(",".join([f"kind{k % 2}" if k % 4 < 2 else "", part, *map(str, counts)]))
    folder.mkdir(parents=True)
    (folder / "texts.csv").write_text("\n".join(lines) + "\n")
    return Corpus.build(folder / "texts.csv", folder / "corpus", split_column="part")

"""How fast representations are computed, against LDA's and against scipy's matrix product."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import LatentDirichletAllocation

from benchmarks.made_corpora import make_corpus
from benchmarks.timing import interleaved, report
from pictopic import DocNADE


def main() -> None:
    """200 topics; documents of text size and of LabelMe size."""
    for name, size in (
        ("text", {"n_words": 2000, "length": 100}),
        ("labelme", {"n_words": 1360, "length": 972, "burstiness": 4.0}),
    ):
        X = make_corpus(2000, **size)
        model = DocNADE(n_components=200, max_iter=1, random_state=0).fit(X)
        lda = LatentDirichletAllocation(200, max_iter=1, learning_method="online", random_state=0).fit(X[:200])
        W = np.ascontiguousarray(model.components_.T)
        floats = X.astype(np.float32)
        times = interleaved(
            {
                "ours": lambda model=model, X=X: model.transform(X),
                "scipy": lambda floats=floats, W=W, c=model.hidden_intercept_: np.tanh(floats @ W + c),
                "product": lambda floats=floats, W=W: floats @ W,
                "lda": lambda lda=lda, X=X: lda.transform(X[:50]),
            },
            repeats=5,
        )
        ours = times["ours"] / X.shape[0]
        report(
            f"transform, {name} size, against LDA's",
            ratio=times["lda"] / 50 / ours, target=150, ms_a_document=1e3 * ours,
        )  # fmt: skip
        report(f"transform, {name} size, against scipy's CSR product", ratio=times["product"] / times["ours"], target=1)


if __name__ == "__main__":
    main()

"""Small deep models for tests."""

from pictopic import DeepDocNADE


def small(kind=DeepDocNADE, **options):
    return kind(**({"n_components": (6, 5), "max_iter": 3, "random_state": 0} | options))


# A tiny network that sees a tiny corpus learns it in a hundred steps without dropout.
QUICK = {"dropout": 0.0, "learning_rate": 0.01}


def fitted(topics, kind=DeepDocNADE, features=None, **options):
    X, y = topics
    return small(kind, **options).fit(X, y, global_features=features)

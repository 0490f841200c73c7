"""Options of a training run of a shallow model, for tests of its trainers."""

from pictopic.models.parameters import Options


def make_options(**changes) -> Options:
    defaults = {
        "activation": "relu", "generative": 0.1, "multi_label": False, "solver": "adam", "batch_size": 100,
        "learning_rate": 0.01, "dropout": 0.0, "averaging": 0.0, "smoothing": 0.0, "n_jobs": 1, "device": "cpu",
    }  # fmt: skip
    return Options(**(defaults | changes))

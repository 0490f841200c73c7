"""How a network was trained, as curves."""

from __future__ import annotations

from typing import Any, NamedTuple

_METRICS = {"accuracy": "Accuracy of the classes", "map": "Mean average precision of the classes"}


class Series(NamedTuple):
    """A line of a chart: a value for each pass, from the first on."""

    name: str
    values: list[float]


class Chart(NamedTuple):
    """A chart of a training run."""

    title: str
    series: list[Series]


def training_curves(estimator: Any) -> list[Chart]:
    """The losses of each pass, and how good the model was on held-out pictures by its `validation_metric`.

    Parameters
    ----------
    estimator : DocNADE, SupDocNADE, DeepDocNADE or SupDeepDocNADE
        Fitted.

    Returns
    -------
    list of Chart

    Examples
    --------
    >>> from pictopic import DocNADE
    >>> from pictopic.tasks.curves import training_curves
    >>> [chart] = training_curves(DocNADE(max_iter=3, random_state=0).fit([[2, 1], [1, 2]]))
    >>> chart.title, [(own.name, len(own.values)) for own in chart.series]
    ('Loss of the words', [('training', 3)])
    """
    history = estimator.history_
    scores, metric = history["validation_score"], getattr(estimator, "validation_metric", "loss")
    losses = Series("held-out pictures", [-score for score in scores])
    words = [Series("training", history["nll"])]
    if not hasattr(estimator, "classes_"):
        # Without classes, the held-out score is minus the loss of the words.
        return [Chart("Loss of the words", words + ([losses] if scores else []))]
    classes = [Series("training", history["class_loss"])]
    charts = [Chart("Loss of the classes", classes), Chart("Loss of the words", words)]
    if scores and metric == "loss":
        classes.append(losses)
    elif scores:
        charts.insert(0, Chart(_METRICS[metric], [Series("held-out pictures", scores)]))
    return charts

"""How a network was trained, as curves."""

from __future__ import annotations

from typing import Any, NamedTuple


class Series(NamedTuple):
    """A line of a chart: a value for each pass, from the first on."""

    name: str
    values: list[float]


class Chart(NamedTuple):
    """A chart of a training run."""

    title: str
    series: list[Series]


def training_curves(estimator: Any) -> list[Chart]:
    """The losses of each pass.

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
    charts = [Chart("Loss of the words", [Series("training", history["nll"])])]
    if any(history["class_loss"]):
        series = [Series("training", history["class_loss"])]
        if history["validation_score"]:
            # The score of models with classes is minus this loss.
            series.append(Series("held-out pictures", [-score for score in history["validation_score"]]))
        charts.insert(0, Chart("Loss of the classes", series))
    return charts

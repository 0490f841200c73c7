"""What the models are compared with.

Every estimator follows scikit-learn's conventions, takes counts of visual words (and tags, the last columns), and looks
at visual words alone when it is asked about new pictures, unless its docstring says otherwise.
"""

from pictopic.paper.baselines.classifiers import AverageKernelSVM, HistogramSVM, MostFrequent, TfidfClassifier
from pictopic.paper.baselines.lda_svm import LDAClassifier
from pictopic.paper.baselines.logistic_neighbors import LogisticNeighborAnnotator
from pictopic.paper.baselines.neighbors import NeighborAnnotator, hsv_histograms
from pictopic.paper.baselines.slda import SupervisedLDA
from pictopic.paper.baselines.spatial_pyramid import SpatialPyramidAnnotator, SpatialPyramidClassifier, pyramid_match

__all__ = [
    "AverageKernelSVM", "HistogramSVM", "LDAClassifier", "LogisticNeighborAnnotator", "MostFrequent",
    "NeighborAnnotator", "SpatialPyramidAnnotator", "SpatialPyramidClassifier", "SupervisedLDA", "TfidfClassifier",
    "hsv_histograms", "pyramid_match",
]  # fmt: skip

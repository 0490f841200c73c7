"""What the models are compared with.

Every estimator follows scikit-learn's conventions, takes counts of visual words (and tags, the last columns), and looks
at visual words alone when it is asked about new pictures, unless its docstring says otherwise.
"""

from pictopic.paper.baselines.colors import hsv_histograms
from pictopic.paper.baselines.histogram_svm import HistogramSVM
from pictopic.paper.baselines.kernel_svm import AverageKernelSVM
from pictopic.paper.baselines.lda_svm import LDAClassifier
from pictopic.paper.baselines.most_frequent import MostFrequent
from pictopic.paper.baselines.neighbors import NeighborAnnotator
from pictopic.paper.baselines.slda import SupervisedLDA
from pictopic.paper.baselines.spatial_pyramid import SpatialPyramidAnnotator, SpatialPyramidClassifier, pyramid_match
from pictopic.paper.baselines.tfidf import TfidfClassifier

__all__ = [
    "AverageKernelSVM", "HistogramSVM", "LDAClassifier", "MostFrequent", "NeighborAnnotator",
    "SpatialPyramidAnnotator", "SpatialPyramidClassifier", "SupervisedLDA", "TfidfClassifier", "hsv_histograms",
    "pyramid_match",
]  # fmt: skip

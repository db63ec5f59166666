"""k-means with many clusters: k²-means, its rivals, and a scikit-learn estimator over them."""

from .cluster import cluster
from .estimator import K2Means
from .initialize import GDI, Given, PlusPlus, Random
from .loop import Ops, Record, Result, Stop
from .methods import AKM, K2, Elkan, Lloyd, MiniBatch, Sketched
from .store import load, save
from .vectors import read_vectors

__version__ = "0.1.0"

__all__ = [
    "AKM",
    "GDI",
    "K2",
    "Elkan",
    "Given",
    "K2Means",
    "Lloyd",
    "MiniBatch",
    "Ops",
    "PlusPlus",
    "Random",
    "Record",
    "Result",
    "Sketched",
    "Stop",
    "cluster",
    "load",
    "read_vectors",
    "save",
]

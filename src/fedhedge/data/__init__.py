"""Data: sources, partitioners, and clients with their training, validation and test rows."""

from fedhedge.data.clients import Clients
from fedhedge.data.download import DownloadFailed
from fedhedge.data.partitioners import ByLabel, Dirichlet, Dominant, Iid, Imbalanced, Partitioner
from fedhedge.data.registry import available, check, fetch, load
from fedhedge.data.resolve import CorruptData, MissingData
from fedhedge.data.scaling import Scaling
from fedhedge.data.source import Dataset

__all__ = [
    "ByLabel",
    "Clients",
    "CorruptData",
    "Dataset",
    "Dirichlet",
    "Dominant",
    "DownloadFailed",
    "Iid",
    "Imbalanced",
    "MissingData",
    "Partitioner",
    "Scaling",
    "available",
    "check",
    "fetch",
    "load",
]

"""Federated methods, one per file, against the contract of `base.py`; `METHODS` is the registry."""

from fedhedge.algorithms.base import Algorithm, Batches, Layout, Start
from fedhedge.algorithms.fedavg import FedAvg
from fedhedge.algorithms.federage import FedeRage
from fedhedge.algorithms.fedprox import FedProx
from fedhedge.algorithms.first_order import FirstOrder
from fedhedge.algorithms.scaffold import Scaffold

METHODS: dict[str, type[Algorithm]] = {cls.name: cls for cls in (FedAvg, FedeRage, FedProx, Scaffold)}

__all__ = [
    "METHODS",
    "Algorithm",
    "Batches",
    "FedAvg",
    "FedProx",
    "FedeRage",
    "FirstOrder",
    "Layout",
    "Scaffold",
    "Start",
]

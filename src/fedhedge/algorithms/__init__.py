"""Federated methods, one per file, against the contract of `base.py`; `METHODS` is the registry."""

from fedhedge.algorithms.base import Algorithm, Batches, Cohort, Layout, Start, traced
from fedhedge.algorithms.dp_dro_admm import DpDroAdmm
from fedhedge.algorithms.dp_erm_admm import DpErmAdmm
from fedhedge.algorithms.dp_sgd import DpSgd
from fedhedge.algorithms.dro_admm import DroAdmm
from fedhedge.algorithms.fedavg import FedAvg
from fedhedge.algorithms.federage import FedeRage
from fedhedge.algorithms.fedprox import FedProx
from fedhedge.algorithms.first_order import FirstOrder
from fedhedge.algorithms.one_vs_all_dro import OneVsAllDro
from fedhedge.algorithms.scaffold import Scaffold

_BUILT_IN: tuple[type[Algorithm], ...] = (
    FedAvg,
    FedeRage,
    FedProx,
    Scaffold,
    DroAdmm,
    DpDroAdmm,
    DpErmAdmm,
    DpSgd,
    OneVsAllDro,
)
METHODS: dict[str, type[Algorithm]] = {cls.name: cls for cls in _BUILT_IN}

__all__ = [
    "METHODS",
    "Algorithm",
    "Batches",
    "Cohort",
    "DpDroAdmm",
    "DpErmAdmm",
    "DpSgd",
    "DroAdmm",
    "FedAvg",
    "FedProx",
    "FedeRage",
    "FirstOrder",
    "Layout",
    "OneVsAllDro",
    "Scaffold",
    "Start",
    "traced",
]

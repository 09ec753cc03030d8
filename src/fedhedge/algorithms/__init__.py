"""Federated methods, one per file, against the contract of `base.py`; `METHODS` is the registry."""

from fedhedge.algorithms.adaptive_federage import AdaptiveFedeRage
from fedhedge.algorithms.agnostic_fl import AgnosticFL
from fedhedge.algorithms.anarchic import Anarchic
from fedhedge.algorithms.arrival_weights import ArrivalWeights
from fedhedge.algorithms.availability_aware import AvailabilityAware
from fedhedge.algorithms.base import Algorithm, Batches, Cohort, Layout, Start, traced
from fedhedge.algorithms.compressed_scaffold import CompressedScaffold
from fedhedge.algorithms.controlled_federage import ControlledFedeRage
from fedhedge.algorithms.dp_dro_admm import DpDroAdmm
from fedhedge.algorithms.dp_erm_admm import DpErmAdmm
from fedhedge.algorithms.dp_sgd import DpSgd
from fedhedge.algorithms.drfa import DRFA
from fedhedge.algorithms.dro_admm import DroAdmm
from fedhedge.algorithms.fedavg import FedAvg
from fedhedge.algorithms.fedavot import FedAvot
from fedhedge.algorithms.feddisco import FedDisco
from fedhedge.algorithms.federage import FedeRage
from fedhedge.algorithms.fednova import FedNova
from fedhedge.algorithms.fedopt import FedOpt
from fedhedge.algorithms.fedprox import FedProx
from fedhedge.algorithms.fedvarp import FedVarp
from fedhedge.algorithms.first_order import FirstOrder
from fedhedge.algorithms.horvitz_thompson import HorvitzThompson
from fedhedge.algorithms.inverse_probability import InverseProbability
from fedhedge.algorithms.mifa import Mifa
from fedhedge.algorithms.one_vs_all_dro import OneVsAllDro
from fedhedge.algorithms.power_of_choice import PowerOfChoice
from fedhedge.algorithms.qfedavg import QFedAvg
from fedhedge.algorithms.scaff_pd import ScaffPD
from fedhedge.algorithms.scaffold import Scaffold
from fedhedge.algorithms.spectral_federage import SpectralFedeRage
from fedhedge.algorithms.superquantile import Superquantile

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
    SpectralFedeRage,
    QFedAvg,
    Mifa,
    FedVarp,
    FedOpt,
    FedNova,
    ControlledFedeRage,
    CompressedScaffold,
    Anarchic,
    AdaptiveFedeRage,
    AgnosticFL,
    ArrivalWeights,
    AvailabilityAware,
    DRFA,
    FedAvot,
    FedDisco,
    HorvitzThompson,
    InverseProbability,
    PowerOfChoice,
    ScaffPD,
    Superquantile,
)
METHODS: dict[str, type[Algorithm]] = {cls.name: cls for cls in _BUILT_IN}

__all__ = [
    "DRFA",
    "METHODS",
    "AdaptiveFedeRage",
    "AgnosticFL",
    "Algorithm",
    "Anarchic",
    "ArrivalWeights",
    "AvailabilityAware",
    "Batches",
    "Cohort",
    "CompressedScaffold",
    "ControlledFedeRage",
    "DpDroAdmm",
    "DpErmAdmm",
    "DpSgd",
    "DroAdmm",
    "FedAvg",
    "FedAvot",
    "FedDisco",
    "FedNova",
    "FedOpt",
    "FedProx",
    "FedVarp",
    "FedeRage",
    "FirstOrder",
    "HorvitzThompson",
    "InverseProbability",
    "Layout",
    "Mifa",
    "OneVsAllDro",
    "PowerOfChoice",
    "QFedAvg",
    "ScaffPD",
    "Scaffold",
    "SpectralFedeRage",
    "Start",
    "Superquantile",
    "traced",
]

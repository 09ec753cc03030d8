"""Every registered method with the three values of its main setting that `which-method` chooses from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fedhedge import algorithms as methods
from fedhedge.algorithms import Algorithm
from fedhedge.availability import Law
from fedhedge.privacy import Privacy

BUDGET = Privacy(epsilon=3.0, delta=1e-6)
# Rounds of the methods that train one matrix from all rows of a client: everyone's budget is spent on these.
MATRIX_ROUNDS = 150

# From a scale (1/3, 1 or 3) of the main setting and the law, which only oracles may look at.
Make = Callable[[float, Law], Algorithm]
SCALES = (1 / 3, 1.0, 3.0)


@dataclass(frozen=True)
class Method:
    """One line. matrix: it trains a Crammer-Singer matrix. solver: it calls an exact solver in every client's step."""

    make: Make
    matrix: bool = False
    solver: bool = False


def _plain(kind: type[Algorithm]) -> Method:
    return Method(lambda scale, law: kind(step=0.1 * scale))  # type: ignore[call-arg]


def _tail(kind: type[Algorithm]) -> Method:
    return Method(lambda scale, law: kind(step=kind().step * scale))  # type: ignore[attr-defined, call-arg]


def _around(kind: type[Algorithm]) -> Method:
    return Method(lambda scale, law: kind(base=methods.FedAvg(step=0.1 * scale)))  # type: ignore[call-arg]


def _told(kind: type[Algorithm]) -> Method:
    return Method(lambda scale, law: kind(base=methods.FedAvg(step=0.1 * scale), law=law))  # type: ignore[call-arg]


def _exact(kind: type[Algorithm]) -> Method:
    return Method(lambda scale, law: kind(radius=0.01 * scale, norm="l1"), matrix=True, solver=True)  # type: ignore[call-arg]


METHODS: dict[str, Method] = {
    "FedAvg": _plain(methods.FedAvg),
    "FedProx": _plain(methods.FedProx),
    "FedNova": _plain(methods.FedNova),
    "FedOpt": Method(lambda scale, law: methods.FedOpt(base=methods.FedAvg(step=0.1 * scale), optimizer="momentum")),
    "Anarchic": _plain(methods.Anarchic),
    "QFedAvg": _plain(methods.QFedAvg),
    "FedeRage": _tail(methods.FedeRage),
    "SpectralFedeRage": _tail(methods.SpectralFedeRage),
    "AdaptiveFedeRage": _tail(methods.AdaptiveFedeRage),
    "ControlledFedeRage": _tail(methods.ControlledFedeRage),
    "Scaffold": _plain(methods.Scaffold),
    "CompressedScaffold": _plain(methods.CompressedScaffold),
    "ScaffPD": _plain(methods.ScaffPD),
    "Mifa": _plain(methods.Mifa),
    "FedVarp": _plain(methods.FedVarp),
    "ArrivalWeights": _around(methods.ArrivalWeights),
    "FedDisco": _around(methods.FedDisco),
    "Superquantile": _around(methods.Superquantile),
    "PowerOfChoice": _around(methods.PowerOfChoice),
    "AgnosticFL": _around(methods.AgnosticFL),
    "DRFA": _plain(methods.DRFA),
    "InverseProbability": _told(methods.InverseProbability),
    "HorvitzThompson": _told(methods.HorvitzThompson),
    "FedAvot": _told(methods.FedAvot),
    "AvailabilityAware": _told(methods.AvailabilityAware),
    "DroAdmm": _exact(methods.DroAdmm),
    "OneVsAllDro": _exact(methods.OneVsAllDro),
    "DpDroAdmm": Method(
        lambda scale, law: methods.DpDroAdmm.calibrated(BUDGET, MATRIX_ROUNDS, step=10.0 * scale), matrix=True
    ),
    "DpErmAdmm": Method(
        lambda scale, law: methods.DpErmAdmm.calibrated(BUDGET, MATRIX_ROUNDS, diameter=12.0 * scale), matrix=True
    ),
    "DpSgd": Method(lambda scale, law: methods.DpSgd.calibrated(BUDGET, MATRIX_ROUNDS, step=3.0 * scale), matrix=True),
}

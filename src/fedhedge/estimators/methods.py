"""The methods by their short names, made from the estimator's parameters."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from fedhedge import checks
from fedhedge.algorithms.base import Algorithm
from fedhedge.algorithms.dp_dro_admm import DpDroAdmm
from fedhedge.algorithms.dp_erm_admm import DpErmAdmm
from fedhedge.algorithms.dp_sgd import DpSgd
from fedhedge.algorithms.dro_admm import DroAdmm
from fedhedge.algorithms.one_vs_all_dro import OneVsAllDro
from fedhedge.algorithms.private import Private
from fedhedge.checks import InvalidInput
from fedhedge.privacy import EstimatedBounds, Privacy

METHODS: dict[str, type[Algorithm]] = {
    "dro": DroAdmm,
    "ova-dro": OneVsAllDro,
    "dp-dro": DpDroAdmm,
    "dp-erm": DpErmAdmm,
    "dp-sgd": DpSgd,
}
# Arguments that the estimator has parameters for; a method that lacks one leaves it aside.
SHARED = ("radius", "label_cost", "norm")
PRIVATE_ROUNDS, EXACT_ROUNDS = 50, 300
CALIBRATED = ("noise", "lambda_noise", "rounds")


def is_private(method: Any) -> bool:
    """Whether a method of this name adds noise; raises InvalidInput for an unknown name."""
    return issubclass(METHODS[checks.one_of("method", method, METHODS)], Private)


def rounds_of(method: Any, rounds: Any) -> int:
    """Rounds of a method, its own number for None; raises InvalidInput."""
    if rounds is None:
        return PRIVATE_ROUNDS if is_private(method) else EXACT_ROUNDS
    return checks.integer("rounds", rounds, low=1)


def build(parameters: Mapping[str, Any]) -> Algorithm:
    """The algorithm that the estimator's parameters describe, its noise calibrated to the privacy budget.

    Raises InvalidInput for a value outside its range, for a setting that the method does not have, and unless the
    method is private exactly where a budget is given.
    """
    name, privacy = parameters["method"], parameters["privacy"]
    private, rounds, made = is_private(name), rounds_of(name, parameters["rounds"]), METHODS[name]
    if privacy is not None and not isinstance(privacy, Privacy):
        raise InvalidInput("privacy", privacy, "fedhedge.Privacy(epsilon=..., delta=...), or None")
    if private and privacy is None:
        raise InvalidInput("privacy", None, f"fedhedge.Privacy(epsilon=..., delta=...): {name!r} is a private method")
    if privacy is not None and not private:
        hint = f"the private methods are {', '.join(other for other in METHODS if is_private(other))}"
        raise InvalidInput("privacy", privacy, f"None: {name!r} adds no noise and keeps no budget", hint)
    known = [field.name for field in dataclasses.fields(made)]  # type: ignore[arg-type]
    chosen = {key: parameters[key] for key in SHARED if key in known}
    if parameters["rho"] is not None:
        if "rho" not in known:
            raise InvalidInput("rho", parameters["rho"], f"None: {name!r} has no such penalty")
        chosen["rho"] = parameters["rho"]
    variant = parameters["variant"]
    if "variant" in known:
        chosen["variant"] = variant
    elif variant != "default":
        raise InvalidInput("variant", variant, f"default: {name!r} has no other")
    chosen |= _options(parameters["options"], [key for key in known if key not in {*SHARED, "rho", "variant"}])
    if not issubclass(made, Private):
        return made(**chosen)
    assert privacy is not None
    bounds = parameters["feature_bounds"]
    if isinstance(bounds, EstimatedBounds):
        try:
            privacy = bounds.remaining(privacy)
        except InvalidInput as error:
            raise error.inside("feature_bounds") if error.name == "share" else error from None
    accounting = "paper" if variant == "paper" else "exact"
    return made.calibrated(privacy, rounds, accounting=accounting, **chosen)  # type: ignore[arg-type]


def _options(given: Any, known: list[str]) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidInput("options", given, "a table of further arguments of the method")
    allowed = [key for key in known if key not in CALIBRATED]
    for key, value in given.items():
        if key not in allowed:
            raise InvalidInput(f"options.{key}", value, f"the keys {', '.join(allowed)}", checks.nearest(key, allowed))
    return dict(given)

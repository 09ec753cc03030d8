"""What a stored classifier says of itself must follow from its method, its budget and its bounds."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fedhedge import checks
from fedhedge.algorithms.base import Algorithm
from fedhedge.algorithms.private import Private
from fedhedge.estimators import bounds, methods, statements
from fedhedge.privacy import EstimatedBounds, Release

if TYPE_CHECKING:
    from fedhedge.estimators.classifier import FederatedDROClassifier

# Of numbers computed again, possibly on another machine.
_CLOSE = 1e-9


def check_types(*, label: Any, rounds: Any, sites: Any, names: Any) -> None:
    """Refuse entries of a file that are not what they stand for; raises ValueError."""
    checks.integer("rounds_done", rounds, low=1)
    if not isinstance(label, str):
        raise ValueError("the name of the label column is not a text")
    if not isinstance(sites, list) or not sites or len({*sites}) < len(sites):
        raise ValueError("the sites are not a list of different names")
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise ValueError("the names of the features are not a list of texts")


def check(model: FederatedDROClassifier, algorithm: Algorithm) -> None:
    """Compare the statements and bounds of a model read back with those that its parameters give; raises ValueError."""
    _check_bounds(model)
    private = isinstance(algorithm, Private)
    if (model.privacy_ is not None) != private:
        raise ValueError(f"{model.method!r} is {'' if private else 'not '}private, and the statements say otherwise")
    if model.n_iter_ > methods.rounds_of(model.method, model.rounds):
        raise ValueError("more rounds done than were asked for")
    if model.privacy_ is None:
        return
    assert isinstance(algorithm, Private)
    assert model.privacy is not None
    if tuple(model.privacy_) != model.sites_:
        raise ValueError("there is not one privacy statement for each site")
    samples = [statement.samples for statement in model.privacy_.values()]
    done = [model.n_iter_] * len(samples)
    declared = model.classes is not None
    expected = statements.state(
        algorithm, model.privacy, model.sites_, samples, done, model.bounds_, classes_declared=declared
    )
    for site, statement in model.privacy_.items():
        for field in dataclasses.fields(statement):
            if not _same(getattr(statement, field.name), getattr(expected[site], field.name)):
                raise ValueError(f"{field.name} in the privacy statement of site {site} does not follow from the model")


def _check_bounds(model: FederatedDROClassifier) -> None:
    given, found = model.feature_bounds, model.bounds_
    names = getattr(model, "feature_names_in_", None)
    origin = "data" if given is None or isinstance(given, str) else "declared"
    if isinstance(given, EstimatedBounds):
        origin = "estimated"
    if found.origin != origin:
        raise ValueError(f"the bounds are {origin}, and the file calls them {found.origin}")
    if origin == "data":
        return
    # No row is looked at where ranges are given.
    table = np.zeros((1, len(found.low)))
    if isinstance(given, EstimatedBounds):
        outer = bounds.resolve(given.outer, table, names)
        width = _CLOSE * (outer.high - outer.low)
        if ((found.low < outer.low - width) | (found.high > outer.high + width)).any():
            raise ValueError("the bounds lie outside the outer ranges")
        return
    declared = bounds.resolve(given, table, names)
    if not (np.array_equal(found.low, declared.low) and np.array_equal(found.high, declared.high)):
        raise ValueError("the bounds are not those that were declared")


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, tuple) and isinstance(second, tuple):
        return len(first) == len(second) and all(map(_same, first, second))
    if isinstance(first, Release) and isinstance(second, Release):
        return all(map(_same, dataclasses.astuple(first), dataclasses.astuple(second)))
    if isinstance(first, float) and isinstance(second, float | int):
        return math.isclose(first, second, rel_tol=_CLOSE)
    return bool(first == second)

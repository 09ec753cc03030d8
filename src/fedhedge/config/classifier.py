"""The configuration of a classifier over sites: a table for the estimator's arguments, and one for the budget."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedhedge.checks import InvalidInput, nearest
from fedhedge.config.read import override, read_toml
from fedhedge.config.tables import below, parameters, settle, table
from fedhedge.estimators import FederatedDROClassifier
from fedhedge.estimators.methods import is_private
from fedhedge.privacy import EstimatedBounds, Privacy

CLASSIFIER, PRIVACY, BOUNDS = "classifier", "privacy", "estimated_bounds"
ARGUMENTS = parameters(FederatedDROClassifier, PRIVACY)
BUDGET, ESTIMATE = parameters(Privacy), parameters(EstimatedBounds)
_TABLES = {CLASSIFIER: ARGUMENTS, PRIVACY: BUDGET, BOUNDS: ESTIMATE}


def load_classifier(path: str | Path | None, overrides: Sequence[str] = ()) -> FederatedDROClassifier:
    """The classifier that a TOML file describes, after single keys were set ("classifier.rounds=50", in order).

    [classifier] holds the arguments of `FederatedDROClassifier`, [privacy] those of `Privacy`; a method without a
    budget has no table [privacy]. [estimated_bounds] holds those of `fedhedge.privacy.EstimatedBounds`, in place of
    classifier.feature_bounds. None stands for an empty file.
    Raises InvalidInput that names the key in full, the value received, and what is allowed.
    """
    content: dict[str, Any] = {} if path is None else read_toml(Path(path))
    override(content, overrides)
    elsewhere = {key: f"did you mean {where}.{key}?" for where, known in _TABLES.items() for key in known}
    for key, value in content.items():
        if key not in _TABLES:
            hint = elsewhere.get(key) or nearest(key, _TABLES)
            raise InvalidInput(key, value, "the tables " + ", ".join(f"[{name}]" for name in _TABLES), hint)
    chosen = table(content.get(CLASSIFIER, {}), CLASSIFIER, 'method = "dro"')
    values = settle(chosen, ARGUMENTS, CLASSIFIER, {}, dict.fromkeys(BUDGET, "a key of the table [privacy]"))
    with below(CLASSIFIER):
        private = is_private(values["method"])
    if private and PRIVACY not in content:
        raise InvalidInput(PRIVACY, None, f"a table [privacy] with epsilon and delta: {values['method']!r} is private")
    if not private and PRIVACY in content:
        raise InvalidInput(PRIVACY, content[PRIVACY], f"no such table: {values['method']!r} adds no noise")
    if BOUNDS in content:
        if values["feature_bounds"] is not None:
            hint = f"bounds are declared by {CLASSIFIER}.feature_bounds already"
            raise InvalidInput(BOUNDS, content[BOUNDS], "no such table", hint)
        given = settle(table(content[BOUNDS], BOUNDS, "outer = [0.0, 100.0]"), ESTIMATE, BOUNDS, {}, {})
        with below(BOUNDS):
            values["feature_bounds"] = EstimatedBounds(**given)
    budget = _budget(content[PRIVACY]) if private else None
    if budget is not None and BOUNDS in content:
        try:
            values["feature_bounds"].remaining(budget)
        except InvalidInput as error:
            raise error.inside(BOUNDS) if error.name == "share" else error from None
    made = FederatedDROClassifier(**values, privacy=budget)
    with below(CLASSIFIER):
        made.algorithm()
    return made


def _budget(content: Any) -> Privacy:
    given = table(content, PRIVACY, "epsilon = 3.0 and delta = 1e-6")
    values = settle(given, BUDGET, PRIVACY, {}, {})
    try:
        return Privacy(**values)
    except InvalidInput as error:
        # A partial budget is a complaint about the table itself.
        raise error if error.name == PRIVACY else error.inside(PRIVACY) from None

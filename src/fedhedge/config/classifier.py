"""The configuration of a classifier over sites: a table for the estimator's arguments, and one for the budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedhedge.config.read import override, read_toml
from fedhedge.config.tables import below, parameters, settle, table
from fedhedge.estimators import FederatedDROClassifier
from fedhedge.privacy import Privacy

CLASSIFIER, PRIVACY = "classifier", "privacy"
ARGUMENTS = parameters(FederatedDROClassifier, PRIVACY)
BUDGET = parameters(Privacy)


def load_classifier(path: str | Path | None, overrides: Sequence[str] = ()) -> FederatedDROClassifier:
    """The classifier that a TOML file describes, after single keys were set ("classifier.rounds=50", in order).

    [classifier] holds the arguments of `FederatedDROClassifier`, [privacy] those of `Privacy`; a method without a
    budget has no table [privacy]. None stands for an empty file.
    Raises InvalidInput that names the key in full, the value received, and what is allowed.
    """
    content: dict[str, Any] = {} if path is None else read_toml(Path(path))
    override(content, overrides)
    return classifier(content)


def classifier(content: Mapping[str, Any]) -> FederatedDROClassifier:
    """The classifier of the tables of a file, checked; see `load_classifier`."""
    elsewhere = {key: f"did you mean {where}.{key}?" for where, known in _TABLES.items() for key in known}
    for key, value in content.items():
        if key not in _TABLES:
            settle({key: value}, {}, "", {}, elsewhere)
    chosen = table(content.get(CLASSIFIER, {}), CLASSIFIER, 'method = "dro"')
    values = settle(chosen, ARGUMENTS, CLASSIFIER, {}, dict.fromkeys(BUDGET, "a key of the table privacy"))
    privacy = None
    if PRIVACY in content:
        budget = table(content[PRIVACY], PRIVACY, "epsilon = 3.0 and delta = 1e-6")
        with below(PRIVACY):
            privacy = Privacy(**settle(budget, BUDGET, "", {}, {}))
    made = FederatedDROClassifier(**values, privacy=privacy)
    with below(CLASSIFIER):
        made.algorithm()
    return made


_TABLES = {CLASSIFIER: ARGUMENTS, PRIVACY: BUDGET}

"""A fitted classifier as a folder: model.json, arrays.npz and privacy.txt; nothing is pickled."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

import fedhedge
from fedhedge import files
from fedhedge.checks import InvalidInput
from fedhedge.estimators.bounds import Bounds
from fedhedge.privacy import EstimatedBounds, Privacy, Release, Statement

if TYPE_CHECKING:
    from fedhedge.estimators.classifier import FederatedDROClassifier

Classifier = TypeVar("Classifier", bound="FederatedDROClassifier")
FORMAT = 1
MODEL, ARRAYS, STATEMENTS = "model.json", "arrays.npz", "privacy.txt"
NO_PRIVACY = "No privacy: this method adds no noise, and the model may reveal rows that it was trained on.\n"
# Parameters that do not go into the file as they are: a seed would let a reader take the noise off.
APART = ("privacy", "random_state")


def write(folder: Path, model: FederatedDROClassifier) -> None:
    """Write a model; model.json comes last and names the arrays by their checksum, so that a part is never read."""
    privacy = model.privacy_
    parameters = {name: _plain(value) for name, value in model.get_params().items() if name not in APART}
    content = {
        "format": FORMAT,
        "version": fedhedge.__version__,
        "parameters": parameters,
        "requested": None if model.privacy is None else dataclasses.asdict(model.privacy),
        "label": model.label_name_,
        "classes": model.classes_.tolist(),
        "classes_dtype": model.classes_.dtype.str,
        "feature_names": _plain(getattr(model, "feature_names_in_", None)),
        "bounds": model.bounds_.origin,
        "sites": list(model.sites_),
        "rounds_done": model.n_iter_,
        "privacy": None if privacy is None else [_stated(site, privacy[site]) for site in privacy],
    }
    arrays = {
        "coef": model.coef_,
        "intercept": model.intercept_,
        "low": model.bounds_.low,
        "high": model.bounds_.high,
    }
    if model.lambda_ is not None:
        arrays["lambda"] = model.lambda_
    files.write_arrays(folder / ARRAYS, arrays)
    files.write_text(folder / STATEMENTS, text(privacy))
    files.write_json(folder / MODEL, content | {"arrays": _checksum(folder / ARRAYS)})


def read(folder: Path, kind: type[Classifier]) -> Classifier:
    """What `write` wrote; raises InvalidInput when it is damaged or something else."""
    try:
        content = json.loads((folder / MODEL).read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f"{MODEL} is not of format {FORMAT}")
        if content["arrays"] != _checksum(folder / ARRAYS):
            raise ValueError(f"{ARRAYS} is not the file that {MODEL} was written with")
        return _rebuild(kind, content, files.read_arrays(folder / ARRAYS))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        allowed = "a folder that `save` or `fedhedge fit` wrote"
        raise InvalidInput("model folder", str(folder), allowed, reason) from None


def text(privacy: Mapping[Any, Statement] | None) -> str:
    """The statements of all sites, to be read by people."""
    return NO_PRIVACY if privacy is None else "\n\n".join(map(str, privacy.values())) + "\n"


def _rebuild(kind: type[Classifier], content: dict[str, Any], arrays: dict[str, np.ndarray]) -> Classifier:
    parameters = content["parameters"]
    if parameters["label_cost"] == "inf":
        parameters["label_cost"] = math.inf
    if content["bounds"] == "estimated":
        parameters["feature_bounds"] = EstimatedBounds(**parameters["feature_bounds"])
    requested = None if content["requested"] is None else Privacy(**content["requested"])
    model = kind(**parameters, privacy=requested)
    model.algorithm()
    model.classes_ = np.array(content["classes"], dtype=np.dtype(content["classes_dtype"]))
    names = content["feature_names"]
    features = len(arrays["low"])
    shapes = {"coef": (len(model.classes_), features), "intercept": (len(model.classes_),), "low": (features,)}
    shapes |= {"high": (features,), "lambda": (len(content["sites"]),)}
    for name, array in arrays.items():
        if array.shape != shapes[name] or array.dtype != np.float64 or not np.isfinite(array).all():
            raise ValueError(f"{name} in {ARRAYS} is not an array of {shapes[name]} finite numbers")
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
        if model.feature_names_in_.shape != (features,):
            raise ValueError(f"{MODEL} names {len(names)} features where {ARRAYS} has {features}")
    model.n_features_in_ = features
    model.coef_, model.intercept_, model.lambda_ = arrays["coef"], arrays["intercept"], arrays.get("lambda")
    model.bounds_ = Bounds(arrays["low"], arrays["high"], content["bounds"], _once(content["privacy"]))
    model.label_name_, model.sites_ = content["label"], tuple(content["sites"])
    model.n_iter_ = content["rounds_done"]
    model.privacy_ = None if content["privacy"] is None else dict(map(_statement, content["privacy"]))
    return model


def _plain(value: Any) -> Any:
    """A parameter as JSON holds it: lists for arrays, the text "inf" for infinity."""
    if isinstance(value, EstimatedBounds):
        return _plain(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    return "inf" if value == math.inf else value


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _stated(site: Any, statement: Statement) -> dict[str, Any]:
    return {"key": site, "statement": statement.as_dict(), "also_not_covered": list(statement.also_not_covered)}


def _statement(stored: Mapping[str, Any]) -> tuple[Any, Statement]:
    """A statement read back; raises ValueError unless its numbers follow from its releases."""
    said = stored["statement"]
    found = Statement(
        site=said["site"],
        samples=said["samples"],
        rounds=said["rounds"],
        each_round=_releases(said["each_round"]),
        delta=said["delta"],
        requested=None if said["requested"] is None else Privacy(**said["requested"]),
        once=_releases(said["once"]),
        bounds=said["bounds"],
        secure_noise=said["secure_noise"],
        also_not_covered=tuple(stored["also_not_covered"]),
    )
    if not math.isclose(found.epsilon, said["epsilon"], rel_tol=1e-9):
        raise ValueError(f"the epsilon stated for site {found.site} does not follow from its releases")
    return stored["key"], found


def _once(stored: Any) -> tuple[Release, ...]:
    """What every site released once, alike for all."""
    return () if stored is None else _releases(stored[0]["statement"]["once"])


def _releases(stored: Any) -> tuple[Release, ...]:
    names = [field.name for field in dataclasses.fields(Release)]
    return tuple(Release(**{name: release[name] for name in names}) for release in stored)

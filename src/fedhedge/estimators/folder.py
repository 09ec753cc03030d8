"""A fitted classifier as a folder: model.json, its arrays, and privacy.txt; nothing is pickled."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import math
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

import fedhedge
from fedhedge import files
from fedhedge.checks import InvalidInput
from fedhedge.estimators import agreement
from fedhedge.estimators.bounds import Bounds, describe, histogram_release
from fedhedge.estimators.statements import text
from fedhedge.privacy import EstimatedBounds, Privacy, Release, Statement

if TYPE_CHECKING:
    from fedhedge.estimators.classifier import FederatedDROClassifier

Classifier = TypeVar("Classifier", bound="FederatedDROClassifier")
FORMAT = 1
MODEL, STATEMENTS = "model.json", "privacy.txt"
# Parameters that do not go into the file as they are: a seed would let a reader take the noise off.
APART = ("privacy", "random_state")


def write(folder: Path, model: FederatedDROClassifier) -> None:
    """Write a model in place of what the folder holds; a kill at any moment leaves the old model or the new one.

    The arrays lie in a file named by their content, so that replacing model.json is what replaces the model.
    privacy.txt, which nothing reads back, is missing meanwhile rather than of another model.
    """
    privacy = model.privacy_
    arrays = {
        "coef": model.coef_,
        "intercept": model.intercept_,
        "low": model.bounds_.low,
        "high": model.bounds_.high,
    }
    if model.lambda_ is not None:
        arrays["lambda"] = model.lambda_
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    stored = buffer.getvalue()
    content = {
        "format": FORMAT,
        "version": fedhedge.__version__,
        "parameters": {name: _plain(value) for name, value in model.get_params().items() if name not in APART},
        "requested": None if model.privacy is None else dataclasses.asdict(model.privacy),
        "label": model.label_name_,
        "classes": model.classes_.tolist(),
        "classes_dtype": model.classes_.dtype.str,
        "feature_names": _plain(getattr(model, "feature_names_in_", None)),
        "bounds": model.bounds_.origin,
        "sites": list(model.sites_),
        "rounds_done": model.n_iter_,
        "privacy": None if privacy is None else [_stated(site, privacy[site]) for site in privacy],
        "arrays": hashlib.sha256(stored).hexdigest(),
    }
    path = _arrays(folder, content)
    files.write_bytes(path, stored)
    (folder / STATEMENTS).unlink(missing_ok=True)
    files.write_json(folder / MODEL, content)
    files.write_text(folder / STATEMENTS, text(privacy))
    for other in folder.glob("arrays-*.npz"):
        if other != path:
            other.unlink(missing_ok=True)


def read(folder: Path, kind: type[Classifier]) -> Classifier:
    """What `write` wrote; raises InvalidInput when it is damaged, contradicts itself, or is something else."""
    try:
        content = json.loads((folder / MODEL).read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f"{MODEL} is not of format {FORMAT}")
        path = _arrays(folder, content)
        if content["arrays"] != hashlib.sha256(path.read_bytes()).hexdigest():
            raise ValueError(f"{path.name} is not the file that {MODEL} was written with")
        return _rebuild(kind, content, files.read_arrays(path))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, EOFError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
    except (RecursionError, MemoryError, zipfile.BadZipFile) as error:
        reason = f"{type(error).__name__}: {error}"
    raise InvalidInput("model folder", str(folder), "a folder that `save` or `fedhedge fit` wrote", reason)


def _arrays(folder: Path, content: Mapping[str, Any]) -> Path:
    checksum = content["arrays"]
    if not isinstance(checksum, str) or not re.fullmatch("[0-9a-f]{64}", checksum):
        raise ValueError(f"arrays in {MODEL} is not the checksum of a file")
    return folder / f"arrays-{checksum[:16]}.npz"


def _rebuild(kind: type[Classifier], content: dict[str, Any], arrays: dict[str, np.ndarray]) -> Classifier:
    parameters = content["parameters"]
    if parameters["label_cost"] == "inf":
        parameters["label_cost"] = math.inf
    if content["bounds"] == "estimated":
        parameters["feature_bounds"] = EstimatedBounds(**parameters["feature_bounds"])
    requested = None if content["requested"] is None else Privacy(**content["requested"])
    model = kind(**parameters, privacy=requested)
    algorithm = model.algorithm()
    model.classes_ = np.array(content["classes"], dtype=np.dtype(content["classes_dtype"]))
    model.label_name_, model.n_iter_ = content["label"], content["rounds_done"]
    names, sites = content["feature_names"], content["sites"]
    agreement.check_types(label=model.label_name_, rounds=model.n_iter_, sites=sites, names=names)
    model.sites_ = tuple(sites)
    features = len(arrays["low"])
    shapes = {"coef": (len(model.classes_), features), "intercept": (len(model.classes_),), "low": (features,)}
    shapes |= {"high": (features,), "lambda": (len(model.sites_),)}
    for name, array in arrays.items():
        if array.shape != shapes[name] or array.dtype != np.float64 or not np.isfinite(array).all():
            raise ValueError(f"{name} among the arrays is not an array of {shapes[name]} finite numbers")
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
        if model.feature_names_in_.shape != (features,):
            raise ValueError(f"{MODEL} names {len(names)} features where the arrays have {features}")
    model.n_features_in_ = features
    model.coef_, model.intercept_, model.lambda_ = arrays["coef"], arrays["intercept"], arrays.get("lambda")
    low, high = arrays["low"], arrays["high"]
    found: tuple[str, ...] = ()
    once: tuple[Release, ...] = ()
    if isinstance(model.feature_bounds, EstimatedBounds):
        assert requested is not None
        found = describe(model.feature_bounds, low, high, names)
        once = (histogram_release(model.feature_bounds, requested, features),)
    model.bounds_ = Bounds(low, high, content["bounds"], once, found)
    stored = content["privacy"]
    model.privacy_ = None if stored is None else dict(map(_statement, stored))
    agreement.check(model, algorithm)
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
        bounds_found=tuple(said["bounds_found"]),
        secure_noise=said["secure_noise"],
        also_not_covered=tuple(stored["also_not_covered"]),
    )
    for name in ("mu", "epsilon", "epsilon_paper", "epsilon_round"):
        if not math.isclose(getattr(found, name), said[name], rel_tol=1e-9):
            raise ValueError(f"the {name} stated for site {found.site} does not follow from its releases")
    return stored["key"], found


def _releases(stored: Any) -> tuple[Release, ...]:
    names = [field.name for field in dataclasses.fields(Release)]
    return tuple(Release(**{name: release[name] for name in names}) for release in stored)

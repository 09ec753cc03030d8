"""The result of a simulation."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from fedhedge import checks
from fedhedge.algorithms.base import Tree
from fedhedge.models import ARCHITECTURES, Model
from fedhedge.models.base import Functional
from fedhedge.simulation import checkpoint
from fedhedge.simulation.arithmetic import arithmetic
from fedhedge.simulation.history import OVER_ALL, from_arrays, to_arrays

RUN_NAME = "run.npz"


@dataclasses.dataclass(frozen=True, repr=False)
class Run:
    """What a simulation leaves: two models, what was measured, who took part, and the settings behind it.

    params: the last server model. average_params: the mean of the server models over rounds (the one that theory
    speaks of). history: round, client (-1 = over all rows), split, metric, value; metrics of the averaged model
    start with "average_". participation: round, client, one row for each client that got through, trained (where the
    method selects) and whose upload was not lost. settings: all that the result depends on. costs: scalars per round:
    uplink (of an upload) and downlink (in all) of a client that trains, probe_uplink (of a report) and probe_downlink
    (before it, part of downlink) of one that gets through to a first phase; and stored scalars. counts: rounds, uploads
    that arrived, those left out or lost, clients in first phases (probes) and reports left out there.
    names, feature_names: of clients and columns. warnings: what the method said could not work. version: of the
    package that ran it.
    """

    model: Functional
    params: Tree
    average_params: Tree
    history: pd.DataFrame
    participation: pd.DataFrame
    settings: dict[str, Any]
    costs: dict[str, int]
    counts: dict[str, int]
    classes: tuple[Any, ...]
    feature_shape: tuple[int, ...]
    names: tuple[str, ...]
    feature_names: tuple[str, ...]
    warnings: tuple[str, ...]
    version: str
    inclusion_probabilities: np.ndarray
    weights: np.ndarray

    def __repr__(self) -> str:
        method, data = self.settings["algorithm"]["name"], self.settings["data"].get("source", "data")
        rounds, seed = self.counts["rounds"], self.settings["seed"]
        return f"Run({method} on {data}, {len(self.names)} clients, {rounds} rounds, seed {seed})"

    def predict(self, X: Any, *, average: bool = False) -> np.ndarray:
        """Predicted class labels [n] of features X [n, ...], by the last model or the averaged one.

        X is scaled as the training rows were given, before any scaling of ours: `Clients.scaled` and the like are
        undone by nothing here. The columns of a DataFrame are found by their names, in any order.
        Raises InvalidInput when the features have another shape or other columns than those trained on, are not
        finite numbers, or the model cannot predict.
        """
        if isinstance(X, pd.DataFrame) and self.feature_names:
            missing = [name for name in self.feature_names if name not in X.columns]
            if missing:
                raise checks.InvalidInput("X", list(X.columns), f"the columns {', '.join(self.feature_names)}")
            X = X[list(self.feature_names)]
        features = np.asarray(X)
        if features.dtype.kind not in "biuf":
            raise checks.InvalidInput("X", str(features.dtype), "an array of numbers")
        if features.shape[1:] != self.feature_shape:
            raise checks.InvalidInput("X", features.shape, f"an array of shape [n, {self._shape()}]")
        if not np.isfinite(features).all():
            raise checks.InvalidInput("X", float(features[~np.isfinite(features)].flat[0]), "finite numbers")
        if self.model.predict is None:
            raise checks.InvalidInput("model", "a Functional without predict", "a Functional with predict")
        params = self.average_params if average else self.params
        precision = str(jax.tree.leaves(params)[0].dtype)
        with arithmetic(precision):
            found = np.asarray(self.model.predict(params, jnp.asarray(features, precision)))
        return np.asarray(self.classes)[found] if self.classes else found

    def clients(self, metric: str = "accuracy", split: str = "test", round: int | None = None) -> pd.Series:
        """A metric of each client at one round (default: the last one evaluated), indexed by client."""
        rows = self.history[
            (self.history.metric == metric) & (self.history.split == split) & (self.history.client >= 0)
        ]
        at = rows["round"].max() if round is None else round
        return rows[rows["round"] == at].set_index("client")["value"]

    def summary(self) -> dict[str, Any]:
        """Settings, costs, counts and the last metrics as plain values."""
        last = self.history[self.history.client == OVER_ALL].drop_duplicates(["split", "metric"], keep="last")
        names = last["split"] + "/" + last["metric"]
        metrics = dict(zip(names, last["value"].astype(float), strict=True))
        return {"settings": self.settings, "costs": self.costs, "counts": self.counts, "metrics": metrics}

    def save(self, path: str | Path) -> None:
        """Write the run to one file, atomically and without pickle; `Run.load` reads it."""
        extra = {
            "participation/round": self.participation["round"].to_numpy(),
            "participation/client": self.participation["client"].to_numpy(),
            "law/inclusion": self.inclusion_probabilities,
            "law/weights": self.weights,
        }
        models = checkpoint.flatten(self.params, "params") | checkpoint.flatten(self.average_params, "average")
        about = {
            "settings": self.settings,
            "costs": self.costs,
            "counts": self.counts,
            "classes": list(self.classes),
            "feature_shape": list(self.feature_shape),
            "names": list(self.names),
            "feature_names": list(self.feature_names),
            "warnings": list(self.warnings),
            "version": self.version,
        }
        checkpoint.write(Path(path), about, models | to_arrays(self.history) | extra)

    @classmethod
    def load(cls, path: str | Path, model: Model | None = None) -> Run:
        """Read a run that `save` wrote; a run of your own functions needs that `model` again.

        path: the file, or the folder of a finished `fedhedge run`. Raises FileNotFoundError, or CheckpointMismatch when
        the file is damaged or holds another model.
        """
        path = Path(path)
        about, arrays = checkpoint.read(path / RUN_NAME if path.is_dir() else path)
        shape, classes = tuple(about["feature_shape"]), tuple(about["classes"])
        if model is None:
            described = dict(about["settings"]["model"])
            name = described.pop("name")
            if name not in ARCHITECTURES:
                raise checks.InvalidInput(
                    "model", None, f"the Functional that the run was made with (loss {described})"
                )
            arguments = {key: tuple(value) if isinstance(value, list) else value for key, value in described.items()}
            model = ARCHITECTURES[name](**arguments)
        model = model.build(shape, len(classes))
        like = jax.eval_shape(model.init, jax.random.key(0))
        return cls(
            model,
            checkpoint.restore(like, arrays, "params"),
            checkpoint.restore(like, arrays, "average"),
            from_arrays(arrays),
            pd.DataFrame({name: arrays[f"participation/{name}"] for name in ("round", "client")}),
            about["settings"],
            about["costs"],
            about["counts"],
            classes,
            shape,
            tuple(about["names"]),
            tuple(about["feature_names"]),
            tuple(about["warnings"]),
            about["version"],
            arrays["law/inclusion"],
            arrays["law/weights"],
        )

    def _shape(self) -> str:
        return ", ".join(str(extent) for extent in self.feature_shape)

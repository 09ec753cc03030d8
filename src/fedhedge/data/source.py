"""A data set before it is dealt to clients."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedhedge import checks, streams
from fedhedge.checks import InvalidInput
from fedhedge.data import arrays, splits
from fedhedge.data.clients import Clients
from fedhedge.data.partitioners.base import Partitioner, deal
from fedhedge.data.scaling import Scaling

SCALINGS = ("default", "standard", "unit", "none")


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Rows of one source with their class labels.

    `features` is uint8, float32 or float64 [n, ...shape of a row], images as [n, height, width, channels]; `labels`
    is a class index (int32 [n]) into `classes`. `test` marks the rows of an official test split (bool [n]), None when
    there is none. `scaling` is the source's own map to floats, None to standardise; `bounds` are the declared ends of
    every feature, None when there are none. `description` holds what else is to be said of the source, in JSON terms.
    Raises InvalidInput when the arrays do not fit together.
    """

    name: str
    features: np.ndarray
    labels: np.ndarray
    classes: tuple[Any, ...] | None = None
    feature_names: tuple[str, ...] = ()
    test: np.ndarray | None = None
    scaling: Scaling | None = None
    bounds: tuple[float, float] | None = None
    description: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        features = np.asarray(self.features)
        floats = arrays.features(features[:1])
        kind = np.uint8 if features.dtype == np.uint8 else floats.dtype
        set_field(self, "features", features.astype(kind, order="C", copy=False))
        labels, classes = arrays.targets(self.labels, self.classes, len(features))
        if not classes:
            raise InvalidInput("labels", "real targets", "class indices", "use Clients.from_arrays for a regression")
        set_field(self, "labels", labels)
        set_field(self, "classes", classes)
        if self.test is not None:
            arrays.length("test", self.test, len(features))
            set_field(self, "test", np.asarray(self.test, bool))

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.features.shape[1:]))
        test = f", {self.test.sum()} of them for testing" if self.test is not None else ""
        return f"Dataset({self.name!r}: {len(self)} rows{test}; features: {shape}; {self.number_of_classes} classes)"

    @property
    def number_of_classes(self) -> int:
        """How many classes there are, whether or not every one has rows."""
        return len(self.classes or ())

    def partition(
        self,
        partitioner: Partitioner,
        *,
        seed: int = 0,
        validation: float = 0.1,
        test: float = 0.2,
        scaling: str = "default",
    ) -> Clients:
        """Deal the rows to clients.

        An official test split is dealt by the same shares of each class as the rest, so that a client's test rows
        have the class mix of its training rows, and `test` is not used. Otherwise `test` is the fraction of each
        client's rows kept for testing; `validation` is taken from what is not for testing.

        `scaling`: "default" is the source's own (published constants of images, else "standard"); "standard" is mean
        0 and standard deviation 1 over all training rows; "unit" brings every feature to [0, 1], by the declared
        bounds when there are any, else by the range of the training rows; "none" leaves the numbers as they are.

        Raises InvalidInput when the partitioner does not suit the source or leaves a client nothing to train on.
        """
        checks.one_of("scaling", scaling, SCALINGS)
        streams.check_seed(seed)
        if not isinstance(partitioner, Partitioner):
            raise InvalidInput("partitioner", partitioner, "a partitioner such as ByLabel(clients=30)")
        validation, test = splits.check_fractions(validation, test)
        rng = streams.generator(seed, streams.Purpose.PARTITION)
        official = np.zeros(len(self), bool) if self.test is None else self.test
        open_labels = self.labels[~official]
        shares = partitioner.shares(np.bincount(open_labels, minlength=self.number_of_classes), rng)
        client = np.empty(len(self), np.int32)
        client[~official] = deal(open_labels, shares, rng)
        client[official] = deal(self.labels[official], shares, rng)
        _check_everyone_trains(client[~official], partitioner.clients)
        split = np.full(len(self), splits.TEST, np.int8)
        held_out = 0.0 if official.any() else test
        split[~official] = splits.draw(open_labels, client[~official], validation, held_out, seed)

        order = np.lexsort((client, split))
        fixed = self._fixed_scaling(scaling)
        clients = Clients(
            arrays.lock((fixed or Scaling.none())(self.features[order])),
            arrays.lock(self.labels[order]),
            arrays.lock(client[order]),
            arrays.lock(split[order]),
            names=tuple(f"client {i}" for i in range(partitioner.clients)),
            classes=self.classes,
            feature_names=self.feature_names,
            description={
                "source": self.name,
                **self.description,
                "partition": partitioner.as_dict(),
                "splits": {"validation": validation, "test": "official" if official.any() else test, "seed": seed},
                "scaling": (fixed or Scaling.none()).as_dict(),
            },
        )
        if fixed is not None:
            return clients
        fit = Scaling.unit if scaling == "unit" else Scaling.standard
        return clients.scaled(fit(clients.rows("train")[0]))

    def _fixed_scaling(self, scaling: str) -> Scaling | None:
        """The map known before any row is dealt; None when it is to be fitted to the training rows."""
        if scaling == "none":
            return Scaling.none()
        if scaling == "unit" and self.bounds is not None:
            return Scaling.from_bounds(*self.bounds)
        return self.scaling if scaling == "default" else None


def _check_everyone_trains(client: np.ndarray, clients: int) -> None:
    counts = np.bincount(client, minlength=clients)
    if (counts == 0).any():
        hint = f"client {int(counts.argmin())} gets none of the {len(client)} rows"
        allowed = "so few that each gets a row to train on"
        raise InvalidInput("clients", clients, allowed, hint)

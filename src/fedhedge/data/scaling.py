"""Affine scaling of features, and how to fit it to training rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

_CHUNK = 4096


@dataclass(frozen=True, eq=False)
class Scaling:
    """The map x -> (x - shift) / scale, with `shift` and `scale` broadcast over the last axes of the rows.

    `kind` says where the constants come from: "published", "standard", "unit" or "none".
    """

    kind: str
    shift: np.ndarray
    scale: np.ndarray

    @classmethod
    def none(cls) -> Scaling:
        """Features as they are."""
        return cls("none", np.zeros(()), np.ones(()))

    @classmethod
    def pixels(cls, mean: tuple[float, ...], sd: tuple[float, ...]) -> Scaling:
        """Bytes to (x / 255 - mean) / sd, one mean and sd for each channel."""
        return cls("published", 255.0 * np.array(mean), 255.0 * np.array(sd))

    @classmethod
    def from_bounds(cls, low: float, high: float) -> Scaling:
        """The interval [low, high] to [0, 1]."""
        return cls("unit", np.array(float(low)), np.array(float(high) - float(low)))

    @classmethod
    def standard(cls, rows: np.ndarray) -> Scaling:
        """Mean 0 and standard deviation 1 (divisor n) over `rows`; columns that never change are left alone."""
        mean = rows.mean(axis=0, dtype=np.float64)
        squares = np.zeros(mean.shape)
        for start in range(0, len(rows), _CHUNK):
            squares += ((rows[start : start + _CHUNK] - mean) ** 2).sum(axis=0, dtype=np.float64)
        varies = rows.max(axis=0) > rows.min(axis=0)
        return cls("standard", np.where(varies, mean, 0.0), np.where(varies, np.sqrt(squares / len(rows)), 1.0))

    @classmethod
    def unit(cls, rows: np.ndarray) -> Scaling:
        """Least value 0 and greatest value 1 over `rows`; columns that never change are left alone."""
        low, high = rows.min(axis=0).astype(np.float64), rows.max(axis=0).astype(np.float64)
        varies = high > low
        return cls("unit", np.where(varies, low, 0.0), np.where(varies, high - low, 1.0))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Scaling:
        """Read back what `as_dict` wrote."""
        return cls(str(content["kind"]), np.asarray(content["shift"], float), np.asarray(content["scale"], float))

    def as_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, fit for JSON."""
        return {"kind": self.kind, "shift": self.shift.tolist(), "scale": self.scale.tolist()}

    def after(self, first: Scaling) -> Scaling:
        """The one map that does `first` and then this one."""
        return Scaling(self.kind, first.shift + first.scale * self.shift, first.scale * self.scale)

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Scaled copy of `features`: float32 from bytes or float32, else float64."""
        scaled = as_floats(features, copy=True)
        scaled -= self.shift.astype(scaled.dtype)
        scaled /= self.scale.astype(scaled.dtype)
        return scaled


def as_floats(features: np.ndarray, *, copy: bool = False) -> np.ndarray:
    """Features as float32 when they are bytes or float32, else as float64."""
    kind = np.float32 if features.dtype in (np.uint8, np.float32) else np.float64
    return features.astype(kind, order="C", copy=copy)

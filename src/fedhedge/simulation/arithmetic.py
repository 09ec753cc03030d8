"""Floating-point arithmetic of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax


@contextmanager
def arithmetic(precision: str) -> Iterator[None]:
    """Within: JAX computes in "float32" or "float64", whatever the process has chosen for itself."""
    with jax.enable_x64(precision == "float64"):
        yield

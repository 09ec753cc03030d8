"""Checkpoints: one file, written atomically, without pickle, refused for another configuration."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import jax
import numpy as np

from fedhedge import files
from fedhedge.algorithms.base import Tree

FORMAT = 1


class CheckpointMismatch(ValueError):
    """A checkpoint that belongs to another configuration; the message names each key that differs."""


def flatten(tree: Tree, prefix: str) -> dict[str, np.ndarray]:
    """Named arrays of a tree; the names are the paths of its leaves."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {prefix + _path(path): np.asarray(leaf) for path, leaf in leaves}


def restore(like: Tree, arrays: dict[str, np.ndarray], prefix: str) -> Tree:
    """The tree of the structure of `like` whose `flatten` these arrays hold, on the host.

    Raises CheckpointMismatch when a leaf is missing or has another shape.
    """
    leaves, structure = jax.tree_util.tree_flatten_with_path(like)
    found = []
    for path, leaf in leaves:
        name = prefix + _path(path)
        if name not in arrays or arrays[name].shape != np.shape(leaf):
            shape = arrays[name].shape if name in arrays else "absent"
            raise CheckpointMismatch(f"{name}: expected an array of shape {np.shape(leaf)}, found {shape}")
        found.append(arrays[name])
    return jax.tree_util.tree_unflatten(structure, found)


def write(path: Path, settings: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write arrays beside the settings that they belong to, in one atomic step."""
    meta = json.dumps({"format": FORMAT, "settings": settings}, sort_keys=True, allow_nan=False)
    files.write_arrays(path, arrays | {"meta": np.frombuffer(meta.encode(), np.uint8)})


def read(path: Path, settings: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """(settings, arrays) of a file that `write` made.

    Raises CheckpointMismatch naming each differing key when `settings` are given and differ, or when the file is
    no checkpoint of this format.
    """
    try:
        arrays = files.read_arrays(path)
        meta = json.loads(arrays.pop("meta").tobytes())
        if meta["format"] != FORMAT:
            raise ValueError(f"format {meta['format']}")
    except (KeyError, ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise CheckpointMismatch(f"{path}: not a file that this version can read ({error})") from error
    if settings is not None:
        wanted = json.loads(json.dumps(settings))
        lines = differences(meta["settings"], wanted)
        if lines:
            raise CheckpointMismatch(
                f"{path} belongs to another configuration: "
                + "; ".join(lines)
                + " (take another folder, or remove this file to start anew)"
            )
    return meta["settings"], arrays


def differences(there: Any, here: Any, name: str = "") -> list[str]:
    """One line for each key whose value differs between two nested settings."""
    if isinstance(there, dict) and isinstance(here, dict):
        lines = []
        for key in sorted(there.keys() | here.keys()):
            below = f"{name}.{key}" if name else key
            lines += differences(there.get(key), here.get(key), below)
        return lines
    return [] if there == here else [f"{name} is {_short(there)} there and {_short(here)} here"]


def _short(value: Any) -> str:
    shown = json.dumps(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _path(path: tuple[Any, ...]) -> str:
    return "".join(f"/{getattr(key, 'key', getattr(key, 'name', getattr(key, 'idx', key)))}" for key in path)

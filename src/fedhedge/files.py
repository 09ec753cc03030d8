"""Atomic files: a reader sees the old content or the new one, never a part."""

from __future__ import annotations

import io
import json
import math
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to `path` by way of a temporary file in the same folder and one atomic rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_text(path: Path, content: str) -> None:
    """Write text as UTF-8, atomically."""
    write_bytes(path, content.encode())


def write_json(path: Path, content: Any) -> None:
    """Write JSON with sorted keys, atomically."""
    write_text(path, json.dumps(content, indent=2, sort_keys=True, allow_nan=False) + "\n")


def plain(value: Any) -> Any:
    """The same settings as JSON can hold them: NumPy values as Python's, tuples as lists, infinity as text."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write named arrays as an uncompressed .npz that holds no pickled object, atomically."""
    buffer = io.BytesIO()
    # NumPy would pickle an object array without a word, and no reader of ours would take it.
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise TypeError(f"array {name!r} holds Python objects, which cannot be stored without pickle")
    np.savez(buffer, allow_pickle=False, **arrays)
    write_bytes(path, buffer.getvalue())


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a table as Parquet, atomically."""
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    write_bytes(path, buffer.getvalue())


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read an .npz that `write_arrays` wrote; pickled objects are refused, and ValueError is raised for other files."""
    if path.exists() and not zipfile.is_zipfile(path):
        raise ValueError("no archive of arrays")
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current

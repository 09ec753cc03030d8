"""Checks of what the option -o names, made before the work whose result would have no place."""

from __future__ import annotations

from pathlib import Path

from fedhedge.checks import InvalidInput


def check_folder(path: Path) -> None:
    """Refuse a path that is a file, or lies below one."""
    if path.exists() and not path.is_dir():
        raise InvalidInput("-o", str(path), "a folder, or a new name", "this is a file")
    _check_parents(path)


def check_file(path: Path) -> None:
    """Refuse a path that is a folder, or lies below a file."""
    if path.is_dir():
        raise InvalidInput("-o", str(path), "a file, or a new name", "this is a folder")
    _check_parents(path)


def _check_parents(path: Path) -> None:
    for parent in path.absolute().parents:
        if parent.exists() and not parent.is_dir():
            raise InvalidInput("-o", str(path), "a place in a folder", f"{parent} is a file")

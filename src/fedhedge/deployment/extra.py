"""Packages that only a real federation needs, imported when they are used."""

from __future__ import annotations

import importlib
from typing import Any


class MissingExtra(ImportError):
    """A package of the extra `fedhedge[flower]` that is not installed; names it and says how to install it."""


def needed(module: str) -> Any:
    """The module of this name. Raises MissingExtra where its package is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.split(".")[0]
        if error.name is None or error.name.split(".")[0] != package:
            raise
        how = "install it with `pip install 'fedhedge[flower]'`"
        raise MissingExtra(f"a real federation needs the package {package!r}: {how}", name=package) from None

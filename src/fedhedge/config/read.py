"""Reading a TOML file, and changing single keys of what it says."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedhedge.checks import InvalidInput


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file; raises InvalidInput naming the file, and the line where it is not TOML."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(str(path), "bytes that are not UTF-8", "TOML, which is UTF-8 text") from None
    except OSError as error:
        raise InvalidInput("configuration file", str(path), "a TOML file", error.strerror or "") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        lines = text.splitlines() or [""]
        at = re.search(r"at line (\d+)", str(error))
        line = min(int(at[1]) if at else len(lines), len(lines))
        reason = re.sub(r" \(at [^)]*\)$", "", str(error))
        raise InvalidInput(f"{path}, line {line}", lines[line - 1].strip(), "TOML", reason) from None


def override(tables: dict[str, Any], assignments: Sequence[str]) -> None:
    """Set keys in place, in the order given: each assignment reads "dotted.key=value".

    The value is read as TOML where it is TOML (`3`, `true`, `[100, 50]`, `{name = "Iid"}`), else as text (`FedAvg`).
    Raises InvalidInput for an assignment of another form, or a key below something that is no table.
    """
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        path = [part.strip() for part in name.split(".")]
        if not equals or not all(path):
            raise InvalidInput("--set", assignment, "key=value, with dots between tables and keys")
        table = tables
        for depth, part in enumerate(path[:-1], start=1):
            below = table.setdefault(part, {})
            if not isinstance(below, dict):
                raise InvalidInput(f"--set {name.strip()}", assignment, f"{'.'.join(path[:depth])} is no table")
            table = below
        table[path[-1]] = _value(text.strip())


def _value(text: str) -> Any:
    try:
        found = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return found["value"] if len(found) == 1 else text

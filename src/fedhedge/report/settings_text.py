"""Settings as people read them: short values for tables, TOML to copy from."""

from __future__ import annotations

import itertools
import json
from typing import Any

_LONGEST_TEXT = 16


def short(value: Any) -> str:
    """A value for a table: four digits, and runs of the same entry counted instead of repeated."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        runs = [(shown, len(list(same))) for shown, same in itertools.groupby(map(short, value))]
        return ", ".join(f"{shown} ({times} times)" if times > 1 else shown for shown, times in runs) or "none"
    text = str(value)
    # A checksum is for the machine; its beginning is enough to tell two apart.
    return f"{text[:12]}…" if len(text) > 2 * _LONGEST_TEXT and text.isalnum() else text


def toml(settings: dict[str, Any]) -> str:
    """Nested settings as TOML: plain keys first, then a table for each group; a value of None is a comment."""
    return "\n".join(_lines(settings, "")).strip() + "\n"


def _lines(settings: dict[str, Any], path: str) -> list[str]:
    plain = {key: value for key, value in settings.items() if not isinstance(value, dict)}
    nested = {key: value for key, value in settings.items() if isinstance(value, dict)}
    lines = [
        f"# {_key(key)}: none" if value is None else f"{_key(key)} = {_value(value)}" for key, value in plain.items()
    ]
    for key, value in nested.items():
        inner = f"{path}.{_key(key)}" if path else _key(key)
        lines += ["", f"[{inner}]", *_lines(value, inner)]
    return lines


def _key(key: str) -> str:
    bare = key.replace("_", "").replace("-", "")
    return key if bare.isascii() and bare.isalnum() else json.dumps(key)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_value(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)

"""A comparison as text for the terminal."""

from __future__ import annotations

import pandas as pd

from fedhedge.evaluation.columns import columns, is_text

_WIDEST_LABEL = 14


def as_text(table: pd.DataFrame) -> str:
    """A `compare` table as aligned lines, within 100 columns for usual numbers; ends without a newline.

    A long label gets a line of its own above its numbers.
    """
    shown = columns(table)
    labels = [str(label) for label in table.index]
    long = max(map(len, labels)) > _WIDEST_LABEL
    left = 2 if long else max(*map(len, labels), len("method"))
    widths = [max(len(one.title), len(one.unit), *map(len, one.cells)) for one in shown]

    of_words = [is_text(one.cells) for one in shown]

    def line(first: str, cells: list[str]) -> str:
        placed = [
            cell.ljust(width) if words else cell.rjust(width)
            for cell, width, words in zip(cells, widths, of_words, strict=True)
        ]
        return "  ".join([first.ljust(left), *placed])

    lines = [line("" if long else "method", [one.title for one in shown]), line("", [one.unit for one in shown])]
    lines.append("-" * len(lines[0]))
    for i, label in enumerate(labels):
        cells = [one.cells[i] for one in shown]
        lines += [label, line("", cells)] if long else [line(label, cells)]
    return "\n".join(text.rstrip() for text in lines)

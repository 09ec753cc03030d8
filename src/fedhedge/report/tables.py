"""The tables of the page, as text cells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fedhedge.evaluation import differing, flatten, paired_t, participation, spread
from fedhedge.evaluation.columns import MISSING, as_count, as_number, as_percent, columns, is_text, with_sd
from fedhedge.evaluation.paired import PairedInterval
from fedhedge.evaluation.settings import common
from fedhedge.report.settings_text import short
from fedhedge.report.study import WORST, Study, descending

if TYPE_CHECKING:
    from fedhedge.simulation import Run

_ORDER = ("data", "model", "availability", "algorithm")


@dataclass(frozen=True)
class Table:
    """Head and rows of text; the first cell of a row names it. strong: (row, column) of cells to stress."""

    head: list[str]
    rows: list[list[str]]
    strong: frozenset[tuple[int, int]] = field(default_factory=frozenset)

    @property
    def left(self) -> list[bool]:
        """Whether each column stands left: the first one, and those of words; numbers stand right."""
        # A row may end early, as where a method has fewer clients with a number.
        return [k == 0 or is_text([row[k] for row in self.rows if k < len(row)]) for k in range(len(self.head))]


def summary(study: Study) -> Table:
    """The comparison of the methods, best values stressed."""
    shown = columns(study.table)
    head = ["method", *[f"{one.title}\n{one.unit}".strip() for one in shown]]
    rows = [[str(label), *[one.cells[i] for one in shown]] for i, label in enumerate(study.table.index)]
    return Table(head, rows, frozenset((row, at + 1) for at, one in enumerate(shown) for row in one.best))


def settings_in_common(study: Study) -> Table:
    """Settings that all runs share."""
    rows = [[key, short(value)] for key, value in sorted(common(study.runs).items(), key=_rank)]
    return Table(["setting", "value"], rows)


def settings_of_methods(study: Study) -> Table:
    """What sets each method's runs apart from the others': its settings that not all runs share, and its seeds."""
    name = "algorithm.name"
    keys = [
        key for key in sorted(differing(study.runs), key=lambda key: _rank((key, None))) if key not in ("seed", name)
    ]
    rows = []
    for label, members in study.groups.items():
        every = [flatten(run.settings) for run in members]
        said = [
            f"{key.removeprefix('algorithm.')} = {' or '.join(dict.fromkeys(short(flat[key]) for flat in every))}"
            for key in keys
            if all(key in flat for flat in every)
        ]
        rows.append([label, "; ".join([every[0][name], *said]), ", ".join(map(str, _seeds(study, label)))])
    return Table(["method", "settings", "seeds"], rows)


def _rank(item: tuple[str, object]) -> tuple[int, str]:
    room = item[0].split(".")[0]
    return (_ORDER.index(room) if room in _ORDER and "." in item[0] else len(_ORDER), item[0])


def differences(study: Study) -> Table:
    """Each method against the first: mean difference over common seeds with its 95 % paired t interval."""
    reference, *others = study.groups
    views = {"client mean": "mean", "worst client": "worst"} | ({"rare mean": "group"} if study.rare else {})
    rows: list[list[str]] = []
    strong = set()
    for label in others:
        seeds = [seed for seed in _seeds(study, reference) if seed in _seeds(study, label)]
        if len(seeds) < 2:
            continue
        row = [label]
        for view in views.values():
            ours, theirs = ([_view(study, name, seed, view) for seed in seeds] for name in (label, reference))
            if np.isfinite([*ours, *theirs]).all():
                found = paired_t(ours, theirs)
                if found.low > 0 or found.high < 0:
                    strong.add((len(rows), len(row)))
                row.append(_interval(found, study.metric == "accuracy"))
            else:
                row.append(MISSING)
        rows.append([*row, str(len(seeds))])
    return Table(["method", *views, "seeds"], rows, frozenset(strong))


def _seeds(study: Study, label: str) -> list[int]:
    return [run.settings["seed"] for run in study.groups[label]]


def _view(study: Study, label: str, seed: int, view: str) -> float:
    found = spread(study.final[label][seed], group=study.rare, higher_is_better=study.higher_is_better)
    return float(getattr(found, view))


def _interval(found: PairedInterval, percent: bool) -> str:
    mean, low, high = (_signed(value, percent) for value in (found.difference, found.low, found.high))
    return f"{mean}\n({low} to {high})"


def _signed(value: float, percent: bool) -> str:
    text = f"{100 * value:+.1f}" if percent else f"{value:+.3g}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")


def worst_clients(study: Study) -> Table:
    """The worst clients of each method by their mean over seeds, with how likely they are to get through."""
    show = as_percent if study.metric == "accuracy" else as_number
    rows: list[list[str]] = []
    for label, frame in study.final.items():
        mean = frame.mean(axis=1).dropna().sort_values(ascending=study.higher_is_better, kind="stable")
        sd = frame.std(axis=1, ddof=1)
        inclusion = study.groups[label][0].inclusion_probabilities
        cells = [
            f"{client}: {with_sd(show, mean[client], sd[client])}\nthrough {as_percent(inclusion[client])} %"
            for client in mean.index[:WORST].tolist()
        ]
        rows.append([label, *cells])
    width = max(map(len, rows)) - 1
    return Table(["method", "worst", "second", "third"][: width + 1], rows)


def every_client(study: Study) -> Table:
    """The metric of each client under each method, from the most to the least available."""
    show = as_percent if study.metric == "accuracy" else as_number
    order = descending(study.runs[0].inclusion_probabilities)
    means = {label: frame.mean(axis=1) for label, frame in study.final.items()}
    rows = [[str(client), *[show(mean[client]) for mean in means.values()]] for client in order]
    return Table(["client", *means], rows)


def participation_table(runs: list[Run]) -> Table:
    """Who got through against the law, from the most to the least available."""
    table = participation(runs)
    head = ["client", "P(through) %", "expected", "got through", "z", "p %", "observed %"]
    ordered = table.loc[descending(table["inclusion"].to_numpy())]
    rows = [
        [
            str(row["client"]),
            f"{100 * row['inclusion']:.2f}",
            f"{row['expected']:.1f}",
            as_count(row["got_through"]),
            f"{row['z']:+.1f}".replace("-", "−"),
            f"{100 * row['weight']:.2f}",
            f"{100 * row['observed_weight']:.2f}",
        ]
        for row in ordered.to_dict("records")
    ]
    return Table(head, rows)


def costs(study: Study) -> Table:
    """Scalars sent and kept by each method."""
    head = [
        "method",
        "uplink\neach",
        "downlink\neach",
        "uplink\na round",
        "uplink\nin all",
        "state of\na client",
        "server\nstate",
    ]
    rows = []
    for label, members in study.groups.items():
        run = members[0]
        a_round = study.table["uplink_per_round"].to_dict()[label]
        numbers = [
            study.table["uplink"].to_dict()[label],
            run.costs["downlink"],
            a_round,
            a_round * run.counts["rounds"],
        ]
        numbers += [run.costs["client_state"], run.costs["server_state"]]
        rows.append([label, *map(as_count, numbers)])
    return Table(head, rows)

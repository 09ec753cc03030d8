"""What private runs cost a client in privacy, by exact composition."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fedhedge.privacy.composition import moments_epsilon, run_mu
from fedhedge.privacy.gaussian import gaussian_epsilon
from fedhedge.report.study import Study
from fedhedge.report.tables import Table

if TYPE_CHECKING:
    from fedhedge.simulation import Run

DELTA = 1e-6
_NONE = "–"


def privacy(study: Study) -> Table:
    """A row for each private method: noise over sensitivity, rounds of the client most often there, mu and epsilon.

    Neighbours: one row of one client replaced. mu of a round: sqrt(1/noise^2 + 1/lambda_noise^2); of k rounds sqrt(k)
    times that; epsilon exactly at delta = 1e-6, and by the second paper's moments formula. Runs that the accounting
    does not cover (mini-batches, several local steps, no noise) get no number.
    """
    rows = []
    for label, members in study.groups.items():
        if {"noise", "row_bound"} <= members[0].settings["algorithm"].keys():
            rows.append([label, *_cells(members)])
    return Table(
        ["method", "noise /\nsensitivity", "rounds of\none client", "mu", "epsilon\nexact", "by moments"], rows
    )


def _cells(runs: list[Run]) -> list[str]:
    settings = runs[0].settings
    method = settings["algorithm"]
    releases = [float(method["noise"])]
    # Lambda is not perturbed where labels cannot flip: nothing of it then depends on a row.
    if "lambda_noise" in method and method["label_cost"] not in (0, math.inf, "inf"):
        releases.append(float(method["lambda_noise"]))
    noise = ", ".join(f"{sigma:.3g}" for sigma in releases)
    if min(releases) == 0 or settings["batch_size"] is not None or settings["local_steps"] != 1:
        why = "no noise" if min(releases) == 0 else "not accounted"
        return [noise, _NONE, _NONE, why, _NONE]
    # Uploads that were lost were sent all the same, and are not in the table of who took part.
    rounds = max(_rounds(run) for run in runs)
    mu = run_mu(rounds, [1.0 / sigma for sigma in releases])
    return [noise, str(rounds), f"{mu:.3g}", f"{gaussian_epsilon(DELTA, mu):.3g}", f"{moments_epsilon(DELTA, mu):.3g}"]


def _rounds(run: Run) -> int:
    if run.settings.get("faults") or run.counts.get("probes"):
        return run.counts["rounds"]
    return int(run.participation["client"].value_counts().max()) if len(run.participation) else 0

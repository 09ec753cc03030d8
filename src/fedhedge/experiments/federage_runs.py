"""What the figures of the FedeRage paper share: settings, the choice of hyper-parameters, numbers and intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from fedhedge.algorithms import Algorithm
from fedhedge.availability import Law
from fedhedge.data import Clients
from fedhedge.evaluation import PairedInterval, by_client, over_all, paired_t, per_client, spread
from fedhedge.experiments.training import Job, train
from fedhedge.models import Model
from fedhedge.report.tables import Table
from fedhedge.simulation import Run

# The tail of clients whose mean loss is shown.
TAIL = 0.1


@dataclass(frozen=True)
class Setting:
    """Everything about a run but its method and its seed. rare: clients that seldom get through."""

    name: str
    model: Model
    clients: Clients
    law: Law
    rare: tuple[int, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def jobs(
        self, methods: Mapping[str, Algorithm], seeds: Iterable[int], split: str = "test", **others: Any
    ) -> list[Job]:
        """A job for each method and seed, in that order; others: options that replace this setting's."""
        fixed = {**self.options, **others, "evaluate_on": (split,)}
        return [
            Job(f"{self.name}-{label}-{seed}", method, self.model, self.clients, self.law, {**fixed, "seed": seed})
            for label, method in methods.items()
            for seed in seeds
        ]


def in_parts(
    jobs: Sequence[Job], folder: Path, size: int, *, side_by_side: bool = True, quiet: bool = False, title: str
) -> list[Run]:
    """`train` on `size` jobs at a time, so that runs computed side by side are kept part by part."""
    runs: list[Run] = []
    with tqdm(total=len(jobs), desc=title, unit="run", disable=True if quiet else None) as bar:
        for start in range(0, len(jobs), size):
            part = jobs[start : start + size]
            runs += train(part, folder, side_by_side=side_by_side, quiet=True)
            bar.update(len(part))
    return runs


def choose(
    setting: Setting,
    candidates: Mapping[str, Sequence[Algorithm]],
    seeds: Sequence[int],
    folder: Path,
    *,
    side_by_side: bool = True,
    quiet: bool = False,
    **others: Any,
) -> tuple[dict[str, Algorithm], pd.DataFrame]:
    """The candidate of each family with the best accuracy on validation rows; and all scores.

    Score: mean over seeds, over clients and over the second half of the evaluations. A tie goes to the earlier one.
    """
    listed = [(family, one) for family, members in candidates.items() for one in members]
    named = {f"{family}-{number}": one for number, (family, one) in enumerate(listed)}
    jobs = setting.jobs(named, seeds, "validation", **{"on_nonfinite": "skip", **others})
    title = f"choosing, {setting.name}"
    runs = train(jobs, folder, side_by_side=side_by_side, quiet=quiet, title=title)
    scores = np.reshape([_score(run) for run in runs], (len(listed), len(seeds))).mean(axis=1)
    table = pd.DataFrame(
        [
            {"setting": setting.name, "family": family, **shown(one), "score": score}
            for (family, one), score in zip(listed, scores, strict=True)
        ]
    )
    # A candidate that diverged has no score.
    ranked = np.nan_to_num(scores, nan=-np.inf)
    best = {
        family: max((k for k in range(len(listed)) if listed[k][0] == family), key=ranked.__getitem__)
        for family in candidates
    }
    table["chosen"] = table.index.isin(list(best.values()))
    return {family: listed[at][1] for family, at in best.items()}, table


def _score(run: Run) -> float:
    curve = by_client(run, "accuracy", "validation").mean(axis=1)
    return float(curve.tail((len(curve) + 1) // 2).mean())


def shown(algorithm: Algorithm) -> dict[str, Any]:
    """Hyper-parameters worth a column."""
    names = ("step", "mu", "alpha", "gamma", "beta_step", "kappa")
    settings = algorithm.settings()
    return {name: settings[name] for name in names if name in settings}


def in_words(algorithm: Algorithm) -> str:
    """The same in one line."""
    return ", ".join(f"{name} {value:.4g}" for name, value in shown(algorithm).items())


def views(run: Run, rare: Sequence[int], last: int) -> dict[str, float]:
    """Numbers of the last `last` evaluations on test rows; NaN for the rare clients where there are none.

    mean, worst, rare: of accuracy over clients; common: of the others; cvar_loss: mean loss of the worst tenth.
    """
    accuracy, loss = (per_client(run, metric, last=last) for metric in ("accuracy", "loss"))
    seen = spread(accuracy, group=rare)
    tail = spread(loss, alpha=TAIL, higher_is_better=False).cvar
    common = float(accuracy.drop(list(rare)).mean())
    return {"mean": seen.mean, "worst": seen.worst, "rare": seen.group, "common": common, "cvar_loss": tail}


def mean_weight(run: Run) -> float:
    """Mean over rounds of the weight w of FedeRage's local steps: 1 + (beta_T - beta_0) / (eta_beta H T).

    T counts rounds in which somebody came. Exact as long as beta stays inside B, since each step moves it by
    eta_beta (w - 1).
    """
    beta = over_all(run, "beta", "server")
    settings, counts = run.settings, run.counts
    steps = settings["local_steps"] * (counts["rounds"] - counts["empty_rounds"])
    start, step = (float(settings["algorithm"][name]) for name in ("beta_start", "beta_step"))
    return 1.0 + (float(beta.iloc[-1]) - start) / (step * float(steps))


def differences(frame: pd.DataFrame, by: str, ours: str, measures: Iterable[str]) -> pd.DataFrame:
    """`ours` minus each other group of `by`, paired by the column seed: one line for each group and measure.

    No lines where ours has one seed alone.
    """
    own = frame[frame[by] == ours].set_index("seed")
    lines = []
    for label, part in frame[frame[by] != ours].groupby(by, sort=False):
        other = part.set_index("seed")
        for measure in measures if len(own) > 1 else ():
            found = paired_t(own.loc[other.index, measure].to_numpy(), other[measure].to_numpy())
            lines.append((ours, label, measure, *vars(found).values()))
    return pd.DataFrame(lines, columns=[by, "minus", "measure", "difference", "low", "high", "p_value", "pairs"])


def points(found: PairedInterval | pd.Series, factor: float = 100.0, digits: int = 1) -> str:
    """A difference with its interval; factor 100 for shares in points."""
    low, middle, high = (f"{factor * value:+.{digits}f}" for value in (found.low, found.difference, found.high))
    return f"{middle} ({low} to {high})".replace("-", "−")


def share(values: pd.Series) -> str:
    """Mean and standard deviation over seeds of shares, in percent."""
    return f"{100 * values.mean():.1f} ± {100 * values.std(ddof=1):.1f}"


def chosen_table(scores: pd.DataFrame) -> Table:
    """What was chosen, and from how many."""
    rows = []
    for (setting, family), part in scores.groupby(["setting", "family"], sort=False):
        best = part[part["chosen"]].iloc[0]
        settings = best.drop(["setting", "family", "score", "chosen"]).dropna()
        said = ", ".join(f"{name} {value:.4g}" for name, value in settings.items())
        rows.append([f"{setting}, {family}", said, f"{100 * best['score']:.1f}", str(len(part))])
    return Table(["setting, method", "chosen", "validation %", "candidates"], rows)

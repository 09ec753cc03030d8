"""The privacy statement of every site after training."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedhedge.algorithms.dp_dro_admm import DpDroAdmm
from fedhedge.algorithms.private import Private
from fedhedge.estimators.bounds import Bounds
from fedhedge.privacy import Privacy, Release, Statement, gradient_sensitivity
from fedhedge.privacy.plan import signal_to_noise

NO_PRIVACY = "No privacy: this method adds no noise, and the model may reveal rows that it was trained on.\n"
CLASSES_FROM_DATA = "the list of classes, which was taken from the labels (the parameter `classes` declares it)"


def state(
    algorithm: Private,
    privacy: Privacy,
    sites: Sequence[Any],
    samples: Iterable[int],
    rounds: Iterable[int],
    bounds: Bounds,
    *,
    classes_declared: bool,
) -> dict[Any, Statement]:
    """Statement of each site by name, with its rows, samples [G]; rounds [G]: those in which it released something."""
    return {
        name: Statement(
            site=str(name),
            samples=int(count),
            rounds=int(done),
            each_round=releases(algorithm, int(count)),
            delta=privacy.delta,
            requested=privacy,
            bounds=bounds.origin,
            once=bounds.releases,
            bounds_found=bounds.found,
            also_not_covered=() if classes_declared else (CLASSES_FROM_DATA,),
        )
        for name, count, done in zip(sites, samples, rounds, strict=True)
    }


def releases(algorithm: Private, samples: int) -> tuple[Release, ...]:
    """What a site of N rows releases in a round, in the unit of the mean (sub)gradients, where no step size enters.

    Noise of deviation s on a model that a step of 1/(rho + 1/eta) makes is noise of s (rho + 1/eta) on the gradient.
    """
    length = gradient_sensitivity(samples, algorithm.row_bound)
    found = [Release("mean subgradient in the model", length, algorithm.noise * length)]
    if isinstance(algorithm, DpDroAdmm):
        slope = 0.0 if np.isinf(algorithm.label_cost) else algorithm.label_cost / samples
        found.append(Release("mean slope in lambda", slope, algorithm.lambda_noise * slope))
    return tuple(found)


def text(privacy: Mapping[Any, Statement] | None) -> str:
    """The statements of all sites, to be read by people."""
    return NO_PRIVACY if privacy is None else "\n\n".join(map(str, privacy.values())) + "\n"


def in_brief(privacy: Mapping[Any, Statement] | None) -> str:
    """The first site's statement, and a line for each further one: they differ in rows and noise alone."""
    if privacy is None:
        return NO_PRIVACY
    first, *others = privacy.values()
    lines = [str(first)]
    if others:
        lines += ["", "The same holds at the other sites, with their own rows and noise (in full in privacy.txt):"]
    for other in others:
        noise = ", ".join(f"sigma {release.sigma:.4g} on {release.name}" for release in other.each_round)
        lines.append(f"  {other.site} ({other.samples} rows): epsilon {other.epsilon:.4g}; {noise}")
    return "\n".join(lines) + "\n"


def warn_of_noise(algorithm: Private, classes: int, features: int, counts: NDArray[np.int64], weighting: str) -> None:
    """Warn where even the largest gradient is shorter than the noise on the average over the sites, in one round."""
    counts = counts.astype(np.float64)
    weights = counts / counts.sum() if weighting == "rows" else np.full(len(counts), 1 / len(counts))
    rows = float(1 / np.linalg.norm(weights / counts))
    ratio = signal_to_noise(algorithm.noise, rows, classes * features)
    if ratio < 1:
        warnings.warn(
            f"each round is mostly noise: the signal is at most {ratio:.2g} times as long as the noise on it; about "
            f"{1 / ratio:.2g} times the rows, or a larger epsilon or fewer rounds, would help "
            "(`fedhedge privacy plan` tells more)",
            stacklevel=3,
        )

"""The privacy statement of every site after training."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedhedge.algorithms.dp_dro_admm import DpDroAdmm
from fedhedge.algorithms.private import Private
from fedhedge.estimators.bounds import Bounds
from fedhedge.estimators.sites import Sites
from fedhedge.privacy import Privacy, Release, Statement, gradient_sensitivity

CLASSES_FROM_DATA = "the list of classes, which was taken from the labels (the parameter `classes` declares it)"


def state(
    algorithm: Private,
    privacy: Privacy,
    sites: Sites,
    rounds: NDArray[np.int64],
    bounds: Bounds,
    *,
    classes_declared: bool,
) -> dict[Any, Statement]:
    """Statement of each site by name; rounds [G] are those in which the site released something."""
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
            also_not_covered=() if classes_declared else (CLASSES_FROM_DATA,),
        )
        for name, count, done in zip(sites.names, sites.counts, rounds, strict=True)
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

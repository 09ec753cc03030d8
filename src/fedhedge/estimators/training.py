"""One training run of an estimator."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from fedhedge import dro
from fedhedge.algorithms.base import Algorithm, Tree
from fedhedge.algorithms.dp_dro_admm import DpDroAdmm
from fedhedge.algorithms.dro_admm import DroAdmm
from fedhedge.availability import Everyone
from fedhedge.data import Clients
from fedhedge.models import CrammerSinger
from fedhedge.simulation import Run
from fedhedge.simulation.arithmetic import arithmetic
from fedhedge.simulation.driver import Simulation
from fedhedge.simulation.options import Options

FloatArray = NDArray[np.float64]
# Rows that a table is padded to at least: small ones cost nothing, and so share one compilation.
LEAST_ROOM = 256


class Trained(NamedTuple):
    """A run; the dual variable of each client's ball [G], None for methods without one; rounds of each client [G]."""

    run: Run
    lambda_: FloatArray | None
    rounds: NDArray[np.int64]


def train(
    algorithm: Algorithm, clients: Clients, rounds: int, weighting: str, seed: int, *, progress: bool | None
) -> Trained:
    """The run of `fedhedge.simulate` over all clients in every round; `progress` as there.

    Nothing is evaluated on the rows: metrics would be releases that no noise covers.
    """
    options = Options(
        rounds=rounds,
        local_steps=1,
        batch_size=None,
        seed=seed,
        evaluate_every=rounds,
        evaluate_on=(),
        weighting=weighting,
    )
    with arithmetic(algorithm.precision):
        simulation = Simulation(algorithm, CrammerSinger(), clients, Everyone(), options)
        _make_room(simulation)
        run = simulation.run(None, resume=False, progress=progress)
        states = jax.tree.map(np.asarray, simulation.state.clients)
    took_part = np.bincount(run.participation["client"], minlength=len(clients))
    return Trained(run, _lambda(algorithm, run, states, clients), took_part)


def _lambda(algorithm: Algorithm, run: Run, states: Tree, clients: Clients) -> FloatArray | None:
    if isinstance(algorithm, DpDroAdmm):
        return np.asarray(states.lambda_)
    if type(algorithm) is not DroAdmm:
        return None
    ball = (algorithm.label_cost, algorithm.norm)
    return np.array(
        [
            dro.worst_case_risk(run.params, *clients.rows("train", client), float(radius), *ball).lam
            for client, radius in enumerate(states.radius)
        ]
    )


def _make_room(simulation: Simulation) -> None:
    """Leave room for rows up to powers of two, so that tables of about one size (folds) share one compilation.

    The rows added belong to no client.
    """
    pool, plan = simulation.inputs.pool, simulation.plan
    added = _room(len(pool.features)) - len(pool.features)
    roomy = pool._replace(
        features=jnp.pad(pool.features, ((0, added), (0, 0))), labels=jnp.pad(pool.labels, (0, added))
    )
    simulation.inputs = simulation.inputs._replace(pool=roomy)
    simulation.plan = dataclasses.replace(plan, widest=_room(plan.widest), ragged=True)


def _room(number: int) -> int:
    return max(LEAST_ROOM, 1 << (number - 1).bit_length())

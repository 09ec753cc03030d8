"""FedVARP: variance reduction over clients by the latest updates of all of them."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from fedhedge.algorithms.base import Cohort, Tree, traced, weighted_mean
from fedhedge.algorithms.latest_updates import LatestUpdates, State


@traced
@dataclasses.dataclass(frozen=True)
class FedVarp(LatestUpdates):
    """FedAvg whose server corrects the mean of the updates by what it remembers of all clients, as SAGA does.

    v = mean_S (y_i - x - u_i) + mean_i u_i over all N;  x <- x + eta_g v;  then u_i <- y_i - x for i in S.
    Unbiased under uniform availability, where Mifa is not. With everyone present and eta_g = 1 it is FedAvg up to
    rounding. Its fixed point is Mifa's: there every u_i is y_i - x, so that v is the mean over all clients.
    step: eta. server_step: eta_g > 0. ball: as in FedAvg. u_i starts at 0. Server state: (N + 2) d scalars.
    Raises InvalidInput when a step is not allowed.
    Source: Jhunjhunwala et al. 2022 (arXiv 2207.14130), Algorithm 1.
    """

    name: ClassVar[str] = "FedVarp"

    def aggregate(self, server: State, up: Tree, cohort: Cohort) -> State:
        news = self.news(server, up, cohort)
        direction = jax.tree.map(jnp.add, weighted_mean(cohort.weights, news), server.mean)
        return self.moved(self.remember(server, up, news, cohort), direction)

"""MIFA: the mean of the latest updates of all clients, present or not."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from fedhedge.algorithms.base import Cohort, Tree, traced
from fedhedge.algorithms.latest_updates import LatestUpdates, State


@traced
@dataclasses.dataclass(frozen=True)
class Mifa(LatestUpdates):
    """Memory-augmented impatient federated averaging: every round steps along the mean of all latest updates.

    u_i <- y_i - x for i in S;  x <- x + eta_g mean_i u_i over all N clients. With everyone present and eta_g = 1 it is
    FedAvg up to rounding; its fixed point is FedAvg's with everyone present, whatever the availability: the unweighted
    optimum but for the drift of H local steps. The paper has everyone at work in the first round; here u_i is 0 until
    client i's first visit, which counts absent clients as content. Aggregation weights act as the clients' masses.
    The paper's server steps in every round; here a round without any upload leaves the model as it is, as with every
    method of this package.
    step: eta. server_step: eta_g > 0; take less than 1 where clients stay away for long. ball: as in FedAvg.
    Server state: (N + 2) d scalars. Raises InvalidInput when a step is not allowed.
    Source: Gu et al. 2021 (arXiv 2106.04159), Algorithm 1.
    """

    name: ClassVar[str] = "Mifa"

    def aggregate(self, server: State, up: Tree, cohort: Cohort) -> State:
        server = self.remember(server, up, self.news(server, up, cohort), cohort)
        return self.moved(server, server.mean)

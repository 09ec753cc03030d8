"""Availability: who gets through in a round, and the weight that this gives each client."""

from __future__ import annotations

from fedhedge.availability import presets
from fedhedge.availability.base import Law
from fedhedge.availability.cycle import Cycle
from fedhedge.availability.dropout import Dropout
from fedhedge.availability.everyone import Everyone
from fedhedge.availability.fixed_size import FixedSize, prior_for
from fedhedge.availability.groups import Groups
from fedhedge.availability.independent import Independent
from fedhedge.availability.markov import Markov
from fedhedge.availability.sampled import SampledLaw
from fedhedge.availability.subsets import Subsets
from fedhedge.availability.trace import Trace

# The laws that a configuration file may name.
LAWS: dict[str, type[Law]] = {
    law.__name__: law for law in (Cycle, Dropout, Everyone, FixedSize, Groups, Independent, Markov, Subsets, Trace)
}

__all__ = [
    "LAWS",
    "Cycle",
    "Dropout",
    "Everyone",
    "FixedSize",
    "Groups",
    "Independent",
    "Law",
    "Markov",
    "SampledLaw",
    "Subsets",
    "Trace",
    "presets",
    "prior_for",
]

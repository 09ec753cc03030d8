"""Evaluation: what a run means for each client, and whether methods really differ."""

from fedhedge.evaluation.clients import by_client, higher_is_better, over_all, per_client
from fedhedge.evaluation.compare import compare, primary_metric
from fedhedge.evaluation.cvar import cvar
from fedhedge.evaluation.group import group
from fedhedge.evaluation.paired import PairedInterval, paired_difference, paired_t
from fedhedge.evaluation.participation import participation
from fedhedge.evaluation.rounds_to import rounds_to
from fedhedge.evaluation.settings import common, differing, flatten
from fedhedge.evaluation.spread import Spread, spread
from fedhedge.evaluation.text import as_text
from fedhedge.evaluation.z_test import ZTest, two_sample_z, z_test

__all__ = [
    "PairedInterval",
    "Spread",
    "ZTest",
    "as_text",
    "by_client",
    "common",
    "compare",
    "cvar",
    "differing",
    "flatten",
    "group",
    "higher_is_better",
    "over_all",
    "paired_difference",
    "paired_t",
    "participation",
    "per_client",
    "primary_metric",
    "rounds_to",
    "spread",
    "two_sample_z",
    "z_test",
]

"""A skewed law over five clients as an explicit table of subsets, empty rounds included."""

import itertools
import math

import fedhedge as fh

PROBABILITIES = (0.8, 0.6, 0.5, 0.3, 0.2)
SKEWED = fh.availability.Independent(PROBABILITIES)
SUBSETS = {
    subset: math.prod(p if i in subset else 1 - p for i, p in enumerate(PROBABILITIES))
    for size in range(6)
    for subset in itertools.combinations(range(5), size)
}

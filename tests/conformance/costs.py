"""The table of docs/costs.md, measured: what clients and server of each method send and keep.

python tests/conformance/costs.py        # prints the table
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from conformance.subjects import CLASSES, COUNTS, FEATURES, of_matrices, prepared
from fedhedge.algorithms import METHODS

N = len(COUNTS)
HEAD = """\
| method | up | down | each client keeps | server keeps | first phase, up | first phase, down |
| --- | --- | --- | --- | --- | --- | --- |"""


def lines() -> list[str]:
    """One line of the table for each registered method, in the order of their names."""
    return [f"| {name} | " + " | ".join(_cells(name)) + " |" for name in sorted(METHODS)]


def _cells(name: str) -> list[str]:
    simulation = prepared(name)
    # Softmax regression has an intercept for each class, the matrix of the robust methods has none.
    size = CLASSES * (FEATURES if of_matrices(name) else FEATURES + 1)
    costs = simulation.costs
    probes = simulation.algorithm.probes
    first = [costs["probe_uplink"], costs["probe_downlink"]] if probes else [0, 0]
    down = costs["downlink"] - (0 if probes or "probe_downlink" not in costs else costs["probe_downlink"])
    kept = [costs["client_state"], costs["server_state"]]
    return [in_models(value, size) for value in (costs["uplink"], down, *kept, *first)]


def in_models(value: int, size: int) -> str:
    """A number of scalars as models of `size` scalars and a rest, such as "2 d + 1"; a share of a model as it is."""
    models, rest = divmod(value, size)
    if models == 0:
        return str(rest)
    whole = "d" if models == 1 else f"{models} d"
    return whole if rest == 0 else f"{whole} + {rest}"


if __name__ == "__main__":
    print("\n".join([HEAD, *lines()]))

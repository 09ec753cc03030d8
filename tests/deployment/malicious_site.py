"""A site that takes part with its own key and does harm: python malicious_site.py SITE.toml, as `fedhedge deploy site`.

Round for round its upload is of a wrong shape, not finite, of a huge norm, or cut short on its way.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, RecordDict

from fedhedge.deployment.flower import answer
from fedhedge.deployment.flower.serve import take_part
from fedhedge.deployment.parcel import Parcel
from fedhedge.deployment.site_file import load_site

SHAPE, NAN, HUGE, CUT = range(4)
honest = answer.to_record


def harmful(parcel: Parcel) -> RecordDict:
    """What the site sends in place of a reply."""
    if not any(name.startswith("up") for name in parcel.arrays):
        return honest(parcel)
    how, arrays = parcel.about["round"] % 4, dict(parcel.arrays)
    name = sorted(arrays)[0]
    if how == SHAPE:
        arrays[name] = arrays[name][..., :1]
    if how in (NAN, HUGE):
        arrays[name] = np.full_like(arrays[name], np.nan if how == NAN else 1e30)
    record = honest(Parcel(parcel.kind, parcel.about, arrays))
    if how == CUT:
        cut: dict[str, Any] = {
            key: Array(array.dtype, array.shape, array.stype, array.data[: len(array.data) // 2])
            for key, array in record["arrays"].items()
        }
        record = RecordDict({"arrays": ArrayRecord(cut), "about": record["about"]})
    return record


if __name__ == "__main__":
    answer.to_record = harmful
    take_part(load_site(Path(sys.argv[1])), print)

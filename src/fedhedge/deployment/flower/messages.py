"""Parcels as Flower's records: leaves as named arrays, the rest as JSON; nothing is unpickled on the way."""

from __future__ import annotations

import json
from typing import Any

from fedhedge.deployment.extra import needed
from fedhedge.deployment.parcel import Parcel, Rejected

ARRAYS, ABOUT = "arrays", "about"
# What Flower calls a message that any of its kinds of app can answer.
TYPE = "query"


def to_record(parcel: Parcel) -> Any:
    """A RecordDict with the arrays in an ArrayRecord, and the kind and the facts in a ConfigRecord."""
    app = needed("flwr.app")
    arrays = {name: app.Array(array) for name, array in parcel.arrays.items()}
    about = app.ConfigRecord({"kind": parcel.kind, "json": parcel.text()})
    return app.RecordDict({ARRAYS: app.ArrayRecord(arrays), ABOUT: about})


def from_record(content: Any) -> Parcel:
    """The parcel in a RecordDict; raises Rejected for anything else, truncated arrays included."""
    try:
        kind, about = content[ABOUT]["kind"], json.loads(content[ABOUT]["json"])
        arrays = {str(name): array.numpy() for name, array in content[ARRAYS].items()}
    except Exception as error:
        # Bytes from elsewhere can fail in as many ways as there are readers of them.
        raise Rejected(f"a message that cannot be read: {type(error).__name__}") from None
    if not isinstance(kind, str) or not isinstance(about, dict):
        raise Rejected("a message without kind and facts")
    return Parcel(kind, about, arrays)

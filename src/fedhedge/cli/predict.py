"""`fedhedge predict`: labels for new rows by a fitted classifier."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from fedhedge import FederatedDROClassifier

DESCRIPTION = """\
Predict the label of every row of a .csv or .parquet file by a model that `fedhedge fit` wrote.

The output is the file's table with one more column, predicted_LABEL. Where the file has the label column, the share
of rows predicted right is printed on standard error.
"""


def add(commands: Any, style: dict[str, Any]) -> None:
    parser = commands.add_parser("predict", help="predict labels of new rows", description=DESCRIPTION, **style)
    parser.add_argument("model", type=Path, metavar="MODEL", help="folder of the model")
    parser.add_argument("rows", type=Path, metavar="NEW.csv", help="rows with the columns of training")
    parser.add_argument("-o", "--out", type=Path, metavar="OUT.csv", help="where to write (default: standard output)")
    parser.set_defaults(execute=run)


def run(given: argparse.Namespace) -> int:
    from fedhedge import FederatedDROClassifier, files

    model = FederatedDROClassifier.load(given.model)
    table = _read(given.rows)
    predicted = _predict(model, table, given.rows.name)
    if model.label_name_ in table:
        _say_accuracy(table[model.label_name_], predicted, model, given.rows.name)
    content = table.assign(**{f"predicted_{model.label_name_}": predicted}).to_csv(index=False)
    if given.out is None:
        print(content, end="")
    else:
        files.write_text(given.out, content)
    return 0


def _read(path: Path) -> pd.DataFrame:
    import pandas as pd

    from fedhedge.checks import InvalidInput

    readers: dict[str, Callable[[Path], pd.DataFrame]] = {".csv": pd.read_csv, ".parquet": pd.read_parquet}
    if path.suffix not in readers:
        raise InvalidInput("NEW", str(path), "a file that ends in .csv or .parquet")
    try:
        table = readers[path.suffix](path)
    except pd.errors.EmptyDataError:
        table = pd.DataFrame()
    except ValueError as error:
        raise InvalidInput(path.name, str(error), "a readable table") from None
    if table.empty:
        raise InvalidInput(path.name, "no rows", "a header line and at least one row")
    return table


def _predict(model: FederatedDROClassifier, table: pd.DataFrame, file: str) -> Any:
    from fedhedge.checks import InvalidInput

    names, label = list(model.feature_names_in_), model.label_name_
    missing = [name for name in names if name not in table]
    extra = [str(name) for name in table if name not in names and name != label]
    if missing or extra:
        parts = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"adds {', '.join(extra)}"] * bool(extra)
        allowed = f"the columns of training: {', '.join(names)}, with or without the label {label}"
        raise InvalidInput(f"columns of {file}", "; ".join(parts), allowed)
    try:
        return model.predict(table[names])
    except InvalidInput as error:
        raise InvalidInput(f"{file}, {error.name}", error.received, error.allowed, error.hint) from None


def _say_accuracy(known: pd.Series, predicted: Any, model: FederatedDROClassifier, file: str) -> None:
    from fedhedge.checks import InvalidInput, nearest

    unseen = ~known.isin(model.classes_)
    if unseen.any():
        where = f"{file}, column {known.name!r}, row {int(unseen.to_numpy().argmax()) + 1}"
        value, classes = known[unseen].iloc[0], model.classes_.tolist()
        allowed = f"the labels seen in training: {', '.join(map(str, classes))}"
        raise InvalidInput(where, value, allowed, nearest(value, classes))
    right = int((known.to_numpy() == predicted).sum())
    print(f"{right} of {len(known)} rows right ({right / len(known):.4f})", file=sys.stderr)

"""`fedhedge predict`: labels for new rows by a fitted classifier."""

from __future__ import annotations

import argparse
import sys
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
    from fedhedge.cli import out
    from fedhedge.data.folder import read_table

    if given.out is not None:
        out.check_file(given.out)
    model = FederatedDROClassifier.load(given.model)
    table = read_table(given.rows)
    predicted = _predict(model, table, given.rows.name)
    if model.label_name_ in table:
        _say_accuracy(table[model.label_name_], predicted, model, given.rows.name)
    content = table.assign(**{f"predicted_{model.label_name_}": predicted}).to_csv(index=False)
    if given.out is None:
        print(content, end="")
    else:
        files.write_text(given.out, content)
    return 0


def _predict(model: FederatedDROClassifier, table: pd.DataFrame, file: str) -> Any:
    from fedhedge.checks import InvalidInput
    from fedhedge.estimators.sites import check_columns

    label, known = model.label_name_, getattr(model, "feature_names_in_", None)
    if known is None:
        features = table.drop(columns=label, errors="ignore")
        if len(features.columns) != model.n_features_in_:
            allowed = f"{model.n_features_in_} features in the order of training, which had no column names"
            raise InvalidInput(f"columns of {file}", ", ".join(map(str, features.columns)), allowed)
    else:
        _check_columns(table, list(known), label, file)
        features = table[list(known)]
    try:
        check_columns(features)
        return model.predict(features if known is not None else features.to_numpy())
    except InvalidInput as error:
        raise InvalidInput(f"{file}, {error.name}", error.received, error.allowed, error.hint) from None


def _check_columns(table: pd.DataFrame, names: list[str], label: str, file: str) -> None:
    from fedhedge.checks import InvalidInput

    missing = [name for name in names if name not in table]
    extra = [str(name) for name in table if name not in names and name != label]
    if missing or extra:
        parts = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"adds {', '.join(extra)}"] * bool(extra)
        allowed = f"the columns of training: {', '.join(names)}, with or without the label {label}"
        raise InvalidInput(f"columns of {file}", "; ".join(parts), allowed)


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

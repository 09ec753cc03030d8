"""`fedhedge data`: which sources there are, whether their files are here and whole, and tables as files of sites."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

DESCRIPTION = """\
Files are looked for below --root, else below the folder that FEDHEDGE_DATA names, else in the user's cache folder.
"""


def add(commands: Any, style: dict[str, Any]) -> None:
    parser = commands.add_parser("data", help="list, fetch and check data sources", description=DESCRIPTION, **style)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    root = argparse.ArgumentParser(add_help=False)
    root.add_argument("--root", type=Path, metavar="DIR", help="folder of the data files")
    style = style | {"parents": [*style["parents"], root]}

    listing = actions.add_parser("list", help="all sources, and whether their files are here", **style)
    listing.set_defaults(execute=list_sources)
    fetching = actions.add_parser("fetch", help="download the files of sources that are missing", **style)
    fetching.add_argument("sources", nargs="+", metavar="SOURCE")
    fetching.set_defaults(execute=fetch)
    checking = actions.add_parser("check", help="read the files of sources and verify their checksums", **style)
    checking.add_argument("sources", nargs="+", metavar="SOURCE")
    checking.set_defaults(execute=check)
    exporting = actions.add_parser(
        "export",
        help="write a table as files of sites",
        description="Deal the rows of a table to sites, equal in size and classes, and write one .csv file for each.",
        **style,
    )
    exporting.add_argument("source", metavar="SOURCE")
    exporting.add_argument("folder", type=Path, metavar="SITES", help="a new or empty folder")
    number = exporting.add_mutually_exclusive_group()
    number.add_argument("--clients", type=int, default=4, metavar="N", help="number of sites (default: %(default)s)")
    number.add_argument(
        "--sites", nargs="+", metavar="NAME", help="names of the sites, in place of site-1, site-2, ..."
    )
    exporting.add_argument("--label", default="label", metavar="COLUMN", help="name of the label column")
    exporting.add_argument("--seed", type=int, default=0, help="of the dealing (default: %(default)s)")
    exporting.add_argument(
        "--set",
        action="append",
        default=[],
        dest="options",
        metavar="KEY=VALUE",
        help="an option of a simulated source, such as runs=400; may be repeated",
    )
    exporting.set_defaults(execute=export)


def list_sources(given: argparse.Namespace) -> int:
    from fedhedge import data

    print(data.available(given.root).to_string(index=False))
    return 0


def fetch(given: argparse.Namespace) -> int:
    from fedhedge import data

    for source in given.sources:
        written = data.fetch(source, given.root)
        print("\n".join(written) if written else f"{source}: nothing is missing")
    return 0


def check(given: argparse.Namespace) -> int:
    from fedhedge import data

    good = True
    for source in given.sources:
        table = data.check(source, given.root)
        print(f"{source}: comes with the package" if table.empty else table.to_string(index=False))
        good &= bool((table["state"] == "ok").all())
    return 0 if good else 1


def export(given: argparse.Namespace) -> int:
    import pandas as pd

    from fedhedge import data, files
    from fedhedge.checks import InvalidInput
    from fedhedge.config.read import override

    if given.folder.exists() and (not given.folder.is_dir() or any(given.folder.iterdir())):
        raise InvalidInput("SITES", str(given.folder), "a new or empty folder")
    names = given.sites
    if names and (len(set(names)) < len(names) or not all(re.fullmatch(r"[\w-]+", name) for name in names)):
        raise InvalidInput("--sites", names, "different names of letters, digits, - and _")
    options: dict[str, Any] = {}
    override(options, given.options)
    table = data.load(given.source, given.root, **options)
    columns = list(table.feature_names) or [f"x{column}" for column in range(table.features[0].size)]
    if table.features.ndim != 2 or given.label in columns:
        received = given.label if table.features.ndim == 2 else f"rows of shape {table.features.shape[1:]}"
        raise InvalidInput("SOURCE, --label", received, "a table of numbers, and a label column with a name of its own")
    dealing = data.Iid(clients=len(names) if names else given.clients)
    clients = table.partition(dealing, seed=given.seed, validation=0.0, test=0.0, scaling="none")
    width = len(str(len(clients)))
    for client, name in enumerate(names or [f"site-{number:0{width}}" for number in range(1, len(clients) + 1)]):
        features, labels = clients.rows("train", client)
        frame = pd.DataFrame(features, columns=columns)
        frame[given.label] = [(clients.classes or ())[label] for label in labels]
        files.write_text(given.folder / f"{name}.csv", frame.to_csv(index=False))
    count = "1 site" if len(clients) == 1 else f"{len(clients)} sites"
    print(f"{given.folder}: {count}, {len(table)} rows, label column {given.label!r}")
    return 0

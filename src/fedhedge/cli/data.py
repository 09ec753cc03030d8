"""`fedhedge data`: which sources there are, and whether their files are here and whole."""

from __future__ import annotations

import argparse
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

"""`fedhedge deploy`: a real federation over the network."""

from __future__ import annotations

import argparse
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedhedge.cli.run import add_overrides, said

if TYPE_CHECKING:
    from fedhedge.deployment.federation import Federation
    from fedhedge.deployment.progress import Progress
    from fedhedge.simulation import Run

DESCRIPTION = """\
Train over sites that keep their rows: the methods and configuration files of `fedhedge run`, over Flower with TLS and
node keys. Needs the extra: pip install 'fedhedge[flower]'. See docs/deployment.md.
"""
SERVER = """\
Run the rounds of federation.toml with the sites that are online. The folder gets what `fedhedge run` writes, and
attendance.parquet (round, client, site, online, asked, answered, used, failure) and privacy.json (what each site says
of its budget). The same command on the same folder goes on with a run that was stopped.
"""
SITE = """\
Take part with the rows that site.toml names. The state folder holds what the method keeps at this site and the ledger
of its privacy budget; the same command goes on with them after a stop or a crash.
"""
BEGIN = """\
Begin the ledger of a site's privacy budget, with nothing spent: once in the life of its table, before anything has been
released from its rows. `fedhedge deploy site` refuses to go on without a ledger, and never begins one by itself.
"""
KEYS = "Make a certificate authority, the server's certificate and a key pair for each site; ca.key belongs offline."
DEMO = """\
Everything on this machine: a server and sites on loopback, with TLS and keys, training a private method on simulated
pumps. One site is killed in the middle and comes back.
"""


def add(commands: Any, style: dict[str, Any]) -> None:
    parser = commands.add_parser("deploy", help="a real federation over the network", description=DESCRIPTION, **style)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    serving = actions.add_parser("server", help="coordinate the sites", description=SERVER, **style)
    serving.add_argument("federation", type=Path, metavar="FEDERATION.toml")
    add_overrides(serving)
    serving.add_argument("--keys", type=Path, required=True, metavar="DIR", help="what `fedhedge deploy keys` made")
    serving.add_argument("--out", type=Path, metavar="DIR", help="default: runs/FEDERATION")
    serving.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    serving.add_argument("--port", type=int, default=8000, help="default: %(default)s")
    serving.set_defaults(execute=server)
    taking_part = actions.add_parser("site", help="take part with one's own rows", description=SITE, **style)
    taking_part.add_argument("site", type=Path, metavar="SITE.toml")
    taking_part.set_defaults(execute=site)
    beginning = actions.add_parser("begin", help="begin a site's privacy ledger, once", description=BEGIN, **style)
    beginning.add_argument("site", type=Path, metavar="SITE.toml")
    beginning.set_defaults(execute=begin)
    making = actions.add_parser("keys", help="certificates and keys", description=KEYS, **style)
    making.add_argument("folder", type=Path)
    making.add_argument("--sites", nargs="+", required=True, metavar="NAME")
    making.add_argument("--hosts", nargs="+", metavar="HOST", help="names by which sites call the server")
    making.add_argument("--overwrite", action="store_true", help="replace keys; every site then needs new ones")
    making.set_defaults(execute=keys)
    showing = actions.add_parser("demo", help="all of it on this machine", description=DEMO, **style)
    showing.add_argument("--sites", type=int, default=3, metavar="N", help="default: %(default)s")
    showing.add_argument("--out", type=Path, default=Path("runs/federation-demo"), metavar="DIR")
    showing.set_defaults(execute=demo)


def server(given: argparse.Namespace) -> int:
    from fedhedge.cli import out, results
    from fedhedge.cli.compilation import keep_compiled
    from fedhedge.deployment.federation import load_federation
    from fedhedge.deployment.flower.serve import serve

    federation = load_federation(given.federation, given.overrides)
    folder: Path = given.out or Path("runs") / federation.name
    out.check_folder(folder)
    if results.finished(folder, federation.settings):
        print(f"{folder}: this run is finished; nothing to do")
        return 0
    keep_compiled()
    _end_on_sigterm()
    run, progress = serve(federation, given.keys, folder, given.host, given.port, _say)
    _write(run, progress, federation, folder)
    return 0


def site(given: argparse.Namespace) -> int:
    from fedhedge.cli.compilation import keep_compiled
    from fedhedge.deployment.flower.serve import take_part
    from fedhedge.deployment.site_file import load_site

    described = load_site(given.site)
    keep_compiled()
    _end_on_sigterm()
    take_part(described, _say)
    return 0


def begin(given: argparse.Namespace) -> int:
    from fedhedge.deployment.site_file import load_site

    described = load_site(given.site)
    print(f"{described.begin()}: begun for site {described.site}, nothing spent; keep it as you keep the table")
    return 0


def keys(given: argparse.Namespace) -> int:
    from fedhedge.deployment.keys import LOCAL, make_keys

    made = make_keys(given.folder, given.sites, given.hosts or LOCAL, overwrite=given.overwrite)
    print(f"{made.authority}: for the server and every site")
    print(f"{made.server}, {made.server_key}: for the server")
    for name, pair in made.sites.items():
        print(f"{pair.private}: for site {name} alone; {pair.public}: for the server")
    print(f"{made.authority_key}: keep offline")
    return 0


def demo(given: argparse.Namespace) -> int:
    from fedhedge.checks import integer
    from fedhedge.deployment.demo import main

    _end_on_sigterm()
    main(given.out, integer("--sites", given.sites, low=2, high=16), _say)
    return 0


def _write(run: Run, progress: Progress, federation: Federation, folder: Path) -> None:
    from fedhedge import files
    from fedhedge.cli import results

    files.write_table(folder / "attendance.parquet", progress.attendance.frame())
    files.write_json(folder / "privacy.json", progress.statements)
    results.write(run, federation.settings, folder, federation.name)
    _say(said(run, folder))
    for name, statement in progress.statements.items():
        _say(f"\n{statement['text'] if statement else f'site {name} states no privacy: the method adds no noise'}")


def _say(text: str) -> None:
    print(text, flush=True)


def _end_on_sigterm() -> None:
    """Leave as from the keyboard when the system asks to, so that children are ended and files closed."""

    def leave(*_: Any) -> None:
        raise KeyboardInterrupt("stopped; the same command goes on from here")

    signal.signal(signal.SIGTERM, leave)

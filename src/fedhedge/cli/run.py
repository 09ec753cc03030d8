"""`fedhedge run`: train by a configuration file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedhedge.simulation import Run

DESCRIPTION = """\
Train one model over many clients as a configuration file says.

The folder gets params.npz (the final parameters), history.parquet (round, client, split, metric, value),
participation.parquet, summary.json, run.npz (all of it, for compare and report), plots, report.html, and while the
run goes a checkpoint about once a second. The same command on the same folder goes on with a run that was stopped,
and leaves a finished one alone.

The file of a real federation (see `fedhedge deploy`) is simulated, with the tables of all sites in one folder.
"""
EXAMPLE = """\
a configuration file:
  rounds = 300                # these have defaults: local_steps, batch_size, seed, evaluate_every, ...
  [data]
  source = "digits"           # see `fedhedge data list`
  [partition]
  name = "ByLabel"            # each client holds few classes
  clients = 30
  classes_per_client = 2
  [availability]
  name = "FixedSize"          # three clients at random get through in a round
  size = 3
  [model]
  name = "MLP"
  hidden = [200]
  [algorithm]
  name = "FedeRage"
  alpha = 0.05

changed from the command line:
  fedhedge run a.toml --set rounds=200 --set algorithm.alpha=0.1
  fedhedge run a.toml --set 'algorithm={name="FedAvg", step=0.1}' --out runs/fedavg
"""


def add(commands: Any, style: dict[str, Any]) -> None:
    parser = commands.add_parser(
        "run", help="train by a configuration file", description=DESCRIPTION, epilog=EXAMPLE, **style
    )
    parser.add_argument("config", type=Path, metavar="CONFIG.toml")
    add_overrides(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the results (default: runs/CONFIG-SEED)")
    parser.add_argument("--quiet", action="store_true", help="print nothing but warnings and errors")
    parser.set_defaults(execute=run)


def add_overrides(parser: argparse.ArgumentParser) -> None:
    """The option --set of every command that reads a configuration file."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="overrides",
        metavar="KEY=VALUE",
        help="change a key before the file is checked, such as algorithm.alpha=0.1; may be repeated",
    )


def run(given: argparse.Namespace) -> int:
    from fedhedge.cli import results
    from fedhedge.cli.compilation import keep_compiled
    from fedhedge.config import load_config
    from fedhedge.deployment.rehearsal import load_rehearsal
    from fedhedge.simulation import simulate

    rehearsal = load_rehearsal(given.config, given.overrides)
    config = rehearsal or load_config(given.config, given.overrides)
    folder: Path = given.out or Path("runs") / f"{config.name}-{config.options.seed}"
    if results.finished(folder, config.settings):
        if not given.quiet:
            print(f"{folder}: this run is finished; nothing to do")
        return 0
    if rehearsal is not None and not given.quiet:
        print(
            f"a simulation of this federation, with its sites' tables in {config.settings['data']['path']}; nobody is"
        )
        print("late, and nothing is masked: of the table [federation], sites, features, classes and constant count")
    keep_compiled()
    try:
        done = simulate(**config.simulation(), checkpoint=folder, progress=False if given.quiet else None)
        results.write(done, config.settings, folder, config.name)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"the same command goes on from the last checkpoint in {folder}") from None
    if not given.quiet:
        print(said(done, folder))
    return 0


def said(run: Run, folder: Path) -> str:
    from fedhedge.cli import results

    lines = [f"{folder}: {run.counts['rounds']} rounds, {run.counts['uploads']} uploads"]
    rare = results.seldom_there(run)
    for split in results.splits(run):
        each = run.clients("accuracy", split)
        line = f"  {split} accuracy: client mean {each.mean():.4f}, worst client {each.min():.4f}"
        if rare:
            line += f", clients seldom there ({', '.join(map(str, rare))}) {each[rare].mean():.4f}"
        lines.append(line)
    if (folder / results.REPORT).exists():
        lines.append(f"  report: {folder / results.REPORT}")
    return "\n".join(lines)

"""Make the environments of the benchmarks: python benchmarks/environments.py FOLDER [NAME ...]

Each peer has its own, so that no peer's dependencies bend another's. One that cannot be made is left out, and the
benchmark that needs it says so. Only the standard library: this runs before anything is installed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TORCH = "torch==2.13.0"
OURS = ["--editable", str(HERE.parent)]
# What pip is told for each environment, one call after another. Everything of ours is measured in "torch".
ENVIRONMENTS = {
    "torch": [[TORCH, *OURS]],
    "cvxpy": [["cvxpy>=1.5", "clarabel", *OURS]],
    "pfl": [["pfl==0.6.0", TORCH]],
    "flower": [["flwr[simulation]==1.42.0", TORCH]],
    # The last release before the one that needs Python 3.14. It asks for 3.12, and runs under 3.11 as it stands.
    "blazefl": [[TORCH, "numpy", "tqdm"], ["--no-deps", "--ignore-requires-python", "blazefl==2.0.3"]],
}
RECORD = "made.json"


def make(folder: Path, calls: list[list[str]]) -> str:
    """Make one environment unless it is there already; returns why it cannot be made, or nothing."""
    record = folder / RECORD
    if record.exists() and json.loads(record.read_text()) == calls:
        return ""
    python = folder / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    commands = [[sys.executable, "-m", "venv", "--clear", str(folder)], *([*pip, *call] for call in calls)]
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if line.strip()]
            errors = [line for line in said if line.startswith("ERROR")]
            return (errors or said or [f"exit status {done.returncode}"])[-1]
    partial = record.with_suffix(".part")
    partial.write_text(json.dumps(calls))
    partial.replace(record)
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ENVIRONMENTS)}; by default all")
    given = parser.parse_args()
    if unknown := set(given.names) - set(ENVIRONMENTS):
        parser.error(f"no environments: {', '.join(sorted(unknown))}; there are {', '.join(ENVIRONMENTS)}")
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    wanted = given.names or list(ENVIRONMENTS)
    missing = {}
    for name in wanted:
        print(f"environment {folder.name}/{name}", flush=True)
        if why := make(folder / name, ENVIRONMENTS[name]):
            print(f"  left out: {why}", flush=True)
            missing[name] = why
    (folder / "missing.json").write_text(json.dumps(missing))
    return 1 if "torch" in missing else 0


if __name__ == "__main__":
    sys.exit(main())

"""Run all benchmarks, or those named, one after another: make bench [BENCH="rounds cnn"], make bench-quick

Each writes NAME.json to the folder of results; benchmarks.md there has the tables of all that are in it, with the
machine they ran on. One that fails is named at the end, and does not keep the others from running.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import results
from turns import HERE, THREADS

from fedhedge import files

TABLES = "benchmarks.md"


@dataclass(frozen=True)
class Benchmark:
    """environment: that it runs in. contenders: starts those of others. alone: on one core and one thread.

    plots: draws figures.
    """

    name: str
    environment: str = "torch"
    contenders: bool = False
    alone: bool = False
    plots: bool = False

    def command(self, environments: Path, folder: Path, quick: bool) -> list[str]:
        command = ["taskset", "-c", "0"] if self.alone else []
        command += [str(environments / self.environment / "bin" / "python"), str(HERE / f"{self.name}.py")]
        command += ["--json", str(folder / f"{self.name}.json")]
        command += ["--environments", str(environments)] if self.contenders else []
        command += ["--plots", str(folder)] if self.plots else []
        return command + (["--quick"] if quick else [])


BENCHMARKS = (
    Benchmark("rounds", contenders=True),
    Benchmark("spread", contenders=True),
    Benchmark("batched"),
    Benchmark("cnn", contenders=True),
    Benchmark("scale"),
    Benchmark("startup"),
    Benchmark("dro_solver", "cvxpy", alone=True),
    Benchmark("dro_growth", "cvxpy", alone=True, plots=True),
    Benchmark("dp_dro", "cvxpy", alone=True),
    Benchmark("pump", alone=True),
)


def machine() -> str:
    """Processor, memory, system and versions, in a sentence each."""
    cpu = Path("/proc/cpuinfo").read_text()
    names = {line.partition(":")[2].strip() for line in cpu.splitlines() if line.startswith("model name")}
    vectors = "AVX-512" if " avx512f " in cpu else "AVX2" if " avx2 " in cpu else "no AVX2"
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    packages = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("jax", "jaxlib", "numpy", "torch"))
    return (
        f"{', '.join(sorted(names)) or platform.machine()} ({vectors}), {len(os.sched_getaffinity(0))} cores, "
        f"{memory:.0f} GiB; {platform.system()} {platform.release()}; Python {platform.python_version()}, {packages}."
    )


def tables(folder: Path, missing: dict[str, str]) -> str:
    """All results in the folder as Markdown."""
    parts = [
        f"Machine: {machine()}",
        "Medians, with the range over the turns. A ratio is that of the same turn, and names what is divided by what.",
    ]
    parts += [f"Environment {name} could not be made: {why}" for name, why in missing.items()]
    for benchmark in BENCHMARKS:
        path = folder / f"{benchmark.name}.json"
        if not path.exists():
            continue
        found = results.read(path)
        parts.append(f"## {found.title}")
        parts.append(f"`make bench BENCH={benchmark.name}` (`{found.command}`; load before it {found.load:.1f})")
        rows = [("what", "median", "range", "target"), ("---",) * 4, *(line.cells() for line in found.lines)]
        parts.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
        parts += found.remarks
    return "\n\n".join(parts) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *(each.name for each in BENCHMARKS)], help="default: all")
    parser.add_argument("--environments", type=Path, required=True, metavar="DIR")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder of results")
    parser.add_argument("--quick", action="store_true", help="a smoke test")
    given = parser.parse_args()
    folder = given.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    missing = json.loads((given.environments / "missing.json").read_text())
    if os.getloadavg()[0] > 0.5:
        print(f"The machine is at work (load {os.getloadavg()[0]:.1f}): numbers will be off.", flush=True)
    failed = []
    for benchmark in BENCHMARKS:
        if given.names and benchmark.name not in given.names:
            continue
        print(f"\n{benchmark.name}", flush=True)
        begun = time.monotonic()
        threads = dict.fromkeys(THREADS, "1") if benchmark.alone else {}
        command = benchmark.command(given.environments.resolve(), folder, given.quick)
        if subprocess.run(command, env=os.environ | threads).returncode:
            failed.append(benchmark.name)
        print(f"({time.monotonic() - begun:.0f} s)", flush=True)
    files.write_text(folder / TABLES, tables(folder, missing))
    print(f"\nTables: {given.out / TABLES}" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

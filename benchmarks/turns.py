"""How contenders are measured: each is a process of its own, in its own environment, and runs one turn when told to.

A contender's script calls `serve`; the benchmark that compares starts the contenders and lets them take turns, so that
a drifting machine hurts all. Only the standard library: each peer lives in an environment of its own.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

HERE = Path(__file__).resolve().parent
QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1", "RAY_USAGE_STATS_ENABLED": "0"}
# Seconds to wait for an answer.
PATIENCE = 300.0
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def serve(name: str, turn: Callable[[], dict[str, float]], warmed: bool = True) -> None:
    """Print the name, then for each line of standard input the numbers of one turn, each as a line of JSON.

    On a terminal one turn is taken without being asked. warmed: whether the first turn makes the later ones quicker.
    """
    # Peers print as they like; the answers go out on a channel of their own.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    print(json.dumps({"name": name, "warmed": warmed}), file=answers)
    for _ in [""] if sys.stdin.isatty() else sys.stdin:
        print(json.dumps(turn()), file=answers)


def falling(before: float, after: float) -> dict[str, float]:
    """The losses before and after a turn; raises RuntimeError unless the model has learnt something."""
    if not after < 0.98 * before:
        raise RuntimeError(f"the loss does not fall: {before:g} before, {after:g} after")
    return {"loss_before": before, "loss_after": after}


class Failed(RuntimeError):
    """A contender ended before it had answered."""


class Contender:
    """A running contender; `turns` holds what it has answered."""

    def __init__(
        self, label: str, environment: Path, arguments: Sequence[str], cores: Sequence[int], said: IO[str]
    ) -> None:
        """Start `arguments`, a script of this folder with its options, on some cores and with as many threads.

        said: a file for what it says beside its answers.
        """
        self.label, self.turns, self._said = label, list[dict[str, float]](), said
        script = [str(environment / "bin" / "python"), str(HERE / arguments[0]), *arguments[1:]]
        self.process = subprocess.Popen(
            ["taskset", "-c", ",".join(map(str, cores)), *script],
            env=os.environ | QUIET | dict.fromkeys(THREADS, str(len(cores))) | {"PYTHONPATH": str(HERE)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            start_new_session=True,
        )
        hello = self._answer()
        self.name, self.warmed = str(hello["name"]), bool(hello["warmed"])

    def turn(self, keep: bool = True) -> None:
        """Let it take one turn; raises Failed with what it said last."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        answer = self._answer()
        if keep:
            self.turns.append(answer)

    def stop(self) -> None:
        """End it: a contender ends when it is asked no more."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._kill()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            self._kill()
            self._said.seek(0)
            raise Failed(f"{self.label}: {self._said.read()[-2000:].strip()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _kill(self) -> None:
        """End it with all processes that it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def race(
    entries: dict[str, tuple[str, ...]], environments: Path, cores: Sequence[int]
) -> Iterator[tuple[dict[str, Contender], dict[str, str]]]:
    """Contenders by label from (environment, script, options ...), warmed up; and why others are not there."""
    running: dict[str, Contender] = {}
    missing: dict[str, str] = {}
    with ExitStack() as stack:
        for label, (environment, *arguments) in entries.items():
            folder = environments / environment
            if not (folder / "made.json").exists():
                missing[label] = f"no environment {environment}"
                continue
            try:
                said = stack.enter_context(tempfile.TemporaryFile("w+"))
                contender = Contender(label, folder, arguments, cores, said)
                stack.callback(contender.stop)
                if contender.warmed:
                    contender.turn(keep=False)
            except Failed as failure:
                missing[label] = str(failure)
                continue
            running[label] = contender
        yield running, missing

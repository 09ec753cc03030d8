"""What stops a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedhedge.algorithms.base import Algorithm


class Diverged(RuntimeError):
    """The aggregate of a round, or a report before it, was not finite; says the round, the client and the likely cause.

    client: the first one whose upload (report: whose report in the first phase) was not finite, or -1 when all were.
    """

    def __init__(
        self, round: int, client: int, names: Sequence[str], algorithm: Algorithm, *, report: bool = False
    ) -> None:
        self.round, self.client = round, client
        inner = algorithm
        while isinstance(getattr(inner, "base", None), Algorithm):
            inner = inner.base  # type: ignore[attr-defined]
        step = getattr(inner, "step", None)
        kappa = getattr(inner, "kappa", 1.0)
        cause = ""
        if report and client < 0:
            dual = getattr(algorithm, "dual_step", None)
            cause = "" if dual is None else f"; the likely cause is a step that is too large: dual_step is {dual:g}"
        elif report and round == 0:
            cause = "; the first model has such a loss or gradient on its rows: look at how large they are"
        elif step is not None:
            scaled = f" (times kappa {kappa:g}: {step * kappa:.3g})" if kappa != 1.0 else ""
            cause = f"; the likely cause is a step that is too large: step is {step:g}{scaled}, try a tenth of it"
        what, of_all = ("report", "what follows from the reports") if report else ("upload", "the aggregate")
        who = f"client {client} ({names[client]}): its {what}" if client >= 0 else f"server: {of_all}"
        advice = f'. on_nonfinite="skip" leaves such {what}s out instead' if client >= 0 else ""
        super().__init__(f"{algorithm.name}, round {round}, {who} is not finite{cause}{advice}")

    def __reduce__(self) -> Any:
        # By default it would be made anew from its message alone, in another process.
        return _again, (str(self), self.round, self.client)


def _again(message: str, round: int, client: int) -> Diverged:
    error = Diverged.__new__(Diverged, message)
    error.round, error.client = round, client
    return error

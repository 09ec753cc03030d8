"""What stops a run."""

from __future__ import annotations

from collections.abc import Sequence

from fedhedge.algorithms.base import Algorithm


class Diverged(RuntimeError):
    """The aggregate of a round was not finite; says the round, the client and the likely cause.

    client: the first one whose upload was not finite, or -1 when all uploads were.
    """

    def __init__(self, round: int, client: int, names: Sequence[str], algorithm: Algorithm) -> None:
        self.round, self.client = round, client
        inner = algorithm
        while isinstance(getattr(inner, "base", None), Algorithm):
            inner = inner.base  # type: ignore[attr-defined]
        step = getattr(inner, "step", None)
        kappa = getattr(inner, "kappa", 1.0)
        cause = ""
        if step is not None:
            scaled = f" (times kappa {kappa:g}: {step * kappa:.3g})" if kappa != 1.0 else ""
            cause = f"; the likely cause is a step that is too large: step is {step:g}{scaled}, try a tenth of it"
        who = f"client {client} ({names[client]}): its upload" if client >= 0 else "server: the aggregate"
        advice = '. on_nonfinite="skip" leaves such uploads out instead' if client >= 0 else ""
        super().__init__(f"{algorithm.name}, round {round}, {who} is not finite{cause}{advice}")

"""What stops a run."""

from __future__ import annotations

from fedhedge.algorithms.base import Algorithm


class Diverged(RuntimeError):
    """A client's upload was not finite; says the round, the client and the likely cause."""

    def __init__(self, round: int, client: int, name: str, algorithm: Algorithm) -> None:
        self.round, self.client = round, client
        step = getattr(algorithm, "step", None)
        kappa = getattr(algorithm, "kappa", 1.0)
        cause = ""
        if step is not None:
            scaled = f" (times kappa {kappa:g}: {step * kappa:.3g})" if kappa != 1.0 else ""
            cause = f"; the likely cause is a step that is too large: step is {step:g}{scaled}, try a tenth of it"
        super().__init__(
            f"round {round}, client {client} ({name}): the upload of {algorithm.name} is not finite{cause}. "
            'on_nonfinite="skip" leaves such uploads out instead'
        )

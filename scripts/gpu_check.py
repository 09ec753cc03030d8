"""Check a GPU: the same results as the CPU within rounding, and the time of Table I's CIFAR-10 column there.

    python scripts/gpu_check.py        # or: make gpu-check

Under 8 minutes. Exit status 0: equal; 1: not equal; 3: JAX sees no GPU, nothing was run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

# Relative to the largest weight, after 20 rounds: single precision with full-precision products, and double.
TOLERANCES = {"FedAvg": 1e-3, "Scaffold": 1e-3, "FedeRage": 1e-3, "DpDroAdmm": 1e-8}
ROUNDS, TIMED = 20, 100


def small_runs(out: Path) -> None:
    """A few rounds of each kind of method on digits, on whatever device JAX takes."""
    import jax

    import fedhedge as fh

    jax.config.update("jax_default_matmul_precision", "highest")
    rare = {27: (8,), 28: (8, 9), 29: (9,)}
    clients = fh.data.load("digits").partition(fh.data.ByLabel(30, classes_per_client=2, reserved=rare), seed=0)
    law = fh.availability.presets.sporadic()
    networks = (fh.algorithms.FedAvg(step=0.1), fh.algorithms.Scaffold(step=0.1), fh.algorithms.FedeRage())
    for method in networks:
        run = fh.simulate(method, fh.models.MLP(hidden=(32,)), clients, law, rounds=ROUNDS, evaluate_every=ROUNDS)
        run.save(out / f"{method.name}.npz")
    private = fh.algorithms.DpDroAdmm.calibrated(fh.Privacy(3.0, 1e-6), ROUNDS)
    settings = {"rounds": ROUNDS, "evaluate_every": ROUNDS, "local_steps": 1, "batch_size": None}
    run = fh.simulate(private, fh.models.CrammerSinger(), clients, law, **settings)
    run.save(out / f"{private.name}.npz")


def timed() -> float:
    """Seconds a round of Table I's CIFAR-10 network, compilation apart; random images, since only shapes matter."""
    import fedhedge as fh

    rng = np.random.default_rng(0)
    images = rng.normal(size=(6_000, 32, 32, 3)).astype(np.float32)
    clients = fh.data.Clients.from_arrays(images, np.arange(6_000) % 10, np.repeat(np.arange(30), 200))
    law, model = fh.availability.FixedSize(size=3), fh.models.CNN(channels=(32, 64), hidden=128)

    def run(rounds: int) -> float:
        start = time.perf_counter()
        fh.simulate(
            fh.algorithms.FedAvg(step=0.03), model, clients, law, rounds=rounds, evaluate_every=TIMED, evaluate_on=()
        )
        return time.perf_counter() - start

    run(TIMED)
    return (run(3 * TIMED) - run(TIMED)) / (2 * TIMED)


def main() -> int:
    """Compare, time, print."""
    import jax

    import fedhedge as fh

    devices = [device for device in jax.devices() if device.platform == "gpu"]
    if not devices:
        print(
            f"no GPU: JAX sees {', '.join(map(str, jax.devices()))}; it needs, for instance, pip install 'jax[cuda12]'"
        )
        return 3
    print(f"GPU: {devices[0].device_kind}; jax {jax.__version__}")
    failed = False
    with tempfile.TemporaryDirectory() as place:
        for name, platforms in (("cpu", "cpu"), ("gpu", "")):
            folder = Path(place) / name
            folder.mkdir()
            environment = os.environ | ({"JAX_PLATFORMS": platforms} if platforms else {})
            subprocess.run([sys.executable, __file__, "--into", str(folder)], env=environment, check=True)
        for name, tolerance in TOLERANCES.items():
            ours, theirs = (fh.Run.load(Path(place) / side / f"{name}.npz").params for side in ("gpu", "cpu"))
            pairs = zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True)
            apart = max(float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-12)) for a, b in pairs)
            failed |= not apart <= tolerance
            print(f"{name}: largest relative difference of weights {apart:.2e} (allowed {tolerance:g})")
    seconds = timed()
    # Final runs: five methods and controls, five seeds, two laws; search: 26 candidates, two seeds, two laws.
    rounds = 5 * 5 * 2 * 10_000 + 26 * 2 * 2 * 3_000
    hours = rounds * seconds / 3600
    print(f"CIFAR-10: {1 / seconds:.0f} rounds/s; Table I's column, {rounds:,} rounds: about {hours:.1f} h")
    return int(failed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--into"]:
        small_runs(Path(sys.argv[2]))
    else:
        sys.exit(main())

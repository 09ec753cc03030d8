"""The plan's numbers against simulation, and its advice against the plan itself."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedhedge import InvalidInput
from fedhedge.privacy import gradient_sensitivity, plan, spent


def test_ratio_is_the_signal_bound_over_the_mean_norm_of_the_noise() -> None:
    clients, rounds = 3, 40
    found = plan(2.0, 1e-6, rounds, 80, features=5, classes=3, clients=clients, lambda_share=0.05)
    sigma = found.noise.model * gradient_sensitivity(80)
    assert found.gradient_sigma == pytest.approx(sigma)
    rng = np.random.default_rng(0)
    norms = np.linalg.norm(sigma * rng.standard_normal((20_000, clients, 15)).mean(axis=1), axis=1)
    # Standard error of the mean norm: 0.13 %; the margin is six of them.
    assert found.signal_to_noise == pytest.approx(math.sqrt(2) / norms.mean(), rel=0.008)
    assert spent(found.noise, rounds, 1e-6) == pytest.approx(2.0)


settings = st.fixed_dictionaries(
    {
        "epsilon": st.floats(0.1, 10),
        "delta": st.just(1e-6),
        "rounds": st.integers(1, 200),
        "samples": st.integers(2, 3000),
        "features": st.integers(1, 30),
        "classes": st.integers(2, 6),
        "clients": st.integers(1, 20),
        "lambda_share": st.sampled_from([0.0, 0.05]),
    }
)


@given(arguments=settings)
def test_following_the_advice_reaches_one_and_less_does_not(arguments: dict[str, Any]) -> None:
    found = plan(**arguments)

    def ratio(**changes: float) -> float:
        return plan(**{**arguments, **changes}).signal_to_noise

    margin = 1e-9
    assert ratio(samples=found.samples_needed) >= 1 - margin
    assert found.samples_needed == 1 or ratio(samples=found.samples_needed - 1) < 1 + margin
    assert ratio(clients=found.clients_needed) >= 1 - margin
    assert found.clients_needed == 1 or ratio(clients=found.clients_needed - 1) < 1 + margin
    if found.rounds_needed is None:
        assert ratio(rounds=1) < 1
    else:
        assert ratio(rounds=found.rounds_needed) >= 1 - margin
        assert ratio(rounds=found.rounds_needed + 1) < 1 + margin
    if found.epsilon_needed > 0:
        assert ratio(epsilon=found.epsilon_needed) == pytest.approx(1, rel=1e-6)


def test_text_for_the_command_line() -> None:
    small = plan(3, 1e-6, 50, 30)
    text = str(small)
    assert small.signal_to_noise < 1
    assert "Each round would be mostly noise" in text
    for number in (small.rounds_needed, small.samples_needed, small.clients_needed):
        assert f"at {'most' if number == small.rounds_needed else 'least'} {number}" in text
    assert f"{small.epsilon_needed:.4g} (weaker privacy)" in text
    assert "mostly noise" not in str(plan(3, 1e-6, 50, 3000))
    assert "no number of rounds" in str(replace(small, rounds_needed=None))
    assert "on lambda" in str(plan(3, 1e-6, 50, 30, lambda_share=0.05))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"delta": 0.1}, "delta at site 'every client': received 0.1; allowed: a number below 1/n = 0.0333"),
        ({"epsilon": 0}, "epsilon: received 0"),
        ({"rounds": 0}, "rounds: received 0"),
        ({"samples": 0}, "samples: received 0"),
        ({"classes": 1}, "classes: received 1"),
    ],
)
def test_bad_arguments(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        plan(**{"epsilon": 3, "delta": 1e-6, "rounds": 50, "samples": 30, **changes})

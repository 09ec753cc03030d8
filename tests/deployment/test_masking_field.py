"""Shamir's sharing against all polynomials of a small field and a published example; the quantiser against integers."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedhedge import InvalidInput
from fedhedge.deployment.masking_field import PRIME, evaluate, reconstruct, recover, split
from fedhedge.deployment.masking_numbers import Quantiser


def test_published_example() -> None:
    """1234 + 166 x + 94 x^2 mod 1613 and its six shares (Wikipedia, "Shamir's secret sharing")."""
    shares = {1: 1494, 2: 329, 3: 965, 4: 176, 5: 1188, 6: 775}
    assert {place: evaluate([1234, 166, 94], place, 1613) for place in shares} == shares
    for three in itertools.combinations(shares.items(), 3):
        assert reconstruct(dict(three), prime=1613) == 1234


@pytest.mark.parametrize(("prime", "threshold"), [(5, 2), (5, 3), (7, 3)])
def test_fewer_shares_than_the_threshold_fit_every_secret_equally_often(prime: int, threshold: int) -> None:
    places = range(1, min(prime, 5))
    for held in itertools.combinations(places, threshold - 1):
        seen = {secret: Counter() for secret in range(prime)}
        for coefficients in itertools.product(range(prime), repeat=threshold):
            seen[coefficients[0]][tuple(evaluate(coefficients, place, prime) for place in held)] += 1
        assert all(counts == seen[0] for counts in seen.values())
    for held in itertools.combinations(places, threshold):
        for coefficients in itertools.product(range(prime), repeat=threshold):
            shares = {place: evaluate(coefficients, place, prime) for place in held}
            assert reconstruct(shares, prime=prime) == coefficients[0]


@given(secret=st.integers(0, 2**256 - 1), count=st.integers(1, 7), data=st.data())
def test_any_threshold_of_shares_gives_the_secret_and_one_less_does_not(
    secret: int, count: int, data: st.DataObject
) -> None:
    threshold = data.draw(st.integers(1, count))
    shares = dict(enumerate(split(secret, count, threshold), start=1))
    some = data.draw(st.permutations(sorted(shares)))[:threshold]
    assert reconstruct({place: shares[place] for place in some}) == secret
    assert recover(shares, threshold) == secret
    if threshold > 1:
        fewer = {place: shares[place] for place in some[1:]}
        assert reconstruct(fewer) != secret  # equal by chance: once in 2^256
        assert recover(fewer, threshold) is None
    if count > threshold:
        assert recover(shares | {count: (shares[count] + 1) % PRIME}, threshold) is None


def test_shares_are_drawn_afresh() -> None:
    assert split(5, 3, 2) != split(5, 3, 2)
    assert split(5, 3, 1) == [5, 5, 5]


def test_shares_are_uniform_whatever_the_secret() -> None:
    """Exact law by enumeration is above; here that the coefficients drawn have it: 2000 draws mod 5."""
    for secret in (0, 4):
        counts = Counter(split(secret, 2, 2, prime=5)[0] for _ in range(2000))
        # Hoeffding: one count off by 120 of 400 has probability below 2 exp(-2 120^2 / 2000) = 1.2e-6, times 10; 160:
        assert all(abs(counts[value] - 400) < 160 for value in range(5))  # below 10 * 2 exp(-25.6) = 2e-10


def is_probable_prime(number: int) -> bool:
    """Miller-Rabin to the first 20 prime bases."""
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71):
        power = pow(base, odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True


def test_the_field_is_the_least_prime_one_that_holds_32_bytes() -> None:
    assert is_probable_prime(PRIME)
    assert not any(is_probable_prime(2**256 + offset) for offset in range(297))


def test_sharing_refuses_what_makes_no_sense() -> None:
    for secret, count, threshold in ((1, 3, 4), (1, 3, 0), (1, 0, 1), (-1, 3, 2), (PRIME, 3, 2)):
        with pytest.raises(InvalidInput):
            split(secret, count, threshold)
    with pytest.raises(InvalidInput, match="count"):
        split(1, 5, 2, prime=5)
    with pytest.raises(InvalidInput) as refusal:
        split(PRIME + 12345, 3, 2)
    assert "12345" not in str(refusal.value)


@st.composite
def sums(draw: st.DrawFn) -> tuple[Quantiser, list[list[float]]]:
    quantiser = Quantiser(draw(st.sampled_from([32, 64])), draw(st.integers(-5, 25)))
    clients, length = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    most = quantiser.largest(clients)
    number = st.floats(-most, most) | st.sampled_from([most, -most, 0.0, quantiser.step / 2])
    return quantiser, draw(
        st.lists(st.lists(number, min_size=length, max_size=length), min_size=clients, max_size=clients)
    )


@given(case=sums())
def test_sums_of_residues_are_the_sums_of_the_rounded_numbers(case: tuple[Quantiser, list[list[float]]]) -> None:
    quantiser, rows = case
    total = np.zeros(len(rows[0]), quantiser.dtype)
    for row in rows:
        encoded = quantiser.encode(np.array(row), len(rows))
        alone = quantiser.decode(encoded)
        assert np.all(np.abs(alone - np.array(row)) <= quantiser.step / 2)
        total = total + encoded
    exact = [sum(round(value / quantiser.step) for value in column) for column in zip(*rows, strict=True)]
    assert quantiser.decode(total).tolist() == [value * quantiser.step for value in exact]


@pytest.mark.parametrize("bits", [32, 64])
def test_one_step_too_many_is_refused(bits: int) -> None:
    quantiser = Quantiser(bits, 10)
    for clients in (1, 3, 8):
        most = quantiser.largest(clients)
        quantiser.encode(np.array([most, -most]), clients)
        for wrong in (most + quantiser.step, -most - quantiser.step, math.inf, -math.inf, math.nan, 1e300):
            with pytest.raises(InvalidInput, match=rf"upload: received .*entry 1; {clients} of them"):
                quantiser.encode(np.array([0.0, wrong]), clients)


def test_quantisers_that_cannot_be() -> None:
    for settings in ({"bits": 16}, {"fraction": 1001}, {"fraction": 0.5}):
        with pytest.raises(InvalidInput):
            Quantiser(**settings)

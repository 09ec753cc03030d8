"""Shamir's secret sharing over a prime field: any `threshold` shares give the secret, fewer say nothing of it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from fedhedge import checks

# The smallest prime above 2^256, so that every secret of 32 bytes is an element of the field.
PRIME = 2**256 + 297
SHARE_BYTES = 33


def split(secret: int, count: int, threshold: int, prime: int = PRIME) -> list[int]:
    """Shares of the places 1 to `count`: values there of a random polynomial of degree threshold - 1, `secret` at 0.

    Source: Shamir 1979, "How to share a secret". Raises InvalidInput unless 1 <= threshold <= count < prime and
    0 <= secret < prime.
    """
    checks.integer("threshold", threshold, low=1, high=checks.integer("count", count, low=1))
    if not 0 <= secret < prime:
        raise checks.InvalidInput("secret", "(hidden)", "a whole number from 0 to below the prime")
    if count >= prime:
        raise checks.InvalidInput("count", count, f"a number below the prime {prime}")
    coefficients = [secret, *(secrets.randbelow(prime) for _ in range(threshold - 1))]
    return [evaluate(coefficients, place, prime) for place in range(1, count + 1)]


def evaluate(coefficients: Sequence[int], place: int, prime: int = PRIME) -> int:
    """sum_k coefficients[k] place^k mod prime."""
    value = 0
    for coefficient in reversed(coefficients):
        value = (value * place + coefficient) % prime
    return value


def reconstruct(shares: Mapping[int, int], at: int = 0, prime: int = PRIME) -> int:
    """The value at `at` (the secret at 0) of the polynomial of degree len(shares) - 1 through {place: share}.

    Lagrange: sum_j share_j prod_{m != j} (at - m) / (j - m) mod prime. Any shares give some number: whether there are
    enough of them is for the caller to know.
    """
    total = 0
    for place, share in shares.items():
        above = below = 1
        for other in shares:
            if other != place:
                above = above * (at - other) % prime
                below = below * (place - other) % prime
        total += share * above * pow(below, -1, prime)
    return total % prime


def recover(shares: Mapping[int, int], threshold: int, prime: int = PRIME) -> int | None:
    """The secret from `threshold` or more shares; None where they do not lie on one polynomial of that degree."""
    places = sorted(shares)
    first = {place: shares[place] for place in places[:threshold]}
    agree = all(reconstruct(first, place, prime) == shares[place] for place in places[threshold:])
    return reconstruct(first, prime=prime) if agree and len(first) == threshold else None

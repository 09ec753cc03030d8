"""Secure aggregation: the sum is exact, and what the server sees of one upload is noise to it.

Keys and masks come from entropy that takes no seed, so every test of a random outcome is made to fail by chance less
than once in ten million runs.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from fedhedge import InvalidInput

pytest.importorskip("cryptography", reason="cryptography (extra `flower`) is not installed")
from deployment.masked_sums import (
    KEYS,
    MASKED,
    REVEALED,
    SHARES,
    STAYS,
    Sum,
    expected,
    prepared,
    read,
    request,
    session,
    uploads,
)
from fedhedge.deployment import masking_crypto as crypto
from fedhedge.deployment.masking import Aborted, BadMessage, MaskingClient, Quantiser, Session
from fedhedge.deployment.masking_field import recover
from fedhedge.deployment.masking_pairs import pair_mask

FALSE_ALARM = 1e-8


def patterns(of: Session) -> list[dict[str, int]]:
    """Every way in which clients within the tolerance stop, each at its own trip."""
    found = []
    for lost in range(len(of.clients) - of.threshold + 1):
        for who in itertools.combinations(of.clients, lost):
            stops = itertools.product((KEYS, SHARES, MASKED, REVEALED), repeat=lost)
            found += [dict(zip(who, stop, strict=True)) for stop in stops]
    return found


def check_sums(of: Session, tried: list[dict[str, int]]) -> None:
    values = uploads(of)
    for stops in tried:
        total = Sum(of).run(values, stops)
        present = {name for name in of.clients if stops.get(name, STAYS) > MASKED}
        assert set(total.survivors) == present, stops
        assert np.array_equal(total.values, expected(of, values, present)), stops


@pytest.mark.parametrize("count", [3, 4, 5])
def test_sum_is_exact_for_every_pattern_of_dropout_within_tolerance(count: int) -> None:
    of = session(count)
    tried = patterns(of)
    assert len(tried) == {3: 13, 4: 17, 5: 181}[count]
    check_sums(of, tried)


def test_sum_of_six_is_exact_whoever_stops_together() -> None:
    of = session(6)
    tried = [stops for stops in patterns(of) if len(set(stops.values())) <= 1]
    assert len(tried) == 1 + 4 * (6 + 15)
    check_sums(of, tried)


@pytest.mark.slow
def test_sum_of_six_is_exact_for_every_pattern_of_dropout_within_tolerance() -> None:
    of = session(6)
    tried = patterns(of)
    assert len(tried) == 265
    check_sums(of, tried)


@pytest.mark.parametrize("stop", [KEYS, SHARES, MASKED, REVEALED])
def test_beyond_the_tolerance_nothing_is_opened(stop: int) -> None:
    of = session(5)
    run = Sum(of)
    with pytest.raises(Aborted, match=r"2 of 5 clients, and 3 are needed"):
        run.run(uploads(of), dict.fromkeys(of.clients[:3], stop))
    with pytest.raises(Aborted, match="not come to its end"):
        _ = run.server.total
    revealed = [name for trip, name in run.sent if trip == "revealed"]
    assert len(revealed) == (2 if stop == REVEALED else 0)
    with pytest.raises(BadMessage, match="no longer"):
        run.server.receive("site-4", run.sent["keys", "site-4"])


def test_clients_open_nothing_for_fewer_survivors_than_the_threshold() -> None:
    of = session(5)
    run, _ = prepared(of, 3)
    client = run.clients["site-0"]
    for survivors in (["site-0"], ["site-0", "site-1"]):
        with pytest.raises(Aborted, match="3 are needed"):
            client.unmask(request(of, survivors))
    for survivors in (["site-1", "site-2", "site-3"], ["site-0", "site-0", "site-1"], ["site-0", "me", "you"], "all"):
        with pytest.raises(BadMessage):
            client.unmask(request(of, survivors))  # type: ignore[arg-type]
    assert client.step == "unmask"


def test_no_client_reveals_both_secrets_of_anyone() -> None:
    of = session(6)
    run = Sum(of)
    run.run(uploads(of), {"site-1": MASKED, "site-2": SHARES})
    for name in run.server.total.survivors:
        body = json.loads(run.sent["revealed", name].partition(b"\n")[0])["body"]
        assert set(body["seeds"]) == {"site-0", "site-3", "site-4", "site-5"}
        assert set(body["keys"]) == {"site-1"}
    client = run.clients["site-0"]
    for survivors in (["site-0", "site-3", "site-4", "site-5"], ["site-0", "site-1", "site-3", "site-4", "site-5"]):
        with pytest.raises(BadMessage, match="asked to unmask, but what comes next is 'over'"):
            client.unmask(request(of, survivors))
    assert client.store() == MaskingClient.restore(client.store(), of, "site-0").store()
    assert b"hex" not in client.store().replace(b'{"hex": ""}', b"")  # no secret is left


def test_one_request_can_never_open_a_second_list() -> None:
    """Two lists of survivors that between them would give both secrets of site-0."""
    of = session(4)
    run, _ = prepared(of, 3)
    run.clients["site-1"].unmask(request(of, ["site-0", "site-1", "site-2"]))
    with pytest.raises(BadMessage, match="over"):
        run.clients["site-1"].unmask(request(of, ["site-1", "site-2", "site-3"]))


def looks_uniform(residues: np.ndarray) -> bool:
    """Chi-square over the values of single bytes, and Kolmogorov-Smirnov over the residues, at the level stated."""
    counts = np.bincount(residues.view(np.uint8), minlength=256)
    scaled = residues.astype(np.float64) / 2.0 ** (8 * residues.itemsize)
    return min(stats.chisquare(counts).pvalue, stats.kstest(scaled, "uniform").pvalue) > FALSE_ALARM


@pytest.mark.parametrize("bits", [32, 64])
def test_all_that_the_server_sees_of_an_upload_is_uniform(bits: int) -> None:
    of = session(3, 20_000, quantiser=Quantiser(bits, 12))
    values = {name: np.full(of.length, 7.5) for name in of.clients}
    assert not looks_uniform(of.quantiser.encode(values["site-0"], 3))  # the test can tell
    run = Sum(of)
    run.run(values)
    for name in of.clients:
        upload = read(of, run.sent["masked", name])
        assert looks_uniform(upload)
        # After the last trip the server knows every survivor's seed as well; the masks of pairs are left.
        shares = {
            of.place(other): int(json.loads(run.sent["revealed", other].partition(b"\n")[0])["body"]["seeds"][name], 16)
            for other in of.clients
        }
        seed = recover(shares, of.threshold)
        assert seed is not None
        rest = upload - crypto.stream(seed.to_bytes(32, "big"), of.length, of.quantiser)
        assert looks_uniform(rest)
        assert not np.array_equal(rest, of.quantiser.encode(values[name], 3))


def test_an_upload_that_comes_too_late_stays_hidden() -> None:
    of = session(4, 20_000)
    values = {name: np.full(of.length, 7.5) for name in of.clients}
    run, asked = prepared(of, 2)
    late = run.clients["site-0"].mask(asked.pop("site-0"), values["site-0"])
    while asked:
        asked = run.trip(asked, {"site-0"}, values)
    with pytest.raises(BadMessage):
        run.server.receive("site-0", late)
    # The survivors opened the mask key of site-0: whoever holds it takes off the masks of all its pairs.
    shares, publics = {}, {}
    for other in of.clients[1:]:
        body = json.loads(run.sent["revealed", other].partition(b"\n")[0])["body"]
        assert "site-0" not in body["seeds"]
        shares[of.place(other)] = int(body["keys"]["site-0"], 16)
        publics[other] = bytes.fromhex(json.loads(run.sent["keys", other].partition(b"\n")[0])["body"]["mask"])
    key = recover(shares, of.threshold)
    assert key is not None
    rest = read(of, late)
    for other, public in publics.items():
        rest = rest - pair_mask(of, key.to_bytes(32, "big"), "site-0", public, other)
    assert looks_uniform(rest)
    # Only its own seed hides it now, which the clients hold shares of and reveal to nobody.
    seed = bytes.fromhex(json.loads(run.clients["site-0"].store())["seed"]["hex"])
    bare = rest - crypto.stream(seed, of.length, of.quantiser)
    assert np.array_equal(bare, of.quantiser.encode(values["site-0"], 4))


def test_views_of_two_inputs_differ_by_randomness_only() -> None:
    of = session(3, 20_000)
    counts = []
    for level in (0.0, -123.25):
        run, asked = prepared(of, 2)
        message = run.clients["site-0"].mask(asked["site-0"], np.full(of.length, level))
        assert len(message) == len(run.clients["site-1"].mask(asked["site-1"], np.zeros(of.length)))
        counts.append(np.bincount(read(of, message).view(np.uint8), minlength=256))
    assert stats.chi2_contingency(counts).pvalue > FALSE_ALARM
    # The mask does not depend on the input: with the same secrets, uploads are as far apart as the inputs.
    run, asked = prepared(of, 2)
    stored, first = run.clients["site-0"].store(), np.full(of.length, 4.0)
    views = [
        read(of, MaskingClient.restore(stored, of, "site-0").mask(asked["site-0"], values))
        for values in (first, 0.0 * first)
    ]
    assert np.array_equal(views[0] - views[1], of.quantiser.encode(first, 3))


def test_a_second_upload_under_the_same_mask_is_refused() -> None:
    of = session()
    run, asked = prepared(of, 2)
    run.clients["site-0"].mask(asked["site-0"], np.zeros(5))
    with pytest.raises(BadMessage, match="asked to mask"):
        run.clients["site-0"].mask(asked["site-0"], np.ones(5))
    with pytest.raises(BadMessage, match="asked to share"):
        run.clients["site-0"].share(run.got["shares", "site-0"])
    with pytest.raises(BadMessage, match="asked to advertise"):
        run.clients["site-0"].advertise()


def test_overflow_is_refused_before_anything_is_masked() -> None:
    of = session()
    run, asked = prepared(of, 2)
    client = run.clients["site-0"]
    for values in (np.full(5, 1e12), np.array([0, 0, np.nan, 0, 0]), np.zeros(4), np.zeros((5, 1))):
        with pytest.raises(InvalidInput, match="upload"):
            client.mask(asked["site-0"], values)
    assert client.step == "mask"
    client.mask(asked["site-0"], np.zeros(5))


def test_clients_go_on_in_other_processes() -> None:
    of = session(4)
    values, run = uploads(of), Sum(of)
    asked = dict.fromkeys(of.clients, b"")
    while asked:
        absent = {"site-2"} if run.server.trip == "masked" else set()
        asked = run.trip(asked, absent, values)
        run.clients = {name: MaskingClient.restore(client.store(), of, name) for name, client in run.clients.items()}
    assert np.array_equal(run.server.total.values, expected(of, values, set(of.clients) - {"site-2"}))


TRIPS = ("keys", "shares", "masked", "revealed")


@pytest.mark.parametrize("count", [4, 10, 30])
def test_bytes_on_the_wire_are_those_of_the_page(count: int) -> None:
    of = session(count, 1000)
    run = Sum(of)
    run.run({name: np.zeros(1000) for name in of.clients})
    last = of.clients[-1]
    sent = [len(run.sent[trip, last]) for trip in TRIPS]
    got = [len(run.got[trip, last]) for trip in TRIPS[1:]]
    page = (Path(__file__).parents[2] / "docs" / "secure-aggregation.md").read_text()
    assert "| " + " | ".join(map(str, [count, *sent, *got])) + " |" in page


def test_only_uploads_grow_with_the_model() -> None:
    sizes = []
    for length in (10, 10_000):
        of = session(5, length)
        run = Sum(of)
        run.run({name: np.zeros(length) for name in of.clients})
        sizes.append([len(run.sent[trip, "site-0"]) for trip in TRIPS])
        sizes[-1][2] -= 8 * length
    # The head of an upload does not name its length.
    assert sizes[0] == sizes[1]

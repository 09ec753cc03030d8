"""What signatures add against a server that does not follow the protocol, and sessions that cannot be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from fedhedge import InvalidInput

pytest.importorskip("cryptography", reason="cryptography (extra `flower`) is not installed")
from deployment.masked_sums import (
    MASKED,
    REVEALED,
    SHARES,
    STAYS,
    Sum,
    changed,
    expected,
    names,
    prepared,
    request,
    session,
    uploads,
)
from fedhedge.deployment import masking_crypto as crypto
from fedhedge.deployment.keys import load_private, load_public, make_site_keys
from fedhedge.deployment.masking import Aborted, BadMessage, MaskingClient, MaskingServer, Quantiser, Session, Signing
from fedhedge.deployment.masking_field import SHARE_BYTES, recover
from fedhedge.deployment.masking_pairs import sealing_key


@pytest.fixture(scope="module")
def signings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Signing]:
    pairs = make_site_keys(tmp_path_factory.mktemp("keys"), names(6))
    roster = {name: load_public(pair.public) for name, pair in pairs.items()}
    return {name: Signing(load_private(pair.private), roster) for name, pair in pairs.items()}


@pytest.mark.parametrize("bits", [32, 64])
def test_signed_sums_are_exact(bits: int, signings: Mapping[str, Signing]) -> None:
    of = session(5, signed=True, quantiser=Quantiser(bits, 16))
    values = uploads(of)
    for stops in ({}, {"site-0": MASKED, "site-3": REVEALED}, {"site-1": SHARES, "site-4": MASKED}):
        total = Sum(of, signings).run(values, stops)
        present = {name for name in of.clients if stops.get(name, STAYS) > MASKED}
        assert np.array_equal(total.values, expected(of, values, present))
        assert total.mean == pytest.approx(np.mean([values[name] for name in sorted(present)], axis=0), abs=2.0**-17)


def in_the_middle(of: Session, run: Sum, roster: bytes) -> tuple[bytes, dict[str, bytes]]:
    """The roster with keys of the server's own in place of everyone's but site-0's, and its private key."""
    private = {name: crypto.new_private() for name in of.clients}

    def change(body: dict[str, Any]) -> None:
        for name in of.clients[1:]:
            body["keys"][name]["seal"] = crypto.public_of(private[name]).hex()
            body["keys"][name]["mask"] = crypto.public_of(crypto.new_private()).hex()

    return changed(roster, change), private


def test_an_active_server_reads_the_shares_of_an_unsigned_session() -> None:
    """What docs/secure-aggregation.md says is not covered: without signatures keys can be exchanged on the way."""
    of = session()
    run, asked = prepared(of, 1)
    roster, private = in_the_middle(of, run, asked["site-0"])
    body = json.loads(run.clients["site-0"].share(roster).partition(b"\n")[0])["body"]
    public = bytes.fromhex(json.loads(run.sent["keys", "site-0"].partition(b"\n")[0])["body"]["seal"])
    seeds = {}
    for name, sealed in body["sealed"].items():
        key = sealing_key(of, private[name], public, "site-0", name)
        parts = crypto.unseal(key, bytes.fromhex(sealed), of.between("site-0", name))
        seeds[of.place(name)] = int.from_bytes(parts[SHARE_BYTES:], "big")
    seed = recover(seeds, of.threshold)
    assert seed == int(json.loads(run.clients["site-0"].store())["seed"]["hex"], 16)


def test_a_signed_session_refuses_exchanged_keys(signings: Mapping[str, Signing]) -> None:
    of = session(signed=True)
    run, asked = prepared(of, 1, signings)
    with pytest.raises(BadMessage, match="signature of 'site-1': a signature that is not of the claimed sender"):
        run.clients["site-0"].share(in_the_middle(of, run, asked["site-0"])[0])
    with pytest.raises(BadMessage, match="signature of 'site-2': not hexadecimal"):
        run.clients["site-0"].share(changed(asked["site-0"], lambda body: body["keys"]["site-2"].pop("signature")))
    fresh, _ = prepared(of, 0, signings)
    with pytest.raises(BadMessage, match="signature of 'site-0'"):
        fresh.server.receive("site-0", changed(fresh.clients["site-0"].advertise(), lambda b: b.update(signature="00")))


def test_a_signed_session_opens_the_one_list_that_enough_signed(signings: Mapping[str, Signing]) -> None:
    of = session(5, signed=True)
    run, asked = prepared(of, 3, signings)
    client, everyone = run.clients["site-0"], list(of.clients)
    with pytest.raises(BadMessage, match="what comes next is 'agree'"):
        client.unmask(request(of, everyone))
    asked = run.trip(asked, set(), {})
    signatures = json.loads(asked["site-0"].partition(b"\n")[0])["body"]["signatures"]
    with pytest.raises(BadMessage, match="not the list that this client signed"):
        client.unmask(request(of, everyone[:4], signatures=signatures))
    with pytest.raises(Aborted, match="survivors that signed: 2 of 5"):
        client.unmask(request(of, everyone, signatures={name: signatures[name] for name in everyone[:2]}))
    forged = signatures | {"site-1": signatures["site-2"]}
    with pytest.raises(BadMessage, match="signature of 'site-1'"):
        client.unmask(request(of, everyone, signatures=forged))
    with pytest.raises(BadMessage, match="signatures"):
        client.unmask(request(of, everyone))
    client.unmask(asked["site-0"])
    with pytest.raises(BadMessage, match="asked to agree"):
        client.agree(run.got["agreed", "site-0"])


def test_server_refuses_a_list_signed_by_someone_else(signings: Mapping[str, Signing]) -> None:
    of = session(signed=True)
    run, asked = prepared(of, 3, signings)
    answer = run.clients["site-0"].agree(asked["site-0"])
    with pytest.raises(BadMessage, match="signature of 'site-1'"):
        run.server.receive("site-1", answer.replace(b'"site-0"', b'"site-1"'))
    run.server.receive("site-0", answer)


def test_sessions_that_cannot_be(signings: Mapping[str, Signing]) -> None:
    for settings, message in (
        ({"clients": ("a", "b")}, "3 or more different names"),
        ({"clients": ("a", "b", "b")}, "different names"),
        ({"clients": "abc"}, "a list of names"),
        ({"clients": ("a", "b", "")}, "different names"),
        ({"threshold": 2, "clients": names(4)}, "threshold: received 2; allowed: a whole number from 3 to 4"),
        ({"threshold": 5, "clients": names(4)}, "from 3 to 4"),
        ({"length": 0}, "length"),
        ({"experiment": ""}, "experiment"),
        ({"round": -1}, "round"),
        ({"signed": 1}, "signed"),
    ):
        with pytest.raises(InvalidInput, match=message):
            Session(**({"experiment": "e", "round": 0, "clients": names(3), "length": 1} | settings))  # type: ignore[arg-type]
    assert [session(count).threshold for count in (3, 4, 5, 6, 7)] == [2, 3, 3, 4, 4]
    assert Session("e", 0, ("b", "a", "c"), 1).digest == Session("e", 0, ("c", "b", "a"), 1).digest
    with pytest.raises(InvalidInput, match="name: received 'nobody'"):
        MaskingClient(session(), "nobody")
    with pytest.raises(InvalidInput, match="signing"):
        MaskingClient(session(signed=True), "site-0")
    with pytest.raises(InvalidInput, match="signing"):
        MaskingClient(session(), "site-0", signings["site-0"])
    incomplete = {name: key for name, key in signings["site-0"].roster.items() if name != "site-1"}
    for make in (
        lambda of: MaskingClient(of, "site-0", Signing(signings["site-0"].private, incomplete)),
        lambda of: MaskingServer(of, incomplete),
        lambda of: MaskingServer(of),
    ):
        with pytest.raises(InvalidInput, match=r"roster: received .*site-1.*missing"):
            make(session(signed=True))

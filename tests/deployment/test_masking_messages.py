"""Messages of a masked sum that are cut, changed, repeated, or of another session are refused, and change nothing."""

from __future__ import annotations

import functools
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("cryptography", reason="cryptography (extra `flower`) is not installed")
from deployment.masked_sums import MASKED, Sum, changed, names, prepared, session, uploads
from fedhedge.deployment import masking_crypto as crypto
from fedhedge.deployment.masking import Aborted, BadMessage, MaskingClient, MaskingServer, Quantiser, Session
from fedhedge.deployment.masking_field import SHARE_BYTES
from fedhedge.deployment.masking_pairs import sealing_key


def test_messages_that_are_cut_are_refused() -> None:
    of = session()
    run = Sum(of)
    run.run(uploads(of), {"site-3": MASKED})
    for trip, until in (("keys", 0), ("shares", 1), ("masked", 2), ("revealed", 3)):
        fresh, asked = prepared(of, until)
        good = fresh.answer("site-0", asked.get("site-0", b""), uploads(of)["site-0"])
        for cut in {0, 1, len(good) // 3, good.index(b"\n"), len(good) - 1}:
            with pytest.raises(BadMessage, match="site-0"):
                fresh.server.receive("site-0", good[:cut])
        if trip == "masked":
            with pytest.raises(BadMessage, match=r"48 bytes, not 40"):
                fresh.server.receive("site-0", good + bytes(8))
        fresh.server.receive("site-0", good)
    for step, until in (("share", 1), ("mask", 2), ("unmask", 3)):
        fresh, asked = prepared(of, until)
        good = asked["site-1"]
        for cut in {0, len(good) // 3, good.index(b"\n")}:
            with pytest.raises(BadMessage, match="malformed or cut"):
                fresh.answer("site-1", good[:cut], np.zeros(5))
        assert fresh.clients["site-1"].step == step
        fresh.answer("site-1", good, np.zeros(5))


def test_messages_out_of_place_are_refused() -> None:
    of = session()
    run, asked = prepared(of, 1)
    keys = run.sent["keys", "site-0"]
    with pytest.raises(BadMessage, match="of kind 'keys' where 'shares' is due"):
        run.server.receive("site-0", keys)
    shares = run.clients["site-0"].share(asked["site-0"])
    run.server.receive("site-0", shares)
    with pytest.raises(BadMessage, match="here already"):
        run.server.receive("site-0", shares)
    with pytest.raises(BadMessage, match="says that it is from 'site-0'"):
        run.server.receive("site-1", shares)
    with pytest.raises(BadMessage, match="part of this session"):
        run.server.receive("stranger", shares)
    with pytest.raises(BadMessage, match="not bytes but str"):
        run.server.receive("site-1", "text")  # type: ignore[arg-type]
    # Of another round, experiment, attempt, or of other settings.
    for other in (
        session(round=4),
        session(attempt=1),
        session(length=6),
        session(threshold=4),
        session(quantiser=Quantiser(64, 20)),
        session(5),
        Session("run-b", 3, names(4), 5),
    ):
        there, _ = prepared(other, 1)
        with pytest.raises(BadMessage, match="of another experiment, round, attempt"):
            there.server.receive("site-0", shares)
        with pytest.raises(BadMessage, match="of another experiment, round, attempt"):
            there.clients["site-0"].share(asked["site-0"])


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.clear(),
        lambda body: body.update(seal=3),
        lambda body: body.update(mask="zz"),
        lambda body: body.update(mask="00"),
        lambda body: body.update(mask="00" * 32),  # of low order: agrees on a constant with everyone
        lambda body: body.update(seal=("01" + "00" * 31)),
    ],
)
def test_keys_that_are_none(change: Any) -> None:
    run, _ = prepared(session(), 0)
    with pytest.raises(BadMessage, match="keys of 'site-0'"):
        run.server.receive("site-0", changed(run.clients["site-0"].advertise(), change))


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body["keys"].pop("site-0"),
        lambda body: body["keys"].update({"site-0": body["keys"]["site-1"]}),
        lambda body: body["keys"].update({"site-2": body["keys"]["site-1"]}),
        lambda body: body["keys"].update({"site-9": body["keys"]["site-1"]}),
        lambda body: body["keys"].update({"site-1": "none"}),
        lambda body: body["keys"]["site-1"].update(seal="00" * 32),
        lambda body: body.update(keys=[["site-0"]]),
    ],
)
def test_rosters_that_are_none(change: Any) -> None:
    run, asked = prepared(session(), 1)
    with pytest.raises(BadMessage):
        run.clients["site-0"].share(changed(asked["site-0"], change))
    assert run.clients["site-0"].step == "share"


def test_sealed_shares_open_for_their_reader_only_and_unchanged() -> None:
    run, asked = prepared(session(), 2)
    client = run.clients["site-0"]

    def flipped(body: dict[str, Any]) -> None:
        text = body["sealed"]["site-1"]
        body["sealed"]["site-1"] = text[:-1] + ("0" if text[-1] != "0" else "1")

    def exchanged(body: dict[str, Any]) -> None:
        sealed = body["sealed"]
        sealed["site-1"], sealed["site-2"] = sealed["site-2"], sealed["site-1"]

    for change in (flipped, exchanged, lambda body: body["sealed"].update({"site-1": ""})):
        with pytest.raises(BadMessage, match=r"share of 'site-[12]': a sealed text that does not open"):
            client.mask(changed(asked["site-0"], change), np.zeros(5))
    with pytest.raises(BadMessage, match="share of 'site-1': a sealed text that does not open"):
        client.mask(asked["site-3"].replace(b'"site-0"', b'"site-3"'), np.zeros(5))
    with pytest.raises(BadMessage, match="not hexadecimal"):
        client.mask(changed(asked["site-0"], lambda body: body["sealed"].update({"site-2": 1})), np.zeros(5))
    with pytest.raises(BadMessage, match="not in the roster"):
        client.mask(changed(asked["site-0"], lambda body: body["sealed"].update({"site-0": "00"})), np.zeros(5))
    # What a client seals well may still be no share.
    sender = json.loads(run.clients["site-1"].store())
    private, public = bytes.fromhex(sender["seal_private"]["hex"]), bytes.fromhex(sender["publics"]["site-0"][0]["hex"])
    key = sealing_key(client.session, private, public, "site-1", "site-0")
    for parts in (bytes(SHARE_BYTES), bytes(3 * SHARE_BYTES), bytes(SHARE_BYTES) + b"\xff" * SHARE_BYTES):
        sealed = crypto.seal(key, parts, client.session.between("site-1", "site-0")).hex()
        change = functools.partial(dict.update, **{"site-1": sealed})
        with pytest.raises(BadMessage, match="share of 'site-1': not a share"):
            client.mask(changed(asked["site-0"], lambda body, change=change: change(body["sealed"])), np.zeros(5))
    assert client.step == "mask"


def test_revealed_shares_that_contradict_each_other_end_the_session() -> None:
    of = session(5)

    def spoilt(kind: str, who: str) -> Any:
        def change(body: dict[str, Any]) -> None:
            body[kind][who] = "00" * (SHARE_BYTES - 1) + "07"

        return change

    for kind, who, reason in (
        ("seeds", "site-1", "shares of the seeds of 'site-1' contradict"),
        ("keys", "site-4", "shares of the keys of 'site-4' contradict"),
    ):
        run, asked = prepared(of, 2)
        asked = run.trip(asked, {"site-4"}, uploads(of))
        for name, message in asked.items():
            answer = run.answer(name, message, None)
            run.server.receive(name, changed(answer, spoilt(kind, who)) if name == "site-2" else answer)
        with pytest.raises(Aborted, match=reason):
            run.server.advance()
    # With no share to spare, a wrong one gives another mask key than the one advertised.
    run, asked = prepared(of, 2)
    asked = run.trip(asked, {"site-4"}, uploads(of))
    for name in of.clients[:3]:
        answer = run.answer(name, asked[name], None)
        run.server.receive(name, changed(answer, spoilt("keys", "site-4")) if name == "site-2" else answer)
    with pytest.raises(Aborted, match=r"do not give the key that it advertised|contradict"):
        run.server.advance()
    run, asked = prepared(of, 3)
    answer = run.answer("site-0", asked["site-0"], None)
    for change in (
        lambda body: body["seeds"].pop("site-1"),
        lambda body: body["keys"].update({"site-1": "00" * SHARE_BYTES}),
        lambda body: body["seeds"].update({"site-1": "ff" * SHARE_BYTES}),
        lambda body: body.update(seeds=None),
    ):
        with pytest.raises(BadMessage, match="revealed by 'site-0'"):
            run.server.receive("site-0", changed(answer, change))


@given(message=st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(message: bytes) -> None:
    of = session(3)
    with pytest.raises(BadMessage):
        MaskingServer(of).receive("site-0", message)
    with pytest.raises(BadMessage):
        MaskingServer(of).receive("site-0", b'{"kind":"keys","session":"' + of.digest.hex().encode() + message)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(names(4)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*names(4), "x"]), inner, max_size=4),
    max_leaves=8,
)


@given(field=st.sampled_from(["keys", "sealed", "survivors", "seal", "seeds"]), value=JSON)
def test_any_content_of_a_message_is_read_or_refused(field: str, value: Any) -> None:
    of = session(4)
    server, client = MaskingServer(of), MaskingClient(of, "site-0")
    with pytest.raises(BadMessage):
        server.receive("site-0", of.pack("keys", "site-0", {field: value}))
    client.advertise()
    with pytest.raises((BadMessage, Aborted)):
        client.share(of.pack("roster", "", {field: value}))

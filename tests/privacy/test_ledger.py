"""The ledger's rule: what may have been released is always recorded, and nothing beyond the budget is."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedhedge import InvalidInput
from fedhedge.privacy import (
    BudgetExceeded,
    Event,
    Ledger,
    LedgerBusy,
    LedgerDamaged,
    Privacy,
    calibrate,
    gaussian_epsilon,
)

BUDGET = Privacy(3.0, 1e-6)


@pytest.fixture(params=["memory", "file"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    return Ledger("north", BUDGET, tmp_path / "ledger.jsonl" if request.param == "file" else None)


@given(rounds=st.integers(1, 300), share=st.sampled_from([0.0, 0.05, 0.3]))
def test_calibrated_run_fits_exactly_and_not_one_round_more(rounds: int, share: float) -> None:
    ledger = Ledger("north", BUDGET)
    noise = calibrate(BUDGET, rounds, lambda_share=share)
    for number in range(rounds):
        ledger.spend(Event(noise.mu, number))
    assert ledger.spent == pytest.approx(3.0, rel=1e-8)
    with pytest.raises(BudgetExceeded):
        ledger.spend(Event(noise.mu, rounds))
    assert len(ledger.events) == rounds


def test_refusal_names_client_spend_request_and_budget(ledger: Ledger) -> None:
    ledger.spend(Event(0.5, 0))
    with pytest.raises(BudgetExceeded) as refusal:
        ledger.spend(Event(0.6, 1))
    assert refusal.value.client == "north"
    assert refusal.value.spent == pytest.approx(gaussian_epsilon(1e-6, 0.5))
    assert refusal.value.asked == pytest.approx(gaussian_epsilon(1e-6, math.hypot(0.5, 0.6)))
    assert refusal.value.budget == BUDGET
    for part in ("client 'north'", f"{refusal.value.spent:.6g}", f"{refusal.value.asked:.6g}", "epsilon = 3 at"):
        assert part in str(refusal.value)
    assert ledger.events == (Event(0.5, 0),)
    ledger.spend(Event(0.1, 1))
    assert ledger.mu == pytest.approx(math.hypot(0.5, 0.1))


def test_mechanisms_it_cannot_account_are_refused(ledger: Ledger) -> None:
    for kind in ("laplace", "subsampled gaussian", "torn"):
        with pytest.raises(InvalidInput, match=f"event.kind: received '{kind}'; allowed: gaussian.*refuses"):
            ledger.spend(Event(0.1, 0, kind=kind))
    assert ledger.events == ()


def test_bad_arguments() -> None:
    with pytest.raises(InvalidInput, match=r"budget.per: received 'round'; allowed: total"):
        Ledger("north", Privacy(1.0, 1e-6, per="round"))
    with pytest.raises(InvalidInput, match=r"client: received ''"):
        Ledger("", BUDGET)
    for mu in (-0.1, math.nan, math.inf):
        with pytest.raises(InvalidInput, match=r"event.mu: received"):
            Event(mu)
    with pytest.raises(InvalidInput, match=r"events: .*together with a path"):
        Ledger("north", BUDGET, "anywhere", events=[Event(0.1)])


def test_memory_ledger_resumes_from_its_events() -> None:
    first = Ledger("north", BUDGET)
    first.spend(Event(0.3, 0, "run-a"))
    resumed = Ledger("north", BUDGET, events=first.events)
    assert resumed.events == first.events
    assert resumed.spent == first.spent


def test_restart_continues_and_a_larger_request_does_not_reset(tmp_path: Path) -> None:
    path = tmp_path / "state" / "ledger.jsonl"
    with Ledger("north", BUDGET, path) as first:
        first.spend(Event(0.4, 0, "run-a"))
        first.spend(Event(0.3, 1, "run-a"))
    with Ledger("north", BUDGET, path) as second:
        assert second.events == (Event(0.4, 0, "run-a"), Event(0.3, 1, "run-a"))
        with pytest.raises(BudgetExceeded):
            second.spend(Event(0.5, 0, "run-b"))
    with Ledger("north", Privacy(10.0, 1e-6), path) as raised:
        assert raised.mu == pytest.approx(0.5)
    with Ledger("north", Privacy(1.0, 1e-6), path) as lowered, pytest.raises(BudgetExceeded):
        lowered.spend(Event(1e-3, 2))


def test_another_clients_ledger_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    Ledger("north", BUDGET, path).close()
    with pytest.raises(LedgerDamaged, match=r"line 1: .*'north'.*'south'"):
        Ledger("south", BUDGET, path)


def test_file_cut_anywhere_never_counts_less_than_what_was_recorded_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # hundreds of them would take the time of this test
    path = tmp_path / "ledger.jsonl"
    mus = [0.2, 0.3, 0.1]
    ends = []
    with Ledger("north", BUDGET, path) as ledger:
        ends.append(path.stat().st_size)
        for number, mu in enumerate(mus):
            ledger.spend(Event(mu, number))
            ends.append(path.stat().st_size)
    content = path.read_bytes()
    for cut in range(len(content)):
        path.write_bytes(content[:cut])
        whole = sum(end <= cut for end in ends) - 1
        with Ledger("north", BUDGET, path) as ledger:
            found = ledger.events
        assert [event.mu for event in found[: max(whole, 0)]] == mus[: max(whole, 0)]
        torn = found[max(whole, 0) :]
        if whole < 0 or cut in ends:
            assert torn == ()
        elif cut + 1 in ends:
            assert torn == (Event(mus[whole], whole),)  # only the end of the line is missing
        else:
            assert [event.kind for event in torn] == ["torn"]
            read = b'"mu":%.1f,' % mus[whole] in content[ends[whole] : cut]
            assert torn[0].mu == max(mus[:whole] + ([mus[whole]] if read else []), default=0.0)
        with Ledger("north", BUDGET, path) as ledger:
            assert ledger.events == found  # mended once, not again
            ledger.spend(Event(0.05, 9))


def test_any_changed_byte_is_found_and_its_line_named(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger("north", BUDGET, path) as ledger:
        for number in range(3):
            ledger.spend(Event(0.25, number))
    content = path.read_bytes()
    # The last byte is left out: a missing end of the last line reads as a crash, and is charged.
    for position in range(len(content) - 1):
        path.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
        line = content[:position].count(b"\n") + 1
        with pytest.raises(LedgerDamaged, match=f"line {line}: .*refused"):
            Ledger("north", BUDGET, path)
    lines = content.splitlines(keepends=True)
    for damaged in (
        [lines[0], *lines[2:]],
        [lines[0], lines[2], lines[1], lines[3]],
        [*lines[:2], lines[1], *lines[2:]],
    ):
        path.write_bytes(b"".join(damaged))
        with pytest.raises(LedgerDamaged, match=r"line [23]: the checksum does not follow"):
            Ledger("north", BUDGET, path)


def test_foreign_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "sensors.csv"
    for content in ("flow,fault\n1,ok\n", "flow"):
        path.write_text(content)
        with pytest.raises(LedgerDamaged, match=r"line 1"):
            Ledger("north", BUDGET, path)
        assert path.read_text() == content


@pytest.mark.parametrize("touch", ["delete", "replace", "append"])
def test_file_touched_while_in_use_stops_the_ledger(touch: str, tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger("north", BUDGET, path)
    ledger.spend(Event(0.1, 0))
    content = path.read_bytes()
    if touch == "append":
        path.write_bytes(content + b"x")
    else:
        path.unlink()
    if touch == "replace":
        path.write_bytes(content)
    with pytest.raises(LedgerDamaged, match=r"changed, moved or deleted while in use"):
        ledger.spend(Event(0.1, 1))
    with pytest.raises(RuntimeError, match=r"is closed"):
        ledger.spend(Event(0.1, 1))
    assert len(ledger.events) == 1


CHILD = """
import sys
from fedhedge.privacy import Event, Ledger, Privacy
ledger = Ledger("north", Privacy(1e3, 1e-6), sys.argv[1])
print("ready", flush=True)
for round in range(10**9):
    ledger.spend(Event(0.01, round))
    print(round, flush=True)  # the release
"""


def test_second_process_is_kept_out_and_a_killed_one_never_undercounts(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        with pytest.raises(LedgerBusy, match=r"already open"):
            Ledger("north", BUDGET, path)
        for _ in range(20):
            child.stdout.readline()
        child.send_signal(signal.SIGKILL)
        released = 20 + len(child.stdout.read().splitlines())
    with Ledger("north", Privacy(1e3, 1e-6), path) as ledger:
        assert released <= len(ledger.events) <= released + 1


def test_lines_are_json_with_a_chain_anyone_can_check(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger("north", BUDGET, path) as ledger:
        ledger.spend(Event(0.125, 4, "run-a"))
    header, entry = (json.loads(line) for line in path.read_text().splitlines())
    assert entry["record"] == {"kind": "gaussian", "mu": 0.125, "round": 4, "run": "run-a"}
    text = json.dumps(entry["record"], sort_keys=True, separators=(",", ":"))
    assert entry["checksum"] == sha256((header["checksum"] + text).encode()).hexdigest()

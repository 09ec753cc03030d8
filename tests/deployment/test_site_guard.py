"""The site's guard: nothing beyond what the owner accepted, every release counted, no ledger that begins at zero."""

from __future__ import annotations

import dataclasses
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from fedhedge import InvalidInput
from fedhedge.deployment.site_guard import ANCHOR, LEDGER, Accepted, Mechanism, Refused, SiteGuard
from fedhedge.privacy import Event, Ledger, LedgerBusy, Privacy, calibrate, gaussian_epsilon, gaussian_mu

BUDGET = Privacy(3.0, 1e-6)
BOUNDS = ((0.0, 8.0), (-1.0, 1.0))
ACCEPTED = Accepted("north", 500, BUDGET, ("DpDroAdmm", "DpErmAdmm"), 1.0, 5.0, BOUNDS)
WHOLE = gaussian_mu(3.0, 1e-6)
# Four rounds of it, with the noise on the model and on lambda, take the budget exactly.
ROUND = Mechanism("run-a", "DpDroAdmm", (10.0, math.sqrt(1 / (WHOLE**2 / 4 - 0.01))), 1.0, BOUNDS)


def begin(folder: Path, accepted: Accepted = ACCEPTED, **options: Any) -> SiteGuard:
    return SiteGuard.open(folder, accepted, new=True, **options)


def changed(**settings: Any) -> Mechanism:
    return dataclasses.replace(ROUND, **settings)


def test_rounds_up_to_the_budget_and_not_one_more(tmp_path: Path) -> None:
    with begin(tmp_path, dataclasses.replace(ACCEPTED, least_noise=0.1)) as guard:
        for number in range(4):
            guard.authorise(number, ROUND)
            assert guard.record(number, ROUND)
        assert guard.statement().epsilon == pytest.approx(3.0, rel=1e-8)
        assert guard.statement().mu_left == pytest.approx(0.0, abs=1e-6)
        with pytest.raises(
            Refused, match=r"'north'.*from epsilon = 3 to .* the budget is epsilon = 3 at delta = 1e-06"
        ):
            guard.authorise(4, ROUND)
        with pytest.raises(Refused, match=r"would raise the spend"):
            guard.record(4, changed(noise=(1e4,)))
        assert len(guard.statement().events) == 4


def test_composition_is_the_exact_one_of_all_experiments(tmp_path: Path) -> None:
    with begin(tmp_path) as guard:
        guard.record(0, changed(noise=(10.0,)))
        guard.record(0, changed(noise=(20.0, 5.0), experiment="run-b"))
        mu = math.sqrt(1 / 100 + 1 / 400 + 1 / 25)
        statement = guard.statement()
        assert statement.mu == pytest.approx(mu)
        assert statement.epsilon == pytest.approx(gaussian_epsilon(1e-6, mu))
        assert statement.experiments["run-a"] == (1, pytest.approx(gaussian_epsilon(1e-6, 0.1)))
        more = changed(noise=(1 / statement.mu_left,), experiment="run-c")
        with pytest.raises(Refused):
            guard.authorise(1, changed(noise=(0.9999 / statement.mu_left,)))
    loose = dataclasses.replace(ACCEPTED, least_noise=1e-3)
    with SiteGuard.open(tmp_path, loose) as guard:
        guard.record(1, more)
        assert guard.statement().epsilon == pytest.approx(3.0, rel=1e-8)


def test_a_calibrated_run_fits(tmp_path: Path) -> None:
    noise = calibrate(BUDGET, 20, lambda_share=0.05)
    assert noise.lambda_ is not None
    with begin(tmp_path, dataclasses.replace(ACCEPTED, least_noise=noise.model)) as guard:
        for number in range(20):
            guard.record(number, changed(noise=(noise.model, noise.lambda_)), b"%d" % number)
        with pytest.raises(Refused):
            guard.authorise(20, changed(noise=(noise.model, noise.lambda_)))


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"kind": "laplace"}, r"the noise would be 'laplace'; the owner of site 'north' accepted 'gaussian'"),
        ({"relation": "add or remove one row"}, r"neighbouring relation would be 'add or remove one row'"),
        ({"row_bound": 2.0}, r"row bound would be 2; .* accepted 1"),
        ({"feature_bounds": ((0.0, 9.0), (-1.0, 1.0))}, r"feature bounds would be 2 intervals \[0, 9\].*\[0, 8\]"),
        ({"feature_bounds": None}, r"feature bounds would be none; .* accepted 2 intervals"),
        ({"feature_bounds": BOUNDS[:1]}, r"feature bounds would be 1 intervals"),
        ({"method": "FedAvg"}, r"method 'FedAvg' is not one that the owner accepted: DpDroAdmm, DpErmAdmm"),
        ({"noise": (4.9, 50.0)}, r"noise would be 4.9 times the sensitivity; the owner accepted 5 or more"),
        ({"noise": (50.0, 0.0)}, r"noise would be 0 times"),
        ({"noise": ()}, r"without stating any noise"),
    ],
)
def test_whatever_differs_from_what_was_accepted_is_refused_and_costs_nothing(
    settings: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    with begin(tmp_path) as guard:
        for ask in (guard.authorise, guard.record):
            with pytest.raises(Refused, match=reason) as refusal:
                ask(0, changed(**{"noise": (10.0,)} | settings))
            assert refusal.value.reason == str(refusal.value)
        assert guard.statement().events == ()
        guard.authorise(0, changed(noise=(5.0 * (1 - 1e-12),)))


def test_same_bytes_are_charged_once_and_anything_else_again(tmp_path: Path) -> None:
    once = changed(noise=(10.0,))
    with begin(tmp_path) as guard:
        assert guard.record(3, once, b"noisy model")
        assert not guard.record(3, once, b"noisy model")
        assert guard.record(3, once, b"worked out again with fresh noise")
        assert guard.record(4, once, b"noisy model")
        assert guard.record(3, changed(noise=(10.0,), experiment="run-b"), b"noisy model")
        assert guard.record(3, changed(noise=(11.0,)), b"noisy model")
        assert guard.record(3, once)
        assert guard.record(3, once)
        with pytest.raises(Refused, match="row bound"):
            guard.record(3, changed(noise=(10.0,), row_bound=2.0), b"noisy model")
        assert guard.statement().mu == pytest.approx(math.sqrt(6 / 100 + 1 / 121))
    with SiteGuard.open(tmp_path, ACCEPTED) as guard:
        assert not guard.record(3, once, b"noisy model")
        assert len(guard.statement().events) == 7
    assert b"noisy" not in (tmp_path / LEDGER).read_bytes()


def test_retransmission_is_possible_when_the_budget_is_used_up(tmp_path: Path) -> None:
    with begin(tmp_path, dataclasses.replace(ACCEPTED, least_noise=0.1)) as guard:
        last = changed(noise=(1 / WHOLE,))
        guard.record(0, last, b"upload")
        with pytest.raises(Refused):
            guard.authorise(0, last)
        assert not guard.record(0, last, b"upload")


def test_spend_is_on_the_disk_before_record_returns(tmp_path: Path) -> None:
    with begin(tmp_path) as guard:
        guard.record(0, changed(noise=(10.0,)), b"upload")
        copy = tmp_path / "as a crash would leave it"
        copy.mkdir()
        shutil.copy(tmp_path / LEDGER, copy / LEDGER)
    with SiteGuard.open(copy, ACCEPTED) as guard:
        assert guard.statement().mu == pytest.approx(0.1)


def test_crash_between_ledger_and_note_counts_the_spend(tmp_path: Path) -> None:
    with begin(tmp_path) as guard:
        guard.record(0, changed(noise=(10.0,)), b"a")
        note = (tmp_path / ANCHOR).read_bytes()
        guard.record(1, changed(noise=(10.0,)), b"b")
    (tmp_path / ANCHOR).write_bytes(note)
    with SiteGuard.open(tmp_path, ACCEPTED) as guard:
        assert len(guard.statement().events) == 2


def test_crash_within_a_line_is_charged_in_full(tmp_path: Path) -> None:
    with begin(tmp_path) as guard:
        guard.record(0, changed(noise=(10.0,)), b"a")
        note = (tmp_path / ANCHOR).read_bytes()
        guard.record(1, changed(noise=(10.0,)), b"b")
    content = (tmp_path / LEDGER).read_bytes()
    (tmp_path / ANCHOR).write_bytes(note)
    (tmp_path / LEDGER).write_bytes(content[:-20])
    with SiteGuard.open(tmp_path, ACCEPTED) as guard:
        assert guard.statement().mu == pytest.approx(math.sqrt(2 / 100))
        assert guard.statement().experiments["torn"][0] == 1


def filled(folder: Path, **options: Any) -> list[bytes]:
    with begin(folder, **options) as guard:
        for number in range(3):
            guard.record(number, changed(noise=(10.0 + number,)), b"%d" % number)
    return (folder / LEDGER).read_bytes().splitlines(keepends=True)


def test_every_tampering_stops_further_rounds(tmp_path: Path) -> None:
    lines = filled(tmp_path)
    whole = b"".join(lines)
    note = (tmp_path / ANCHOR).read_bytes()
    damaged = {
        "edited": whole.replace(b'"round":1', b'"round":7'),
        "cheaper": whole.replace(b'"mu":0.1,', b'"mu":0.0,'),
        "reordered": b"".join([lines[0], lines[2], lines[1], lines[3]]),
        "deleted": b"".join([lines[0], *lines[2:]]),
        "first only": lines[0],
        "last line missing": b"".join(lines[:-1]),
        "cut within the last line": whole[:-30],
    }
    for name, content in damaged.items():
        assert content != whole, name
        (tmp_path / LEDGER).write_bytes(content)
        with pytest.raises(Refused, match="refused, since the spend cannot be proven"):
            SiteGuard.open(tmp_path, ACCEPTED)
        assert (tmp_path / LEDGER).read_bytes() == content, name
        with pytest.raises(InvalidInput, match="a ledger is begun only once"):
            begin(tmp_path)
        assert (tmp_path / ANCHOR).read_bytes() == note
    (tmp_path / LEDGER).write_bytes(whole)
    with SiteGuard.open(tmp_path, ACCEPTED) as guard:
        assert len(guard.statement().events) == 3


def test_a_cheaper_ledger_with_a_chain_of_its_own_is_refused(tmp_path: Path) -> None:
    filled(tmp_path)
    with begin(tmp_path / "other") as guard:
        for number in range(3):
            guard.record(number, changed(noise=(100.0,)), b"%d" % number)
    shutil.copy(tmp_path / "other" / LEDGER, tmp_path / LEDGER)
    with pytest.raises(Refused, match="line 4: not the line that had been written"):
        SiteGuard.open(tmp_path, ACCEPTED)


def test_missing_ledger_is_not_a_spend_of_zero(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"ledger\.jsonl is missing or empty.*put it back"):
        SiteGuard.open(tmp_path / "never used", ACCEPTED)
    filled(tmp_path)
    for lost in (lambda path: path.write_bytes(b""), lambda path: path.write_bytes(b'{"chec'), Path.unlink):
        lost(tmp_path / LEDGER)
        with pytest.raises(Refused, match="missing or empty"):
            SiteGuard.open(tmp_path, ACCEPTED)
        with pytest.raises(InvalidInput, match=r"anchor: .*ledger\.anchor.*begun only once"):
            begin(tmp_path)


def test_a_ledger_whose_beginning_was_cut_short_is_begun_again(tmp_path: Path) -> None:
    filled(tmp_path / "other")
    header = (tmp_path / "other" / LEDGER).read_bytes().split(b"\n")[0]
    (tmp_path / LEDGER).write_bytes(header[:40])
    with begin(tmp_path) as guard:
        assert guard.statement().events == ()


def test_ledger_survives_the_loss_of_all_else_in_the_folder(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / ANCHOR).unlink()
    with SiteGuard.open(tmp_path, ACCEPTED) as guard:
        assert len(guard.statement().events) == 3
    assert (tmp_path / ANCHOR).exists()


def test_note_kept_elsewhere_finds_an_older_folder_put_back(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "state", tmp_path / "elsewhere" / "anchor"
    filled(folder, anchor=elsewhere)
    shutil.copytree(folder, tmp_path / "backup")
    with SiteGuard.open(folder, ACCEPTED, anchor=elsewhere) as guard:
        guard.record(9, changed(noise=(10.0,)), b"after the backup")
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "backup", folder)
    with pytest.raises(Refused, match=r"line 5: the file ends here; 5 lines had been written"):
        SiteGuard.open(folder, ACCEPTED, anchor=elsewhere)
    elsewhere.unlink()
    with pytest.raises(Refused, match=r"note .*anchor of where the ledger ends is missing"):
        SiteGuard.open(folder, ACCEPTED, anchor=elsewhere)
    for content in ("", "{}", '{"lines": 0, "checksum": ""}', "[1]"):
        elsewhere.write_text(content)
        with pytest.raises(Refused, match=r"cannot be read"):
            SiteGuard.open(folder, ACCEPTED, anchor=elsewhere)


def test_touched_while_open_and_second_process(tmp_path: Path) -> None:
    with begin(tmp_path) as guard:
        with pytest.raises(LedgerBusy):
            SiteGuard.open(tmp_path, ACCEPTED)
        (tmp_path / LEDGER).unlink()
        with pytest.raises(Refused, match="changed, moved or deleted while in use"):
            guard.record(0, changed(noise=(10.0,)))


def test_another_sites_ledger_is_refused(tmp_path: Path) -> None:
    filled(tmp_path)
    with pytest.raises(Refused, match=r"'north'.*'south'"):
        SiteGuard.open(tmp_path, dataclasses.replace(ACCEPTED, site="south"))


def test_ledger_of_local_training_is_continued(tmp_path: Path) -> None:
    with Ledger("north", BUDGET, tmp_path / LEDGER) as ledger:
        ledger.spend(Event(0.2, 0, "trained alone"))
    with SiteGuard.open(tmp_path, ACCEPTED) as guard:
        guard.record(0, changed(noise=(10.0,)), b"a")
        assert guard.statement().mu == pytest.approx(math.hypot(0.2, 0.1))
    with Ledger("north", BUDGET, tmp_path / LEDGER) as ledger:
        assert [event.run for event in ledger.events] == ["trained alone", "run-a"]


def test_statement_says_what_was_spent_and_of_what(tmp_path: Path) -> None:
    filled(tmp_path)
    with SiteGuard.open(tmp_path, ACCEPTED) as guard:
        statement = guard.statement()
    text, found = " ".join(str(statement).split()), statement.as_dict()
    assert f"epsilon = {statement.epsilon:.4g} of 3 at delta = 1e-06" in text
    assert "one row (features and label) is replaced" in text
    assert "run-a: 3 charges" in text
    assert found["experiments"]["run-a"]["epsilon"] == pytest.approx(found["epsilon"])
    assert found["mu_left"] == pytest.approx(math.sqrt(WHOLE**2 - statement.mu**2))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"site": ""}, r"site: received ''"),
        ({"budget": Privacy(1.0, 1e-6, per="round")}, r"budget.per: received 'round'"),
        ({"budget": 3.0}, r"budget: received 3.0"),
        ({"samples": 10**7}, r"delta at site 'north'"),
        ({"methods": ()}, r"methods: received \(\)"),
        ({"methods": "DpDroAdmm"}, r"methods: received 'DpDroAdmm'"),
        ({"row_bound": 0.0}, r"row_bound"),
        ({"least_noise": 0.0}, r"least_noise"),
        ({"feature_bounds": ((1.0, 1.0),)}, r"feature_bounds\[0\].*low < high"),
        ({"relation": "one column"}, r"relation: received 'one column'; allowed: replace one row"),
        ({"mechanism": "laplace"}, r"mechanism: received 'laplace'; allowed: gaussian"),
    ],
)
def test_what_cannot_be_accepted(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        dataclasses.replace(ACCEPTED, **settings)


def test_what_is_no_mechanism() -> None:
    for settings in ({"noise": ("much",)}, {"noise": (-1.0,)}, {"row_bound": math.nan}, {"experiment": ""}):
        with pytest.raises(InvalidInput):
            changed(**settings)

"""A site over restarts: what was used becomes final, what was not is forgotten, the same question has one answer."""

import numpy as np
import pytest

from fedhedge.deployment.parcel import DONE, FINISH, REFUSED, WORK, Parcel, pack
from fedhedge.simulation.arithmetic import arithmetic


@pytest.fixture
def scaffold(small):
    return small.federation(small.content({"name": "Scaffold"}))


def down(federation, scale=1.0):
    programme = federation.programme
    with arithmetic("float32"):
        arrays = pack(programme.algorithm.broadcast(programme.likes.server), "down")
    return {name: (scale * array).astype(array.dtype) for name, array in arrays.items()}


def request(federation, number, acknowledged, kind=WORK, scale=1.0, **about):
    said = {"fingerprint": federation.fingerprint, "experiment": "a1", "round": number, "acknowledged": acknowledged}
    return Parcel(kind, said | about, down(federation, scale) if kind == WORK else {})


def same(left, right):
    assert left.kind == right.kind == DONE
    assert left.arrays.keys() == right.arrays.keys()
    assert all(np.array_equal(left.arrays[name], right.arrays[name]) for name in left.arrays)


def differ(left, right):
    assert left.kind == right.kind == DONE
    assert any(not np.array_equal(left.arrays[name], right.arrays[name]) for name in left.arrays)


@pytest.fixture
def site(small, scaffold, tmp_path):
    def opened():
        return small.site("north", scaffold, tmp_path)

    return opened


def test_an_update_counts_once_the_coordinator_says_so(scaffold, site):
    first, lost = site(), site()
    first.handle(request(scaffold, 0, -1))
    used = first.handle(request(scaffold, 1, 0))
    # Of a site whose first upload was lost, in another experiment: it works on from its first state.
    lost.handle(request(scaffold, 0, -1, experiment="b2"))
    unheard = lost.handle(request(scaffold, 1, -1, experiment="b2"))
    differ(used, unheard)
    assert used.about["as_acknowledged"]
    fresh = site().handle(request(scaffold, 1, -1, experiment="c3"))
    same(unheard, fresh)


def test_a_site_goes_on_after_a_restart(scaffold, site, small, tmp_path):
    going = small.site("north", scaffold, tmp_path / "other")
    site().handle(request(scaffold, 0, -1))
    going.handle(request(scaffold, 0, -1))
    site().handle(request(scaffold, 2, 0))
    going.handle(request(scaffold, 2, 0))
    same(site().handle(request(scaffold, 5, 2)), going.handle(request(scaffold, 5, 2)))


def test_the_same_question_again_gets_the_same_answer(scaffold, site):
    first = site().handle(request(scaffold, 0, -1))
    same(first, site().handle(request(scaffold, 0, -1)))
    differ(first, site().handle(request(scaffold, 0, -1, scale=0.5)))


def test_the_last_word_comes_with_the_end(scaffold, site):
    site().handle(request(scaffold, 3, -1))
    assert site().handle(request(scaffold, 4, 3, kind=FINISH)).about["committed"] == 3


def test_a_site_that_lost_its_folder_says_so(scaffold, site, small, tmp_path):
    site().handle(request(scaffold, 0, -1))
    reply = small.site("north", scaffold, tmp_path / "new").handle(request(scaffold, 1, 0))
    assert reply.kind == DONE
    assert not reply.about["as_acknowledged"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"fingerprint": "0" * 64}, "another experiment"),
        ({"round": "1"}, "round is '1'"),
        ({"acknowledged": None}, "acknowledged is None"),
        ({"experiment": "../../etc"}, "no name of an experiment"),
    ],
)
def test_refusals(scaffold, site, change, reason):
    asked = request(scaffold, 0, -1)
    reply = site().handle(Parcel(WORK, asked.about | change, asked.arrays))
    assert reply.kind == REFUSED
    assert reason in reply.about["reason"]


def test_a_refusal_names_what_differs(small, scaffold, site):
    other = small.federation(small.content({"name": "Scaffold", "step": 0.2}))
    asked = request(other, 0, -1, agreement=other.agreement)
    assert "algorithm.step is 0.2 there and 0.1 here" in site().handle(asked).about["reason"]


def test_arrays_that_do_not_fit_are_refused_without_a_trace(scaffold, site, tmp_path):
    asked = request(scaffold, 0, -1)
    arrays = dict(asked.arrays)
    name = sorted(arrays)[0]
    for wrong in (arrays | {name: arrays[name][..., :1]}, arrays | {name: arrays[name].astype(int)}, {}):
        reply = site().handle(Parcel(WORK, asked.about, wrong))
        assert reply.kind == REFUSED
    assert not list((tmp_path / "north").glob("*"))


def test_other_errors_tell_nothing(scaffold, site, monkeypatch):
    opened = site()

    def fail(*_):
        raise ValueError("row 7 is 13.5")

    monkeypatch.setattr(opened.worker, "local", fail)
    reply = opened.handle(request(scaffold, 0, -1))
    assert reply.kind == REFUSED
    assert "13.5" not in reply.text()

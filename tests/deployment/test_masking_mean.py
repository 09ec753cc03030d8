"""Which methods can do with the mean of a round's uploads, as the reading of a file finds out, and as runs show."""

import jax
import numpy as np
import pytest

from fedhedge.algorithms import METHODS
from fedhedge.checks import InvalidInput
from fedhedge.deployment.coordinator import Coordinator
from fedhedge.deployment.link import Direct
from fedhedge.deployment.parcel import WORK, Parcel

OPEN = {"signed": False}
# Those whose servers take more from uploads than their mean, or ask before training; all others are accepted.
FIRST, TABLE, WHOLE = "asks sites before they train", "keeps single uploads, or weighs", "hold whole numbers"
NOT = (
    dict.fromkeys(["AgnosticFL", "AvailabilityAware", "DRFA", "FedDisco", "PowerOfChoice"], FIRST)
    | dict.fromkeys(["ScaffPD", "Superquantile"], FIRST)
    | dict.fromkeys(["ArrivalWeights", "DroAdmm", "FedVarp", "Mifa", "OneVsAllDro", "QFedAvg"], TABLE)
    | {"CompressedScaffold": WHOLE}
)
MATRIX = ("DroAdmm", "OneVsAllDro", "DpDroAdmm", "DpErmAdmm", "DpSgd")
SPECIAL = {
    "PowerOfChoice": {"size": 2},
    "DpDroAdmm": {"rounds": 4, "noise": 0.0},
    "DpErmAdmm": {"noise": 0.0},
    "DpSgd": {"noise": 0.0},
}


def method(small, name, **terms):
    algorithm = {"name": name} | SPECIAL.get(name, {}) | ({"law": "availability"} if METHODS[name].oracle else {})
    top = {"local_steps": 1, "batch_size": "all"} if name in MATRIX else {}
    model = "CrammerSinger" if name in MATRIX else "Linear"
    return small.federation(small.content(algorithm, model, rounds=4, evaluate_on=[], **top), deadline=0.5, **terms)


class Lossy(Direct):
    """A link on which some uploads are lost and, if asked to, the mean of the others comes in place of each."""

    lost = frozenset({(1, "north"), (2, "east"), (3, "north")})

    def __init__(self, sites, averages):
        super().__init__(sites)
        self.averages = averages

    def ask(self, requests, seconds):
        replies = super().ask(requests, seconds)
        one = next(iter(requests.values()))
        if one.kind != WORK:
            return replies
        found = {name: reply for name, reply in replies.items() if (one.about["round"], name) not in self.lost}
        if not self.averages:
            return found
        sent = [reply.arrays for reply in found.values()]
        mean = {key: np.mean([arrays[key] for arrays in sent], axis=0, dtype=np.float64) for key in sent[0]}
        mean = {key: value.astype(sent[0][key].dtype) for key, value in mean.items()}
        return {name: Parcel(reply.kind, reply.about, mean) for name, reply in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method(small, tmp_path, name):
    """Those accepted end where they end when each upload is the mean of the round's; of the others one says why."""
    if name in NOT:
        with pytest.raises(InvalidInput, match=NOT[name]):
            method(small, name, masking=OPEN)
        return
    assert method(small, name, masking=OPEN).masking.threshold == 2
    of, ends = method(small, name), []
    for averages in (False, True):
        folder = tmp_path / str(averages)
        link = Lossy(small.sites(of, folder), averages)
        ends.append(Coordinator(of, link, folder, lambda _: None).run())
    assert len(ends[0].participation) == 9
    for part in ("params", "average_params"):
        pairs = zip(*(jax.tree.leaves(getattr(run, part)) for run in ends), strict=True)
        for a, b in pairs:
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("content", "terms", "name", "reason"),
    [
        ({"algorithm": {"name": "Mifa"}}, {}, "algorithm", TABLE),
        ({"algorithm": {"name": "QFedAvg"}}, {}, "algorithm", TABLE),
        ({"algorithm": {"name": "PowerOfChoice", "size": 2}}, {}, "algorithm", FIRST),
        ({"algorithm": {"name": "Scaffold"}, "local_steps": [1, 2, 3]}, {}, "algorithm", WHOLE),
        ({"weighting": "rows"}, {}, "weighting", "is not uniform"),
        ({}, {"masking": {"threshold": 1}}, "federation.masking.threshold", "2"),
        ({}, {"masking": {"signed": 1}}, "federation.masking.signed", "true"),
        ({}, {"masking": {"sign": True}}, "federation.masking.sign", "threshold, signed"),
        ({}, {"sites": ["east", "north"]}, "federation.masking", "3 sites or more"),
    ],
)
def test_what_cannot_be_masked_is_refused_with_the_reason(small, content, terms, name, reason):
    whole = small.content({"name": "FedAvg"}) | content
    with pytest.raises(InvalidInput, match=reason) as refused:
        small.federation(whole, **({"masking": OPEN} | terms))
    assert refused.value.name == name


def test_masking_is_agreed_upon(small):
    def made(masking):
        return method(small, "FedAvg", masking=masking).fingerprint

    found = {method(small, "FedAvg").fingerprint} | {made(masking) for masking in (OPEN, {}, {"threshold": 3})}
    assert len(found) == 4
    assert made({"threshold": 2}) == made({})

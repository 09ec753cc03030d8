"""Methods around another one: the neutral setting is the base, and a base that weights would break is refused."""

import functools

import numpy as np
import pytest

import fedhedge as fh
from federations import same
from parabolas import finished

methods = fh.algorithms
UNIFORM = fh.availability.FixedSize(size=3)
ALONE = fh.availability.FixedSize((5.0, 4.0, 3.0, 2.0, 1.0), size=1)
VARYING = fh.availability.Independent([0.7, 0.5, 0.6, 0.4, 0.5])
FEDAVG = methods.FedAvg(step=0.02)
FEDERAGE = methods.FedeRage(step=0.02, alpha=0.5, gamma=0.5, beta_step=0.05, cap=5.0)
NEUTRAL = {
    "Superquantile": (methods.Superquantile(FEDERAGE, theta=1.0), VARYING),
    "PowerOfChoice": (methods.PowerOfChoice(FEDAVG, size=5), VARYING),
    "AvailabilityAware": (methods.AvailabilityAware(FEDAVG, law=UNIFORM, size=3), UNIFORM),
    "AgnosticFL": (methods.AgnosticFL(FEDAVG, dual_step=0.0), UNIFORM),
    "InverseProbability": (methods.InverseProbability(FEDAVG, law=UNIFORM), UNIFORM),
    "FedAvot": (methods.FedAvot(FEDERAGE, law=ALONE), ALONE),
}


@functools.cache
def trained(algorithm, law):
    return finished(algorithm, law, rounds=60).result()


@pytest.mark.filterwarnings("ignore:FedAvot")
@pytest.mark.parametrize("name", NEUTRAL)
def test_neutral_setting_is_the_base_bit_for_bit(name):
    method, law = NEUTRAL[name]
    run, plain = trained(method, law), trained(method.base, law)
    assert same(run.params, plain.params)
    assert same(run.average_params, plain.average_params)
    assert run.participation.equals(plain.participation)


@pytest.mark.parametrize(
    ("base", "reason"),
    [
        (methods.Scaffold(), "Scaffold keeps more than a mean of uploads"),
        (methods.ScaffPD(), "ScaffPD keeps more"),
        (methods.Mifa(), "Mifa keeps more"),
        (methods.DroAdmm(), "the server of DroAdmm solves a consensus problem"),
        (methods.FedOpt(), r"put it outside: FedOpt\(base=Superquantile"),
        (methods.PowerOfChoice(), r"put it outside: PowerOfChoice\(base=Superquantile"),
        ("FedAvg", "a method, such as"),
    ],
    ids=str,
)
def test_a_base_that_weights_would_break_is_refused_with_the_reason(base, reason):
    with pytest.raises(fh.InvalidInput, match=reason):
        methods.Superquantile(base)


@pytest.mark.parametrize(
    ("method", "settings", "named"),
    [
        (methods.Superquantile, {"theta": 0.0}, "theta"),
        (methods.PowerOfChoice, {"size": 0}, "size"),
        (methods.AvailabilityAware, {"law": "availability"}, "law"),
        (methods.InverseProbability, {"law": None}, "law"),
        (methods.FedAvot, {"law": UNIFORM, "importance": [1.0, -1.0]}, r"importance\[1\]"),
        (methods.FedDisco, {"a": -1.0}, "a"),
        (methods.AgnosticFL, {"dual_step": -1.0}, "dual_step"),
        (methods.ArrivalWeights, {"cap": 0.0}, "cap"),
        (methods.DRFA, {"dual_step": -1.0}, "dual_step"),
        (methods.ScaffPD, {"extrapolation": 1.5}, "extrapolation"),
    ],
)
def test_refuses_values_out_of_range(method, settings, named):
    with pytest.raises(fh.InvalidInput, match=f"^{named}: received"):
        method(**settings)


def test_settings_name_the_base_and_the_law_and_mark_oracles():
    settings = methods.FedAvot(FEDERAGE, law=UNIFORM).settings()
    assert settings["base"]["name"] == "FedeRage"
    assert settings["law"]["name"] == "FixedSize"
    assert settings["oracle"] is True
    told = {name for name, method in methods.METHODS.items() if method.oracle}
    assert told == {"FedAvot", "AvailabilityAware", "InverseProbability", "HorvitzThompson"}
    assert "oracle" not in methods.ArrivalWeights().settings()


def test_selection_counts_reports_of_all_and_uploads_of_the_chosen():
    run = trained(methods.PowerOfChoice(FEDERAGE, size=2), UNIFORM)
    assert run.costs["uplink"] == 2
    assert run.costs["downlink"] == run.costs["probe_downlink"] == 3
    assert run.costs["probe_uplink"] == 1
    assert (run.counts["probes"], run.counts["uploads"]) == (180, 120)
    assert (np.bincount(run.participation["round"]) == 2).all()


@pytest.mark.parametrize(
    "inner", [methods.PowerOfChoice(FEDAVG, size=2), methods.HorvitzThompson(FEDERAGE, law=UNIFORM)], ids=str
)
def test_a_server_rule_goes_around_a_weighting(inner):
    """The neutral optimiser around it gives it back; another one moves elsewhere."""
    neutral = methods.FedOpt(inner, optimizer="momentum", beta1=0.0, server_step=1.0)
    found, plain = trained(neutral, UNIFORM), trained(inner, UNIFORM)
    np.testing.assert_allclose(found.params, plain.params, atol=1e-6)
    assert found.participation.equals(plain.participation)
    assert found.counts == plain.counts
    assert abs(float(trained(methods.FedOpt(inner), UNIFORM).params) - float(plain.params)) > 1e-3

"""Each method at its neutral setting is FedAvg, bit for bit, on a network with real data and partial participation."""

import pytest

import fedhedge as fh
from federations import digits, same

LAW = fh.availability.presets.sporadic()


def trained(algorithm, law=LAW, **options):
    settings = {"rounds": 40, "evaluate_every": 20, "batch_size": 8, "progress": False} | options
    return fh.simulate(algorithm, fh.models.MLP(hidden=(16,)), digits(), law, **settings)


@pytest.fixture(scope="module")
def fedavg():
    return trained(fh.algorithms.FedAvg(step=0.1))


@pytest.mark.parametrize(
    "algorithm",
    [
        fh.algorithms.FedeRage(step=0.1, gamma=0.0, alpha=0.05),
        fh.algorithms.FedeRage(step=0.1, gamma=0.0, alpha=0.3, beta_step=0.5, beta_start=1.0),
        fh.algorithms.FedeRage(step=0.1, gamma=0.75, alpha=1.0),
        fh.algorithms.FedeRage(step=0.1, gamma=0.1, alpha=1.0),
        fh.algorithms.FedProx(step=0.1, mu=0.0),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:FedeRage")
def test_neutral_setting_is_fedavg(algorithm, fedavg):
    run = trained(algorithm)
    assert same(run.params, fedavg.params)
    assert same(run.average_params, fedavg.average_params)


@pytest.mark.parametrize(
    "algorithm",
    [
        fh.algorithms.FedeRage(step=0.1, gamma=0.3, alpha=0.3, beta_step=0.05),
        fh.algorithms.FedProx(step=0.1, mu=0.1),
        fh.algorithms.Scaffold(step=0.1),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:FedeRage")
def test_other_settings_are_not(algorithm, fedavg):
    assert not same(trained(algorithm).params, fedavg.params)


@pytest.mark.filterwarnings("ignore:FedeRage")
def test_beta_does_not_move_when_everything_is_tail():
    run = trained(fh.algorithms.FedeRage(step=0.1, gamma=0.75, alpha=1.0))
    beta = run.history[run.history.metric == "beta"]["value"]
    assert (beta == 0.0).all()
    tail = run.history[run.history.metric == "tail_rate"]["value"]
    assert (tail == 1.0).all()

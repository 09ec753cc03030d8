"""Non-finite uploads, empty rounds, and refusals before work starts."""

import jax.numpy as jnp
import numpy as np
import pytest

import fedhedge as fh
from federations import begin, digits, same

LAW = fh.availability.FixedSize(size=3)


def poisoned():
    """Client 2's loss overflows; everybody else has a quadratic."""
    rows = np.array([[1.0], [2.0], [3e38], [4.0]])
    clients = fh.data.Clients.from_splits((rows, np.zeros(4), np.arange(4)))
    model = fh.models.Functional(init=lambda key: jnp.ones(()), loss=lambda w, x, y: (x[:, 0] * w) ** 2)
    return clients, model


def run(law, algorithm=None, **options):
    clients, model = poisoned()
    settings = {"rounds": 10, "local_steps": 1, "batch_size": None, "evaluate_on": (), "progress": False} | options
    return fh.simulate(algorithm or fh.algorithms.FedAvg(step=0.01), model, clients, law, **settings)


def test_stop_names_round_client_and_cause():
    law = fh.availability.Trace(np.array([[1, 1, 0, 0]] * 6 + [[0, 0, 1, 1]], dtype=bool))
    with pytest.raises(fh.Diverged, match=r"FedAvg, round 6, client 2 .*step is 0\.01, try a tenth") as caught:
        run(law)
    assert (caught.value.round, caught.value.client) == (6, 2)


@pytest.mark.parametrize("loop", ["compiled", "host"])
def test_skip_leaves_the_upload_out_and_counts_it(loop):
    law = fh.availability.Trace(np.array([[1, 1, 1, 1]], dtype=bool))
    without = fh.availability.Trace(np.array([[1, 1, 0, 1]], dtype=bool))
    with pytest.raises(fh.Diverged):
        run(law, loop=loop)
    skipped = run(law, on_nonfinite="skip", loop=loop)
    assert np.isfinite(skipped.params)
    assert skipped.counts["skipped_uploads"] == 10
    assert float(skipped.params) == pytest.approx(float(run(without).params), rel=1e-6)


def test_skip_keeps_the_client_state_as_it_was():
    clients, model = poisoned()
    simulation = begin(
        fh.algorithms.Scaffold(step=0.01), model, clients, fh.availability.Everyone(), rounds=5, local_steps=1,
        batch_size=None, evaluate_on=(), on_nonfinite="skip",
    )  # fmt: skip
    simulation.run(None, False, False)
    controls = np.asarray(simulation.state.clients)
    assert controls[2] == 0.0
    assert np.isfinite(controls).all()
    assert (controls[[0, 1, 3]] != 0).all()


@pytest.mark.parametrize("name", ["Scaffold", pytest.param("FedeRage", marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore:FedeRage")
def test_empty_round_changes_nothing_and_is_counted(name):
    algorithm = fh.algorithms.METHODS[name]()
    pattern = np.zeros((4, 30), dtype=bool)
    pattern[0, :3] = True
    runs = [
        fh.simulate(
            algorithm, fh.models.Linear(), digits(), fh.availability.Trace(pattern), rounds=rounds, batch_size=8,
            progress=False,
        )
        for rounds in (1, 4)
    ]  # fmt: skip
    assert same(runs[0].params, runs[1].params)
    assert [one.counts["empty_rounds"] for one in runs] == [0, 3]
    assert [one.counts["uploads"] for one in runs] == [3, 3]


@pytest.mark.slow
def test_client_that_never_comes_and_a_single_client():
    never = fh.availability.Independent([0.5] * 29 + [0.0])
    run = fh.simulate(
        fh.algorithms.FedAvg(), fh.models.Linear(), digits(), never, rounds=10, batch_size=8, progress=False
    )
    assert 29 not in set(run.participation["client"])
    assert run.weights[29] == 0.0
    lonely = fh.data.load("digits").partition(fh.data.Iid(clients=1), seed=0)
    alone = fh.simulate(
        fh.algorithms.Scaffold(), fh.models.Linear(), lonely, fh.availability.Everyone(), rounds=10, progress=False
    )
    assert alone.clients().iloc[0] > 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounds": 0}, "rounds: received 0; allowed: a whole number, 1 or more"),
        ({"rounds": 2.5}, r"rounds: received 2\.5"),
        ({"local_steps": [1, 2]}, "local_steps: received .* 30 numbers, one for each client"),
        ({"local_steps": True}, "local_steps: received True"),
        ({"batch_size": 0}, "batch_size: received 0"),
        ({"seed": -1}, "seed: received -1"),
        ({"evaluate_every": 0}, "evaluate_every: received 0"),
        ({"evaluate_on": "test"}, "evaluate_on: received 'test'; allowed: a list of"),
        ({"evaluate_on": ("tset",)}, r"evaluate_on: received 'tset'.*did you mean test\?"),
        ({"weighting": "Rows"}, r"weighting: received 'Rows'.*did you mean rows\?"),
        ({"on_nonfinite": "ignore"}, "on_nonfinite: received 'ignore'"),
        ({"loop": "fast"}, "loop: received 'fast'"),
        ({"resume": 1}, "resume: received 1"),
    ],
)
def test_refuses_options(options, message):
    with pytest.raises(fh.InvalidInput, match=message):
        fh.simulate(fh.algorithms.FedAvg(), fh.models.Linear(), digits(), LAW, progress=False, **options)


def test_refuses_a_law_for_another_number_of_clients():
    with pytest.raises(fh.InvalidInput, match="clients: received 30"):
        fh.simulate(fh.algorithms.FedAvg(), fh.models.Linear(), digits(), fh.availability.Independent([0.5, 0.5]))
    with pytest.raises(fh.InvalidInput, match="size: received 40"):
        fh.simulate(fh.algorithms.FedAvg(), fh.models.Linear(), digits(), fh.availability.FixedSize(size=40))

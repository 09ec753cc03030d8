"""What FedeRage's scalar does: quantile, tail rate, the exact identity, projection, warnings."""

import jax.numpy as jnp
import numpy as np
import pytest

import fedhedge as fh
from federations import digits

LAW = fh.availability.FixedSize(size=2)


def one_feature_losses():
    """Four clients; the loss of a row is its feature, whatever the model: a run only moves beta."""
    rows = np.arange(40, dtype=float)
    clients = fh.data.Clients.from_splits((rows[:, None], np.zeros(40), np.repeat([0, 1, 2, 3], 10)))
    model = fh.models.Functional(init=lambda key: jnp.zeros(1), loss=lambda w, x, y: x[:, 0] + 0.0 * w[0], convex=True)
    return clients, model


def on_losses(alpha, gamma, beta_step, rounds, batch_size=1, local_steps=4):
    clients, model = one_feature_losses()
    algorithm = fh.algorithms.FedeRage(step=0.0, alpha=alpha, gamma=gamma, beta_step=beta_step, cap=100.0)
    return fh.simulate(
        algorithm, model, clients, LAW, rounds=rounds, local_steps=local_steps, batch_size=batch_size,
        evaluate_every=rounds // 2, evaluate_on=(), progress=False,
    )  # fmt: skip


def series(run, metric):
    return run.history[run.history.metric == metric].set_index("round")["value"]


@pytest.mark.parametrize(("alpha", "gamma"), [(0.3, 0.5), (0.1, 1.0)])
def test_fixed_model_gives_tail_mass_and_quantile(alpha, gamma):
    """With the model still, beta settles at the (1 - alpha) quantile of the losses 0..39."""
    rounds = 20_000
    run = on_losses(alpha, gamma, beta_step=0.01, rounds=rounds)
    rate = series(run, "tail_rate").loc[rounds]
    steps = rounds // 2 * 2 * 4
    # Independent draws would have this standard error; the feedback through beta only makes it smaller.
    assert abs(rate - alpha) < 4 * np.sqrt(alpha * (1 - alpha) / steps)
    # P(loss >= beta) = alpha where beta lies between these two order statistics of the 40 equally likely losses.
    low, high = 40 * (1 - alpha) - 1, 40 * (1 - alpha)
    drift = 0.01 * gamma / alpha * 4
    assert low - drift <= series(run, "beta").loc[rounds] <= high + drift


def test_tail_is_over_mini_batch_losses():
    """With all pairs of rows as mini-batches the quantile is that of pair means within a client."""
    alpha, rounds = 0.05, 20_000
    run = on_losses(alpha, 1.0, beta_step=0.005, rounds=rounds, batch_size=2)
    means = np.sort([(i + j) / 2 + 10 * g for g in range(4) for i in range(10) for j in range(i)])
    expected = means[int(np.ceil((1 - alpha) * len(means))) - 1]
    assert series(run, "beta").loc[rounds] == pytest.approx(expected, abs=1.0)
    assert 40 * (1 - alpha) - expected >= 1.5
    assert series(run, "tail_rate").loc[rounds] == pytest.approx(alpha, abs=0.005)


@pytest.mark.filterwarnings("ignore:FedeRage")
@pytest.mark.parametrize(("alpha", "gamma", "beta_step"), [(0.05, 0.75, 0.005), (0.2, 0.3, 0.02)])
def test_exact_tail_rate_identity_on_a_real_run(alpha, gamma, beta_step):
    """Tail rate = alpha (1 + (beta_T - beta_0)/(gamma eta_beta H T)) with fixed |S| and no projection active."""
    rounds, local_steps = 400, 5
    run = fh.simulate(
        fh.algorithms.FedeRage(alpha=alpha, gamma=gamma, beta_step=beta_step, beta_start=1.0, cap=50.0),
        fh.models.Linear(), digits(), LAW, rounds=rounds, local_steps=local_steps, batch_size=8, evaluate_every=rounds,
        progress=False,
    )  # fmt: skip
    beta = series(run, "beta")
    assert beta.loc[0] == pytest.approx(1.0)
    predicted = alpha * (1 + (beta.loc[rounds] - 1.0) / (gamma * beta_step * local_steps * rounds))
    assert beta.loc[rounds] > 0.0
    assert series(run, "tail_rate").loc[rounds] == pytest.approx(predicted, abs=2e-5)


def test_beta_stays_between_zero_and_the_cap():
    clients, model = one_feature_losses()
    for cap, end in ((3.0, 3.0), (1e-9, 1e-9)):
        algorithm = fh.algorithms.FedeRage(step=0.0, alpha=0.1, gamma=1.0, beta_step=1.0, cap=cap)
        run = fh.simulate(algorithm, model, clients, LAW, rounds=20, batch_size=1, evaluate_on=(), progress=False)
        beta = series(run, "beta")
        assert ((beta >= 0) & (beta <= np.float32(cap))).all()
        assert beta.iloc[-1] <= np.float32(end)


def test_default_cap_is_twice_the_initial_loss():
    clients, model = one_feature_losses()
    algorithm = fh.algorithms.FedeRage(step=0.0, alpha=0.05, gamma=1.0, beta_step=100.0)
    run = fh.simulate(
        algorithm, model, clients, LAW, rounds=1, local_steps=1, batch_size=10, evaluate_on=(), progress=False
    )
    assert series(run, "beta").loc[1] == pytest.approx(2 * np.arange(40).mean())


def test_default_step_is_a_tenth_over_kappa():
    algorithm = fh.algorithms.FedeRage(alpha=0.05, gamma=0.75)
    assert algorithm.kappa == pytest.approx(0.25 + 15.0)
    assert algorithm.step == pytest.approx(0.1 / 15.25)


def test_warns_of_a_step_that_collapses_networks():
    with pytest.warns(UserWarning, match=r"step \* kappa is 0\.1 \* 15\.25 = 1\.53"):
        fh.simulate(
            fh.algorithms.FedeRage(step=0.1), fh.models.MLP(hidden=(4,)), digits(), LAW, rounds=200, batch_size=4,
            evaluate_every=200, progress=False, on_nonfinite="skip",
        )  # fmt: skip


def test_warns_of_too_few_rounds_with_the_number_needed():
    """Initial loss log 10 over gamma eta_beta H = 0.75 * 0.005 * 5: 123 rounds."""
    assert np.ceil(np.log(10) / (0.75 * 0.005 * 5)) == 123
    with pytest.warns(UserWarning, match="about 123 rounds"):
        fh.simulate(fh.algorithms.FedeRage(), fh.models.Linear(), digits(), LAW, rounds=100, progress=False)


@pytest.mark.filterwarnings("error")
def test_says_nothing_when_the_numbers_work():
    fh.simulate(fh.algorithms.FedeRage(), fh.models.Linear(), digits(), LAW, rounds=150, progress=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": 0.0}, r"alpha: received 0\.0; allowed: a number in \(0, 1\]"),
        ({"alpha": 1.5}, r"alpha: received 1\.5"),
        ({"gamma": -0.1}, r"gamma: received -0\.1; allowed: a number in \[0, 1\]"),
        ({"beta_step": float("nan")}, "beta_step: received nan"),
        ({"cap": -1.0}, r"cap: received -1\.0"),
        ({"beta_start": 2.0, "cap": 1.0}, r"cap: received 1\.0"),
        ({"step": True}, "step: received True"),
        ({"ball": 0.0}, r"ball: received 0\.0"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(fh.InvalidInput, match=message):
        fh.algorithms.FedeRage(**arguments)

"""Sensitivity of what the code really releases, the noise that it adds, and that nothing else gets out."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import fedhedge as fh
from fedhedge.algorithms import Batches, Start
from fedhedge.algorithms.dp_dro_admm import valid_slope
from fedhedge.algorithms.private import _within
from fedhedge.dro import NORMS, phi_subgradient
from fedhedge.privacy import calibrate, gradient_sensitivity, lambda_sensitivity, model_sensitivity, witness

A = fh.algorithms
PRIVATE = {
    "DpDroAdmm": A.DpDroAdmm(noise=0.0, rounds=20, radius=0.1, label_cost=0.6),
    "DpDroAdmm, paper": A.DpDroAdmm(noise=0.0, rounds=20, radius=0.1, label_cost=0.6, variant="paper", norm="linf"),
    "DpErmAdmm": A.DpErmAdmm(noise=0.0, reg=0.1),
    "DpSgd": A.DpSgd(noise=0.0),
}
ROWS, FEATURES, CLASSES = 6, 3, 3
FAR = 1e4


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


@functools.partial(jax.jit)
def local_with(algorithm, down, client, X, y, present, noise):
    """One client's work: (upload, new state), with the noise given."""
    index = jnp.arange(len(y))[None, None]
    batches = Batches(X, y, index, present[None, None], jnp.ones(1, jnp.int32))
    up, state, seen = algorithm.local_with(down, jax.tree.map(lambda leaf: leaf[None], client), batches, noise)
    assert seen == {}
    return jax.tree.map(lambda leaf: leaf[0], (up, state))


def silence(algorithm, shape):
    """No noise on any release of one client."""
    return tuple(jnp.zeros((1, *release)) for release in algorithm.shapes(jnp.zeros(shape)))


def client_of(algorithm, shape, **values):
    """A client's first state, with some of it replaced."""
    server = algorithm.init_server(Start(params=jnp.zeros(shape), clients=1, mass=np.ones(1), loss=lambda: 1.0))
    client = jax.tree.map(lambda leaf: leaf[0], algorithm.init_clients(1, server))
    return client._replace(**{name: jnp.asarray(value) for name, value in values.items()}) if values else client


def steps(algorithm, client, rows):
    """rho + 1/eta, and nu (None for methods without lambda); DP-SGD releases the gradient itself."""
    if isinstance(algorithm, A.DpSgd):
        return 1.0, None
    if isinstance(algorithm, A.DpErmAdmm):
        return algorithm.rho + float(algorithm.inverse_step(client, jnp.asarray(rows))), None
    in_model, in_lambda = algorithm.inverse_steps(client, jnp.asarray(float(rows)))
    return algorithm.rho + float(in_model), 1.0 / float(in_lambda)


def releases(algorithm, down, client, table, reference=None):
    """What a client releases about a table: its model (or gradient), and lambda before any projection.

    With `reference`, lambda's noise is such that the released lambda is that one: the model step follows on it.
    """
    X, y, present = (jnp.asarray(column) for column in table)
    quiet = silence(algorithm, down.shape)
    if not isinstance(algorithm, A.DpDroAdmm):
        return np.asarray(local_with(algorithm, down, client, X, y, present, quiet)[0]), None
    # Far from its lower bound lambda is what the noise was added to.
    _, state = local_with(algorithm, down, client, X, y, present, (quiet[0], quiet[1] + FAR))
    lambda_ = float(state.lambda_) - FAR
    shift = 0.0 if reference is None else reference - lambda_
    up, _ = local_with(algorithm, down, client, X, y, present, (quiet[0], quiet[1] + shift))
    return np.asarray(up), lambda_


def distances(algorithm, down, client, table, neighbour):
    first, lambda_ = releases(algorithm, down, client, table)
    second, other = releases(algorithm, down, client, neighbour, reference=lambda_)
    return np.linalg.norm(second - first), None if lambda_ is None else abs(other - lambda_)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
@pytest.mark.parametrize("name", PRIVATE)
def test_no_replaced_row_moves_a_release_further_than_its_sensitivity(name, seed):
    """Any state, any rows (also far longer than the bound: they are scaled down), some of them padding."""
    algorithm, rng, shape = PRIVATE[name], np.random.default_rng(seed), (CLASSES, FEATURES)
    scale = rng.choice([0.0, 0.3, 3.0])
    down = jnp.asarray(scale * rng.normal(size=shape))
    values = {}
    if not isinstance(algorithm, A.DpSgd):
        values = {"model": scale * rng.normal(size=shape), "total": scale * rng.normal(size=shape)}
    if isinstance(algorithm, A.DpDroAdmm):
        values |= {"lambda_": rng.uniform(0.0, 3.0), "multiplier": rng.uniform(0.0, 1.0)}
    client = client_of(algorithm, shape, **values)
    X = rng.normal(size=(ROWS, FEATURES)) * 10.0 ** rng.uniform(-1, 3)
    y = rng.integers(0, CLASSES, ROWS)
    present = np.arange(ROWS) < rng.integers(1, ROWS + 1)
    X2, y2 = X.copy(), y.copy()
    X2[0], y2[0] = rng.normal(size=FEATURES) * 10.0 ** rng.uniform(-1, 3), rng.integers(0, CLASSES)
    if rng.random() < 0.5:
        X2[0] = X[0] * rng.choice([1.0, -1.0])
    moved, moved_lambda = distances(algorithm, down, client, (X, y, present), (X2, y2, present))
    rows = int(present.sum())
    inverse, nu = steps(algorithm, client, rows)
    assert moved <= gradient_sensitivity(rows) / inverse * (1 + 1e-9)
    if nu is not None:
        assert moved_lambda <= lambda_sensitivity(rows, algorithm.label_cost, nu) * (1 + 1e-6) + 1e-11


@pytest.mark.parametrize("row_bound", [1.0, 0.5])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", PRIVATE)
def test_the_sensitivities_are_reached_together(name, classes, row_bound):
    """By the pair of tables of `privacy.witness`; without lambda by one row under two labels that tie."""
    algorithm = dataclasses.replace(PRIVATE[name], row_bound=row_bound)
    shape, down = (classes, FEATURES), jnp.zeros((classes, FEATURES))
    if isinstance(algorithm, A.DpDroAdmm):
        pair = witness(ROWS, FEATURES, classes, algorithm.label_cost, 0.8, row_bound)
        client = client_of(algorithm, shape, model=pair.coef, lambda_=0.8)
        table, neighbour = (pair.rows, pair.labels), (pair.neighbour_rows, pair.labels)
    else:
        client, X, y = client_of(algorithm, shape), np.zeros((ROWS, FEATURES)), np.zeros(ROWS, int)
        # Scaled down to the bound.
        X[0, 0] = 7.0
        table, neighbour = (X, y), (X, np.where(np.arange(ROWS) == 0, 1, y))
    everything = np.ones(ROWS, bool)
    moved, moved_lambda = distances(algorithm, down, client, (*table, everything), (*neighbour, everything))
    inverse, nu = steps(algorithm, client, ROWS)
    assert moved == pytest.approx(gradient_sensitivity(ROWS, row_bound) / inverse, rel=1e-9)
    if nu is not None:
        assert moved_lambda == pytest.approx(lambda_sensitivity(ROWS, algorithm.label_cost, nu), rel=1e-6)


@given(
    noise=st.floats(0.1, 100), rows=st.integers(1, 10_000), rho=st.floats(0.01, 10), step=st.floats(0.1, 50),
    row_bound=st.floats(0.1, 10),
)  # fmt: skip
@settings(max_examples=25, deadline=None)
def test_noise_on_the_model_is_the_same_noise_on_the_gradient_for_all_methods(noise, rows, rho, step, row_bound):
    """s_M (rho + 1/eta) = 2 sqrt(2) L / (N mu_M), whatever rho and eta; and lambda's is noise times its sensitivity."""
    common = {"noise": noise, "row_bound": row_bound}
    methods = [
        A.DpDroAdmm(**common, lambda_noise=2.0, rounds=7, rho=rho, step=step),
        A.DpDroAdmm(**common, lambda_noise=2.0, rounds=7, rho=rho, step=step, variant="paper"),
        A.DpErmAdmm(**common, rho=rho, diameter=step),
        A.DpSgd(**common, step=step),
    ]
    shape = (CLASSES, FEATURES)
    for algorithm in methods:
        client = client_of(algorithm, shape)
        found = algorithm.deviations(jnp.zeros(shape), client, jnp.asarray(float(rows)))
        inverse, nu = steps(algorithm, client, rows)
        assert float(found[0]) * inverse == pytest.approx(2 * math.sqrt(2) * row_bound * noise / rows, rel=1e-12)
        if not isinstance(algorithm, A.DpSgd):
            eta = 1 / (inverse - rho)
            assert float(found[0]) == pytest.approx(noise * model_sensitivity(rows, rho, eta, row_bound), rel=1e-6)
        if nu is not None:
            expected = 2.0 * lambda_sensitivity(rows, algorithm.label_cost, nu)
            assert float(found[1]) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", PRIVATE)
def test_padding_is_not_read(name):
    algorithm, rng, shape = PRIVATE[name], np.random.default_rng(0), (CLASSES, FEATURES)
    client, down, quiet = client_of(algorithm, shape), jnp.ones(shape), silence(algorithm, shape)
    X, y, present = rng.normal(size=(ROWS, FEATURES)), rng.integers(0, CLASSES, ROWS), np.arange(ROWS) < 4
    changed, labels = np.where(present[:, None], X, 99.0), np.where(present, y, 2)
    results = [
        local_with(algorithm, down, client, *map(jnp.asarray, table), quiet)
        for table in ((X, y, present), (changed, labels, present), (X[:4], y[:4], present[:4]))
    ]
    for other in results[1:]:
        for a, b in zip(jax.tree.leaves(results[0]), jax.tree.leaves(other), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13)


@pytest.mark.parametrize("name", PRIVATE)
def test_noise_has_the_deviations_and_is_independent(name):
    """Gaussian by Kolmogorov-Smirnov and of the stated deviation by chi-square, each at level 1e-5, over 4,000 keys.

    At radius 0 the model step does not look at lambda, whose noise is then seen alone.
    """
    changes = {"noise": 1.5}
    if isinstance(PRIVATE[name], A.DpDroAdmm):
        changes |= {"lambda_noise": 0.7, "radius": 0.0, "lambda_start": 50.0, "penalty": 0.0}
    algorithm, rng, shape = dataclasses.replace(PRIVATE[name], **changes), np.random.default_rng(1), (CLASSES, FEATURES)
    X, y = jnp.asarray(rng.normal(size=(ROWS, FEATURES))), jnp.asarray(rng.integers(0, CLASSES, ROWS))
    client, down = client_of(algorithm, shape), jnp.zeros(shape)
    batches = Batches(X, y, jnp.arange(ROWS)[None, None], None, jnp.ones(1, jnp.int32))

    def released(key):
        states = jax.tree.map(lambda leaf: leaf[None], client)
        up, state, _ = algorithm.local(None, down, states, batches, key[None])
        return up[0], state.lambda_[0] if isinstance(algorithm, A.DpDroAdmm) else jnp.zeros(())

    up, lambda_ = jax.jit(jax.vmap(released))(jax.random.split(jax.random.key(0), 4000))
    mean, _ = local_with(algorithm, down, client, X, y, jnp.ones(ROWS, bool), silence(algorithm, shape))
    deviations = [float(sigma) for sigma in algorithm.deviations(down, client, jnp.asarray(float(ROWS)))]
    scaled = (np.asarray(up) - np.asarray(mean)).reshape(4000, -1) / deviations[0]
    samples = [scaled.ravel()]
    if len(deviations) == 2:
        _, state = local_with(algorithm, down, client, X, y, jnp.ones(ROWS, bool), silence(algorithm, shape))
        samples.append((np.asarray(lambda_) - float(state.lambda_)) / deviations[1])
        scaled = np.column_stack([scaled, samples[1]])
    for sample in samples:
        assert stats.kstest(sample, "norm").pvalue > 1e-5
        tail = stats.chi2.cdf((sample**2).sum(), len(sample))
        assert 1e-5 / 2 < tail < 1 - 1e-5 / 2
    correlations = np.corrcoef(scaled.T)[np.triu_indices(scaled.shape[1], 1)]
    assert np.abs(correlations).max() < stats.norm.isf(1e-5 / len(correlations) / 2) / math.sqrt(4000)


def test_calibrated_methods_take_the_noise_of_the_whole_run():
    budget = fh.Privacy(epsilon=2.0, delta=1e-5)
    plain, shared = calibrate(budget, 40), calibrate(budget, 40, lambda_share=0.05)
    assert A.DpErmAdmm.calibrated(budget, 40, rho=0.3) == A.DpErmAdmm(noise=plain.model, rho=0.3)
    assert A.DpSgd.calibrated(budget, 40) == A.DpSgd(noise=plain.model)
    found = A.DpDroAdmm.calibrated(budget, 40, norm="l2")
    assert (found.noise, found.lambda_noise, found.rounds, found.norm) == (shared.model, shared.lambda_, 40, "l2")
    trusted = A.DpDroAdmm.calibrated(budget, 40, label_cost=math.inf)
    assert (trusted.noise, trusted.lambda_noise) == (plain.model, 0.0)
    paper = A.DpDroAdmm.calibrated(fh.Privacy(0.5, 1e-6, "round"), 50, accounting="paper", variant="paper")
    assert 1 / paper.noise == pytest.approx(math.sqrt(0.95) * 0.5 / math.sqrt(2 * math.log(1.25e6)))


@pytest.mark.parametrize("norm", NORMS)
def test_valid_slope_bounds_the_subgradients_of_phi(norm):
    rng = np.random.default_rng(2)
    lengths = [np.linalg.norm(phi_subgradient(rng.normal(size=(4, 5)), norm)) for _ in range(100)]
    assert max(lengths) == pytest.approx(valid_slope(norm, 5))


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: A.DpSgd(noise=-1.0), r"noise: received -1\.0; allowed: a number in \[0, inf\)"),
        (lambda: A.DpErmAdmm(noise=1.0, row_bound=0.0), r"row_bound: received 0\.0"),
        (lambda: A.DpErmAdmm(noise=1.0, rho=0.0), r"rho: received 0\.0"),
        (lambda: A.DpDroAdmm(noise=1.0, rounds=5), r"lambda_noise: received 0\.0; allowed: a number above 0"),
        (lambda: A.DpDroAdmm(noise=0.0, rounds=0), "rounds: received 0"),
        (lambda: A.DpDroAdmm(noise=0.0, rounds=5, norm="L2"), r"norm: received 'L2'; .*did you mean l2\?"),
        (lambda: A.DpDroAdmm(noise=0.0, rounds=5, variant="papers"), r"variant: .*did you mean paper\?"),
        (lambda: A.DpDroAdmm(noise=0.0, rounds=5, label_cost=-1.0), r"label_cost: received -1\.0"),
        (lambda: A.DpSgd(noise=1.0, step=0.0), r"step: received 0\.0"),
    ],
)
def test_refuses(made, message):
    with pytest.raises(fh.InvalidInput, match=message):
        made()


@pytest.mark.parametrize("bound", [1e-100, 1.0, 1e100])
def test_rows_keep_to_the_bound_where_squares_leave_the_doubles(bound):
    """Rows of 1e-200 stay, of 1e200 come down to the bound; by the sum of squares alone they would be 0 or infinite."""
    unit = np.array([[3.0, 0.0, 4.0], [0.0, 0.0, 0.0], [1.0, -2.0, 2.0]])
    scales = (1e-200, 1e-101, 1e99, 1e200)
    X = np.vstack([unit * scale for scale in scales])
    # Compiled, as it runs: a division may then be a product with the reciprocal.
    rows = X * np.asarray(jax.jit(_within)(jnp.asarray(X), bound))
    lengths = np.concatenate([scale * np.array([5.0, 0.0, 3.0]) for scale in scales])
    factor = (bound / np.maximum(lengths, bound))[:, None]
    np.testing.assert_allclose(rows, X * factor, rtol=1e-14, atol=0)


@pytest.mark.parametrize("entry", [1e299, 1e301, 5e307, 1.7e308])
@pytest.mark.parametrize("name", PRIVATE)
def test_no_row_moves_a_model_further_than_one_of_the_bound(name, entry):
    """The largest doubles too: a step on such rows is one on rows of length L in their direction."""

    def moved(rows):
        clients = fh.data.Clients.from_splits((rows, np.array([0, 1, 2, 0]), np.zeros(4, int)))
        run = fh.simulate(
            PRIVATE[name], fh.models.CrammerSinger(), clients, fh.availability.Everyone(),
            rounds=2, local_steps=1, batch_size=None, evaluate_on=(), progress=False,
        )  # fmt: skip
        return run.params

    direction = np.array([[1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [0.0, -1.0, 1.0], [1.0, 0.0, 1.0]])
    np.testing.assert_allclose(moved(entry * direction), moved(direction / np.sqrt(2.0)), atol=1e-12)


def test_the_bound_of_rows_has_a_lower_limit():
    A.DpSgd(noise=1.0, row_bound=1e-100)
    with pytest.raises(fh.InvalidInput, match=r"row_bound: received 1e-101; allowed: a number in \[1e-100, inf\)"):
        A.DpSgd(noise=1.0, row_bound=1e-101)

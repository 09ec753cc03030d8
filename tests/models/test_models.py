"""Losses, gradients and shapes of the models against independent computations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import correlate
from scipy.special import log_softmax

import fedhedge as fh
from fedhedge.models.cnn import convolve, max_pool

KEY = jax.random.key(0)
RNG = np.random.default_rng(0)


def test_linear_is_softmax_regression_from_zero():
    model = fh.models.Linear().build((5,), 3)
    X, y = RNG.normal(size=(4, 5)).astype(np.float32), np.array([0, 2, 1, 1])
    start = model.init(KEY)
    np.testing.assert_allclose(model.loss(start, X, y), np.log(3), rtol=1e-6)
    params = {"weight": RNG.normal(size=(5, 3)).astype(np.float32), "bias": RNG.normal(size=3).astype(np.float32)}
    expected = -log_softmax(X @ params["weight"] + params["bias"], axis=1)[np.arange(4), y]
    np.testing.assert_allclose(model.loss(params, X, y), expected, rtol=1e-5)
    assert "bias" not in fh.models.Linear(intercept=False).build((5,), 3).init(KEY)
    assert model.convex


def test_mlp_forward_pass():
    model = fh.models.MLP(hidden=(7, 6)).build((2, 3), 4)
    params = model.init(KEY)
    assert [params[f"layer{i}"]["weight"].shape for i in range(3)] == [(6, 7), (7, 6), (6, 4)]
    X = RNG.normal(size=(5, 2, 3)).astype(np.float32)
    h = X.reshape(5, -1)
    for i in range(2):
        h = np.maximum(h @ np.asarray(params[f"layer{i}"]["weight"]) + np.asarray(params[f"layer{i}"]["bias"]), 0)
    out = h @ np.asarray(params["layer2"]["weight"])
    np.testing.assert_array_equal(model.predict(params, X), out.argmax(axis=1))
    np.testing.assert_allclose(model.loss(params, X, np.zeros(5, int)), -log_softmax(out, axis=1)[:, 0], rtol=1e-4)


def test_weights_start_with_variance_two_over_fan_in():
    weight = fh.models.MLP(hidden=(400,)).build((500,), 2).init(KEY)["layer0"]["weight"]
    assert float(weight.var()) == pytest.approx(2 / 500, rel=4 * np.sqrt(2 / weight.size))
    assert abs(float(weight.mean())) < 4 * np.sqrt(2 / 500 / weight.size)


def test_convolution_is_a_same_size_correlation():
    x, kernel = RNG.normal(size=(2, 6, 5, 3)), RNG.normal(size=(3, 3, 3, 4))
    found = convolve(jnp.asarray(x, jnp.float32), jnp.asarray(kernel, jnp.float32))
    for image in range(2):
        for out in range(4):
            expected = sum(correlate(x[image, :, :, c], kernel[:, :, c, out], mode="same") for c in range(3))
            np.testing.assert_allclose(found[image, :, :, out], expected, atol=1e-4)


def test_max_pool_drops_an_odd_edge():
    x = np.arange(2 * 5 * 4 * 1, dtype=np.float32).reshape(2, 5, 4, 1)
    found = np.asarray(max_pool(jnp.asarray(x)))
    assert found.shape == (2, 2, 2, 1)
    for b, i, j in np.ndindex(2, 2, 2):
        assert found[b, i, j, 0] == x[b, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2].max()


def test_cnn_gradient_is_a_finite_difference():
    model = fh.models.CNN(channels=(2, 3), hidden=5).build((9, 8, 1), 3)
    with jax.enable_x64(True):
        params = model.init(KEY)
        X, y = jnp.asarray(RNG.normal(size=(2, 9, 8, 1))), jnp.asarray([0, 2])

        def mean(p):
            return model.loss(p, X, y).mean()

        gradient = jax.grad(mean)(params)
        direction = jax.tree.map(lambda leaf: jnp.asarray(RNG.normal(size=leaf.shape)), params)
        step = 1e-6
        ahead, behind = (mean(jax.tree.map(lambda p, d, s=s: p + s * d, params, direction)) for s in (step, -step))
        slope = sum(jnp.vdot(a, b) for a, b in zip(jax.tree.leaves(gradient), jax.tree.leaves(direction), strict=True))
        assert float(slope) == pytest.approx(float(ahead - behind) / (2 * step), rel=1e-5)


def test_cnn_learns_digits_in_both_loops():
    clients = fh.data.load("digits").partition(fh.data.Iid(clients=2), seed=0)
    ends = [
        fh.simulate(
            fh.algorithms.FedAvg(step=0.05), fh.models.CNN(channels=(8,), hidden=16), clients,
            fh.availability.Everyone(), rounds=20, evaluate_every=20, loop=loop, progress=False,
        ).params
        for loop in ("auto", "compiled")
    ]  # fmt: skip
    for left, right in zip(*map(jax.tree.leaves, ends), strict=True):
        np.testing.assert_allclose(left, right, atol=2e-4)


def test_crammer_singer_loss():
    model = fh.models.CrammerSinger().build((4,), 3)
    M, X, y = RNG.normal(size=(3, 4)), RNG.normal(size=(6, 4)), RNG.integers(0, 3, 6)
    expected = [
        max(0.0, 1 + max(M[k] @ x for k in range(3) if k != label) - M[label] @ x)
        for x, label in zip(X, y, strict=True)
    ]
    found = model.loss(jnp.asarray(M, jnp.float32), jnp.asarray(X, jnp.float32), jnp.asarray(y))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_equal_arguments_share_one_model_and_so_one_compilation():
    assert fh.models.MLP(hidden=[8]).build((3,), 2) is fh.models.MLP(hidden=(8,)).build((3,), 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fh.models.MLP(hidden=(0,)), r"hidden\[0\]: received 0"),
        (lambda: fh.models.MLP(hidden=()), "hidden: received"),
        (lambda: fh.models.MLP(hidden=200), "hidden: received 200; allowed: a list of whole numbers"),
        (lambda: fh.models.Linear(intercept="yes"), "intercept: received 'yes'"),
        (lambda: fh.models.CNN(hidden=0), "hidden: received 0"),
        (lambda: fh.models.CNN().build((784,), 10), r"features: received \(784,\); allowed: images"),
        (lambda: fh.models.CNN(channels=(2, 2, 2, 2)).build((8, 8, 1), 10), "at least 16 x 16 pixels"),
    ],
)
def test_refuses(make, message):
    with pytest.raises(fh.InvalidInput, match=message):
        make()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": lambda w, x, y: jnp.sum(x) * w}, r"model\.loss: .*allowed: floating-point losses \[3\]"),
        ({"loss": lambda w, x, y: (x[:, 0] > 0).astype(int)}, r"model\.loss"),
        ({"loss": lambda w, x, y: None}, r"model\.loss: received None"),
        ({"init": lambda key: jnp.zeros((), int)}, r"model\.init: received \['int32'\]; allowed: a tree of floating"),
        ({"init": lambda key: {}}, r"model\.init: received 'no arrays'"),
        ({"predict": lambda w, x: x}, r"model\.predict: .*allowed: predictions \[3\]"),
    ],
)
def test_own_functions_that_do_not_fit_are_refused_before_work(change, message):
    parts = {"init": lambda key: jnp.zeros(()), "loss": lambda w, x, y: w * x[:, 0]} | change
    clients = fh.data.Clients.from_arrays(RNG.normal(size=(20, 2)), np.arange(20) % 2, np.arange(20) % 4)
    with pytest.raises(fh.InvalidInput, match=message):
        fh.simulate(fh.algorithms.FedAvg(), fh.models.Functional(**parts), clients, fh.availability.Everyone())


@pytest.mark.parametrize("wrong", ["algorithm", "model", "clients", "law"])
def test_wrong_kinds_of_parts_are_named(wrong):
    clients = fh.data.Clients.from_arrays(RNG.normal(size=(20, 2)), np.arange(20) % 2, np.arange(20) % 4)
    parts = {
        "algorithm": fh.algorithms.FedAvg(),
        "model": fh.models.Linear(),
        "clients": clients,
        "law": fh.availability.Everyone(),
    }
    for value in ("FedAvg", type(parts[wrong])):
        with pytest.raises(fh.InvalidInput, match=f"^{wrong}: received"):
            fh.simulate(*(parts | {wrong: value}).values())


def test_numpy_numbers_are_settings_like_any_other(tmp_path):
    clients = fh.data.Clients.from_arrays(RNG.normal(size=(20, 2)), np.arange(20) % 2, np.arange(20) % 4)
    run = fh.simulate(
        fh.algorithms.FedAvg(step=np.float32(0.5)), fh.models.Linear(), clients,
        fh.availability.FixedSize(size=np.int64(2)), rounds=np.int64(2), local_steps=np.int64(1), seed=np.int64(3),
        progress=False,
    )  # fmt: skip
    run.save(tmp_path / "run.npz")
    assert fh.Run.load(tmp_path / "run.npz").settings == run.settings
    assert run.predict(np.zeros((0, 2))).shape == (0,)

"""What every law must do."""

import itertools
import json
from dataclasses import dataclass

import numpy as np
import pytest
from enumeration import THRESHOLD, assert_frequencies, assert_shares, draws

from fedhedge import streams
from fedhedge.availability import (
    LAWS,
    Cycle,
    Dropout,
    Everyone,
    FixedSize,
    Groups,
    Independent,
    Law,
    Markov,
    SampledLaw,
    Subsets,
    Trace,
    presets,
)
from fedhedge.checks import InvalidInput


@dataclass(frozen=True, eq=False)
class Pairs(SampledLaw):
    """A law of which only the sampler is known: two neighbours on a ring."""

    number: int

    @property
    def clients(self):
        return self.number

    def sample(self, rng, round):
        first = rng.integers(self.clients)
        return np.isin(np.arange(self.clients), [first, (first + 1) % self.clients])


def examples():
    return {
        "Everyone": Everyone(6),
        "FixedSize": FixedSize([5, 4, 3, 2, 1, 0], 2),
        "FixedSize uniform": FixedSize().bind(6),
        "Independent": Independent([0.1, 0.3, 0.0, 0.7, 1.0, 0.2]),
        "Subsets": Subsets({(0, 1): 0.5, (2, 5): 0.3, (): 0.2}),
        "Groups": Groups([[0, 1], [2, 3, 5], [4]], Markov(0.1, 0.2)),
        "Markov": Markov([0.1, 0.2, 0.3, 0.4, 0.0, 0.02], 0.1),
        "Cycle": Cycle(np.random.default_rng(0).uniform(size=(5, 6))),
        "Trace": Trace(np.random.default_rng(0).uniform(size=(40, 6)) < 0.3),
        "Dropout": Dropout(Markov(0.1, 0.2), [0.1, 0.2, 0.3, 0.4, 0.5, 1.0]),
        "SampledLaw": Pairs(6),
    }


EXAMPLES = examples()


@pytest.fixture(params=EXAMPLES)
def law(request):
    return EXAMPLES[request.param]


def test_every_law_has_an_example():
    assert {type(law) for law in EXAMPLES.values()} == {*LAWS.values(), Pairs}
    assert all(name == known.__name__ and issubclass(known, Law) for name, known in LAWS.items())


def test_schedule_does_not_depend_on_how_it_is_cut(law):
    whole = law.schedule(5, 0, 60)
    assert whole.dtype == np.bool_
    assert whole.shape == (60, 6)
    for cuts in ([0, 1, 2, 60], [0, 30, 60], [*range(0, 61, 7), 60]):
        parts = [law.schedule(5, a, b) for a, b in itertools.pairwise(cuts)]
        assert (np.concatenate(parts) == whole).all()
    assert law.schedule(5, 7, 7).shape == (0, 6)


def test_seeds_differ(law):
    same = (law.schedule(5, 0, 60) == law.schedule(6, 0, 60)).all()
    assert same == isinstance(law, Everyone | Trace)


def test_weights_are_a_distribution(law):
    weights, inclusion, sizes = law.weights(), law.inclusion_probabilities(), law.sizes()
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert (weights >= 0).all()
    assert ((weights > 0) == (inclusion > 0)).all()
    assert sizes.sum() == pytest.approx(1, abs=1e-12)
    assert sizes @ np.arange(len(sizes)) == pytest.approx(inclusion.sum(), rel=1e-11)
    assert sizes[0] == pytest.approx(law.empty_probability(), abs=1e-12)


def test_single_rounds_have_the_inclusion_probabilities_and_weights(law):
    if isinstance(law, Trace | SampledLaw):
        pytest.skip("a trace is not random; a sampled law has an error of its own, tested below")
    present = draws(law, 5000)
    assert present.sum(axis=1).max() <= law.largest()
    if not isinstance(law, Cycle):
        assert_frequencies(present, law.inclusion_probabilities())
    assert_shares(present, law.weights())


def test_binding(law):
    assert law.bind(6) is law
    with pytest.raises(InvalidInput, match="clients: received 7; allowed: 6"):
        law.bind(7)
    with pytest.raises(InvalidInput, match="clients: received 0"):
        law.bind(0)


@pytest.mark.parametrize(
    "loose", [Everyone(), FixedSize(size=2), Independent(0.3), Markov(0.1, 0.4), Dropout(Independent(0.5), 0.2)]
)
def test_laws_for_any_number_of_clients(loose):
    assert loose.clients is None
    for use in (loose.weights, loose.inclusion_probabilities, lambda: loose.schedule(0, 0, 3)):
        with pytest.raises(InvalidInput, match="clients: received None; allowed: a law tied to a number of clients"):
            use()
    for clients in (2, 9):
        tied = loose.bind(clients)
        assert tied.clients == clients
        np.testing.assert_allclose(tied.weights(), 1 / clients, rtol=1e-12)
    assert loose.bind(4) == loose.bind(4)
    assert loose.bind(4) != loose.bind(5)


def test_settings_are_json_and_tell_laws_apart(law):
    settings = law.settings()
    assert json.loads(json.dumps(settings, allow_nan=False)) == settings
    assert settings["name"] == type(law).__name__
    again = next(other for other in examples().values() if other == law)
    assert again is not law
    assert hash(again) == hash(law)
    assert sum(other == law for other in EXAMPLES.values()) == 1
    assert law != settings


@pytest.mark.parametrize("name", ["FixedSize", "Independent", "Subsets", "Markov", "Cycle", "Everyone"])
def test_settings_are_the_arguments(name):
    arguments = EXAMPLES[name].settings()
    np.testing.assert_allclose(LAWS[arguments.pop("name")](**arguments).weights(), EXAMPLES[name].weights(), rtol=1e-14)


def test_description(law):
    table = law.describe()
    assert table["client"].tolist() == list(range(6))
    np.testing.assert_array_equal(table["weight"], law.weights())
    np.testing.assert_array_equal(table["inclusion_probability"], law.inclusion_probabilities())
    np.testing.assert_allclose(table["uniform_weight"], 1 / 6)
    assert set(table["method"]) == {"exact" if law.exact else "Monte Carlo"}
    errors = table[["inclusion_standard_error", "weight_standard_error"]]
    assert (errors == 0).all(axis=None) == law.exact


def test_sampled_law_states_its_error():
    law = Pairs(6)
    inclusion_error, weight_error = law.standard_errors()
    # Each client is in two of the six pairs: P = 1/3, p = 1/6, from 20,000 rounds.
    np.testing.assert_allclose(inclusion_error, np.sqrt(1 / 3 * 2 / 3 / 20_000), rtol=0.03)
    assert (np.abs(law.inclusion_probabilities() - 1 / 3) <= THRESHOLD * inclusion_error).all()
    assert (np.abs(law.weights() - 1 / 6) <= THRESHOLD * weight_error).all()
    dropped = Dropout(law, 0.5)
    assert not dropped.exact
    assert (np.abs(dropped.inclusion_probabilities() - 1 / 6) <= THRESHOLD * dropped.standard_errors()[0]).all()


def test_monte_carlo_rounds_are_not_the_rounds_of_training():
    law = Independent([0.5] * 6)
    assert (law.monte_carlo(50) != law.schedule(0, 0, 50)).any()


@pytest.mark.parametrize(
    ("seed", "start", "stop", "message"),
    [
        (-1, 0, 5, "seed: received -1"),
        (0, -1, 5, "start: received -1"),
        (0, 5, 4, "stop: received 4"),
        (0, 0, 1.5, "stop"),
    ],
)
def test_bad_rounds(law, seed, start, stop, message):
    with pytest.raises(InvalidInput, match=message):
        law.schedule(seed, start, stop)


def test_a_round_draws_from_its_own_stream():
    law = presets.sporadic()
    rng = streams.generator(3, streams.Purpose.AVAILABILITY, round=17)
    assert (law.schedule(3, 17, 18)[0] == law.sample(rng, 17)).all()

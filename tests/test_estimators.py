"""FederatedDROClassifier: scikit-learn's conventions, what it trains, what it states about privacy, its files."""

import copy
import math
import warnings

import jax
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import fedhedge as fh
from fedhedge.algorithms import DpDroAdmm, Start
from fedhedge.availability import Everyone
from fedhedge.estimators import statements
from fedhedge.models import CrammerSinger
from fedhedge.privacy import NoiseMultipliers, Statement, spent
from fedhedge.simulation.arithmetic import arithmetic
from iris_sites import BUDGET, COLUMNS, RANGES, SITES, SPECIES, X, Y, private

# Nearly no noise: the checks ask for accuracy on a few dozen rows.
LOUD = {"privacy": fh.Privacy(epsilon=1e6, delta=1e-6), "feature_bounds": (-4.0, 4.0), "rounds": 50}


@pytest.fixture(scope="module")
def fitted():
    return private().fit(X, Y, clients=SITES)


@parametrize_with_checks([fh.FederatedDROClassifier(rounds=2)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [fh.FederatedDROClassifier(method=name, **LOUD) for name in ("dp-dro", "dp-erm", "dp-sgd")]
    + [fh.FederatedDROClassifier(method="ova-dro", rounds=2)]
)
def test_scikit_learns_checks_of_the_other_methods(estimator, check):
    check(estimator)


def test_result_is_that_of_simulate(fitted):
    low, high = np.array(RANGES).T
    features = np.column_stack([(X - low) / (high - low) * 2 - 1, np.full(len(X), 0.5)])
    clients = fh.data.Clients.from_arrays(features, Y, SITES, validation=0, test=0)
    run = fh.simulate(
        DpDroAdmm.calibrated(BUDGET, 20, norm="l1", radius=0.01, label_cost=0.5),
        CrammerSinger(),
        clients,
        Everyone(),
        rounds=20,
        local_steps=1,
        batch_size=None,
        seed=3,
        evaluate_on=(),
        weighting="rows",
        progress=False,
    )
    np.testing.assert_allclose(fitted.coef_, run.params[:, :4], rtol=0, atol=1e-9)
    np.testing.assert_allclose(fitted.intercept_, 0.5 * run.params[:, 4], rtol=0, atol=1e-9)
    np.testing.assert_allclose(fitted.run_.params, run.params, rtol=0, atol=1e-9)
    assert (fitted.predict(X) == run.predict(features)).all()
    # One noisy lambda a site, from 5 on.
    assert fitted.lambda_.shape == (3,)
    assert len(set(fitted.lambda_) | {5.0}) == 4


def test_scores_are_those_of_scaled_and_clipped_rows(fitted):
    outside = np.array([[4.0, 5.0, 0.5, 3.0], [-100.0, 5.0, 0.5, 1e300], [6.0, 3.25, 4.0, 1.5]])
    scaled = np.array([[-1, 1, -1, 1], [-1, 1, -1, 1], [0, 0, 0, 0]])
    expected = scaled @ fitted.coef_.T + fitted.intercept_
    np.testing.assert_allclose(fitted.decision_function(outside), expected, atol=1e-12)
    assert (fitted.predict(outside) == fitted.classes_[expected.argmax(axis=1)]).all()


def test_an_outlier_counts_as_the_end_of_its_declared_range(fitted):
    far, near = X.copy(), X.copy()
    far[7], near[7] = [1e6, -1e6, 1e6, -1e6], [8.0, 1.5, 7.5, 0.0]
    assert (private().fit(far, Y, clients=SITES).coef_ == private().fit(near, Y, clients=SITES).coef_).all()
    assert (private().fit(near, Y, clients=SITES).coef_ != fitted.coef_).any()


def test_order_of_rows_and_names_of_sites_do_not_matter(fitted):
    order = np.random.default_rng(0).permutation(len(X))
    shuffled = private().fit(X[order], Y[order], clients=SITES[order])
    renamed = private().fit(X, Y, clients=np.arange(len(X)) % 3 + 10)
    np.testing.assert_allclose(shuffled.coef_, fitted.coef_, atol=1e-9)
    assert (renamed.coef_ == fitted.coef_).all()
    assert list(renamed.privacy_) == [10, 11, 12]


def test_one_site_without_noise_reaches_the_pooled_optimum():
    model = fh.FederatedDROClassifier(radius=0.05, intercept_scaling=0.0, options={"tolerance": 1e-4}).fit(X, Y)
    scaled = model.bounds_(X)
    np.testing.assert_allclose([scaled.min(axis=0), scaled.max(axis=0)], [[-1.0] * 4, [1.0] * 4], atol=1e-12)
    best = fh.dro.solve_client(scaled, SPECIES, 0.05, 0.5, "l1")
    risk, lam = fh.dro.worst_case_risk(model.coef_, scaled, SPECIES, 0.05, 0.5, "l1")
    assert best.objective - 1e-7 <= risk <= best.objective * 1.01
    assert model.lambda_ == pytest.approx([lam])
    assert (model.intercept_ == 0).all()
    assert model.n_iter_ < 300
    assert model.privacy_ is None


def test_noise_follows_random_state(fitted):
    assert (private().fit(X, Y, clients=SITES).coef_ == fitted.coef_).all()
    assert (private(random_state=4).fit(X, Y, clients=SITES).coef_ != fitted.coef_).any()
    first, second = (private(random_state=None).fit(X, Y, clients=SITES) for _ in range(2))
    assert (first.coef_ != second.coef_).any()
    state = np.random.RandomState(5)
    first, second = (private(random_state=state).fit(X, Y, clients=SITES) for _ in range(2))
    assert (first.coef_ != second.coef_).any()
    again = private(random_state=np.random.RandomState(5)).fit(X, Y, clients=SITES)
    assert (first.coef_ == again.coef_).all()


# ---- privacy statements


def test_statement_of_each_site_costs_the_budget_and_no_more(fitted):
    algorithm = fitted.algorithm()
    noise = NoiseMultipliers(algorithm.noise, algorithm.lambda_noise)
    assert list(fitted.privacy_) == ["a", "b", "c"]
    for site, statement in fitted.privacy_.items():
        assert (statement.site, statement.samples, statement.rounds) == (site, 50, 20)
        assert statement.requested == BUDGET
        assert statement.epsilon == pytest.approx(spent(noise, 20, 1e-5), rel=1e-9)
        assert statement.epsilon_paper == pytest.approx(spent(noise, 20, 1e-5, accounting="paper"), rel=1e-9)
        assert 0.999 * BUDGET.epsilon < statement.epsilon <= BUDGET.epsilon * (1 + 1e-9)


@pytest.mark.parametrize("samples", [7, 400])
def test_releases_are_the_noise_that_the_algorithm_adds(samples):
    # In the algorithm's own units: deviation of M over 1/(rho + 1/eta), deviation of lambda over nu.
    algorithm = private(label_cost=0.7).algorithm()
    with arithmetic("float64"):
        server = algorithm.init_server(Start(params=np.zeros((3, 5)), clients=1, mass=np.ones(1), loss=lambda: 1.0))
        client = jax.tree.map(lambda leaf: leaf[0], algorithm.init_clients(1, server))
        in_model, in_lambda = map(float, algorithm.inverse_steps(client, float(samples)))
        down = algorithm.broadcast(server)
        model, lam = map(float, algorithm.deviations(down, client, float(samples)))
    on_model, on_lambda = statements.releases(algorithm, samples)
    assert on_model.sigma == pytest.approx(model * (algorithm.rho + in_model), rel=1e-12)
    assert on_model.sensitivity == pytest.approx(2 * math.sqrt(2) / samples, rel=1e-12)
    assert on_lambda.sigma == pytest.approx(lam * in_lambda, rel=1e-12)
    assert on_lambda.sensitivity == pytest.approx(0.7 / samples, rel=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "delta", "rounds", "paper", "exact"), [(0.5, 1e-6, 50, 3.7299, 3.101), (0.2, 1e-8, 120, 2.2421, 1.897)]
)
def test_the_papers_settings_give_the_papers_totals(epsilon, delta, rounds, paper, exact):
    budget = fh.Privacy(epsilon, delta, per="round")
    algorithm = private(privacy=budget, rounds=rounds, variant="paper").algorithm()
    said = Statement("s", 30, rounds, statements.releases(algorithm, 30), delta, requested=budget)
    assert said.epsilon_paper == pytest.approx(paper, abs=5e-5)
    assert said.epsilon == pytest.approx(exact, abs=5e-4)
    assert said.epsilon_round_paper == pytest.approx(epsilon, rel=1e-9)


def test_trusted_labels_spend_nothing_on_lambda():
    model, lam = statements.releases(private(label_cost=math.inf).algorithm(), 30)
    assert lam.mu == 0
    assert Statement("s", 30, 20, (model, lam), 1e-5).epsilon == pytest.approx(8.0, rel=1e-6)


def test_statement_says_what_was_taken_from_the_rows(fitted):
    assert any("classes" in line for line in fitted.privacy_["a"].not_covered)
    with pytest.warns(UserWarning, match="bounds"):
        model = private(feature_bounds="data", classes=sorted(set(Y))).fit(X, Y, clients=SITES)
    said = model.privacy_["a"]
    assert "TAKEN FROM THE DATA" in str(said)
    assert any("feature bounds" in line for line in said.not_covered)
    assert not any("classes" in line for line in said.not_covered)


def test_a_declared_class_without_rows_is_a_class():
    model = private(classes=["virginica", "unknown", "setosa", "versicolor"]).fit(X, Y, clients=SITES)
    assert model.classes_.tolist() == ["setosa", "unknown", "versicolor", "virginica"]
    assert model.coef_.shape == (4, 4)


# ---- bad input

HOLE = X.copy()
HOLE[4, 2] = np.nan
ONE_CLASS = np.where(SITES == "b", "setosa", Y)
LONELY = np.where(np.arange(len(X)) == 5, "d", SITES)
TEXT = pd.DataFrame(X, columns=COLUMNS).assign(**{"petal width": "wide"})
FAULTS = [
    ({}, (HOLE, Y, SITES), r"column 2 of site 'b': received nan; .*row index 4"),
    ({}, (pd.DataFrame(HOLE, columns=COLUMNS), Y, SITES), r"column 'petal length' of site 'b': received nan"),
    ({}, (X, np.where(np.arange(150) == 4, None, Y), SITES), r"y of site 'b': received None; .*row index 4"),
    ({}, (X, pd.Series(ONE_CLASS, name="fault"), SITES), r"fault of site 'b': received 'one class, setosa'"),
    ({}, (X, np.full(150, "setosa"), SITES), r"y: received 'one class, setosa'"),
    ({}, (X, Y, LONELY), r"rows of site 'd': received '1 sample'"),
    ({}, (TEXT, Y, SITES), r"column 'petal width': received 'wide'"),
    ({}, (X, Y, SITES[:-1]), r"clients: received 'shape \(149,\)'"),
    ({}, (X, Y, np.arange(150) / 7), r"clients: .* allowed: text or whole numbers"),
    (
        {"classes": ["setosa", "versicolor"]},
        (X, Y, SITES),
        r"y of site 'b': received 'virginica'; .* declared",
    ),
    ({"classes": ["setosa"]}, (X, Y, SITES), r"classes: received \['setosa'\]"),
    ({"privacy": fh.Privacy(1.0, 0.03)}, (X, Y, SITES), r"delta at site 'a': received 0.03; allowed: .* 1/n = 0.02"),
    ({"privacy": None}, (X, Y), r"privacy: received None; .*'dp-dro' is a private method"),
    ({"privacy": {"epsilon": 1}}, (X, Y), r"privacy: received \{'epsilon': 1\}"),
    ({"method": "dro"}, (X, Y), r"privacy: received Privacy\(.*allowed: None: 'dro' adds no noise"),
    ({"method": "dp-do"}, (X, Y), r"method: received 'dp-do'; .*did you mean dp-dro\?"),
    (
        {"feature_bounds": None},
        (X, Y),
        r"feature_bounds: received None; .*EstimatedBounds, the table \[estimated_bounds\]",
    ),
    ({"verbose": "loud"}, (X, Y), r"verbose: received 'loud'"),
    ({"feature_bounds": "rows"}, (X, Y), r"feature_bounds: received 'rows'"),
    ({"feature_bounds": RANGES[:3]}, (X, Y), r"feature_bounds: .*there are 4 features"),
    ({"feature_bounds": [*RANGES[:3], (3.0, 3.0)]}, (X, Y), r"feature_bounds of 3: received \(3.0, 3.0\)"),
    ({"feature_bounds": dict(zip(COLUMNS, RANGES, strict=True))}, (X, Y), r"X has no column names"),
    ({"feature_bounds": {"petal lenght": (0, 1)}}, (TEXT.assign(**{"petal width": 1.0}), Y), r"did you mean petal len"),
    ({"feature_bounds": {"petal length": (0, 1)}}, (TEXT.assign(**{"petal width": 1.0}), Y), r"bounds.sepal length"),
    ({"radius": -1.0}, (X, Y), r"radius: received -1.0"),
    ({"rounds": 0}, (X, Y), r"rounds: received 0"),
    ({"variant": "papr"}, (X, Y), r"variant: received 'papr'; .*did you mean paper\?"),
    ({"method": "dp-erm", "variant": "paper"}, (X, Y), r"variant: received 'paper'; allowed: default"),
    ({"method": "dp-sgd", "rho": 1.0}, (X, Y), r"rho: received 1.0; allowed: None"),
    ({"options": {"lambda_strt": 2.0}}, (X, Y), r"options.lambda_strt: .*did you mean lambda_start\?"),
    ({"options": {"noise": 0.0}}, (X, Y), r"options.noise: received 0.0"),
    ({"weighting": "equal"}, (X, Y), r"weighting: received 'equal'"),
    ({"random_state": -1}, (X, Y), r"seed: received -1"),
]


@pytest.mark.parametrize(("changes", "data", "message"), FAULTS, ids=[message for _, _, message in FAULTS])
def test_bad_input_is_named(changes, data, message):
    with pytest.raises(fh.InvalidInput, match=message):
        private(**changes).fit(*data)


def test_sites_of_one_class_are_allowed_on_request():
    model = private(allow_one_class=True).fit(X, ONE_CLASS, clients=SITES)
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]


# ---- conventions that the checks do not reach


def test_bounds_by_column_name(fitted):
    table = pd.DataFrame(X, columns=COLUMNS)
    ranges = dict(zip(reversed(COLUMNS), reversed(RANGES), strict=True))
    model = private(feature_bounds=ranges).fit(table, pd.Series(Y, name="species"), clients=SITES)
    assert model.feature_names_in_.tolist() == COLUMNS
    assert (model.coef_ == fitted.coef_).all()
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table[COLUMNS[::-1]])


def test_clients_reach_fit_through_cross_validation():
    # With its clients a fold holds two sites; as one site of 100 rows it would have a third of their noise.
    seen = []

    class Spy(fh.FederatedDROClassifier):
        def fit(self, X, y, clients=None):
            super().fit(X, y, clients)
            seen.append(self.sites_)
            return self

    spy = Spy(**private().get_params())
    split = {"cv": GroupKFold(3), "groups": SITES, "error_score": "raise"}
    cross_val_score(spy, X, Y, params={"clients": SITES}, **split)
    assert sorted(seen) == [("a", "b"), ("a", "c"), ("b", "c")]
    del split["groups"]
    with sklearn.config_context(enable_metadata_routing=True):
        routed = {"clients": SITES, "groups": SITES}
        cross_val_score(spy.set_fit_request(clients=True), X, Y, params=routed, **split)
    assert seen[3:] == seen[:3]


def test_pipeline_passes_clients():
    model = make_pipeline(StandardScaler(), private(feature_bounds=(-4.0, 4.0)))
    model.fit(X, Y, federateddroclassifier__clients=SITES)
    assert model[-1].sites_ == ("a", "b", "c")
    assert model.score(X, Y) > 0.6


def test_a_copy_keeps_the_model_and_leaves_the_seed_and_the_digest_of_the_rows(fitted):
    """Copies and pickles are made of one state, `__getstate__`."""
    other = copy.deepcopy(fitted)
    assert (other.predict(X) == fitted.predict(X)).all()
    assert not hasattr(other, "run_")
    # The run alone knows the digest, and it alone is left out.
    state = fitted.__getstate__()
    assert set(vars(fitted)) - set(state) == {"run_"}
    assert fitted.run_.settings["data"]["digest"] not in repr(state)


def test_a_few_rows_are_said_to_drown_in_the_noise():
    # By hand: three sites of 10 rows, each worth 1/sqrt(sum (w/N)^2) = 30/sqrt(3) rows of one.
    few = np.arange(30)
    with pytest.warns(UserWarning, match="each round is mostly noise") as seen:
        model = private(rounds=2, privacy=fh.Privacy(1.0, 1e-5)).fit(X[::5], Y[::5], clients=few % 3)
    found = fh.privacy.plan(1.0, 1e-5, 2, 10, features=5, classes=3, clients=3, lambda_share=0.05)
    assert model.algorithm().noise == pytest.approx(found.noise.model)
    assert f"at most {found.signal_to_noise:.2g} times" in str(seen[0].message)


def test_enough_rows_are_not(fitted):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        private().fit(X, Y, clients=SITES)

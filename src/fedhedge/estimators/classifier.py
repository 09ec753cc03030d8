"""The classifier of the second paper: distributionally robust, federated and private, as a scikit-learn estimator."""

from __future__ import annotations

import numbers
import secrets
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fedhedge import checks, streams
from fedhedge.algorithms.base import Algorithm
from fedhedge.algorithms.private import Private
from fedhedge.data import Clients
from fedhedge.estimators import bounds, folder, methods, sites, statements, training
from fedhedge.privacy import EstimatedBounds, Privacy, check_delta

FloatArray = NDArray[np.float64]


class FederatedDROClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Linear multiclass classifier trained over sites, robust to what the data may be and private where asked.

    Predicts argmax_k m_k.x for the matrix M that minimises, over sites g with weights alpha_g, the sum of
    alpha_g sup_Q E_Q max(0, 1 + max_{k != y} m_k.x - m_y.x), Q within Wasserstein distance `radius` of site g's rows
    at the transport cost ||x - x'|| + label_cost 1{y != y'}.

    Parameters
    ----------
    method: "dro" (exact), "ova-dro" (one class against all others, exact); with a budget: "dp-dro" (robust),
        "dp-erm" (regularised empirical risk), "dp-sgd" (noisy subgradients). The last two ignore radius, label_cost
        and norm. With one site each is its centralised version.
    privacy: `fedhedge.Privacy(epsilon=..., delta=...)` for the private methods, and for them alone.
    feature_bounds: the ranges of the sensors: a pair (low, high) for all features, one pair for each, or a mapping of
        column names to pairs. Features are brought to [-1, 1] by them, and clipped there. A
        `fedhedge.privacy.EstimatedBounds` spends part of the budget on finding them. "data" takes the range of
        the training rows, which for a private method voids part of the guarantee: the statement says so. None is
        "data" for the methods without a budget, and refused for those with one.
    radius, label_cost, norm: of the Wasserstein ball, in units of the scaled features; norm ("l1", "l2", "linf") is
        that of the transport of features, its dual acts on the model. label_cost=inf trusts the labels.
    rho: ADMM penalty; None takes the method's own.
    rounds: communication rounds; None is 50 for the private methods, whose rounds share the budget, and 300 for the
        exact ones, which stop before, once their residuals are small.
    weighting: alpha_g, "rows" (a site's share of all rows) or "uniform".
    intercept_scaling: the value of a constant feature appended to the scaled ones, 0 for no intercept. It counts in a
        row's norm, it costs noise like any other feature, and the adversary may move it, which makes the risk an upper
        bound; hence it is small.
    classes: all labels that may occur. None takes them from y, which a private method's guarantee does not cover.
    allow_one_class: accept sites all of whose rows are of one class. The mathematics permits them; without this they
        are refused, since a constant label column is a mistake more often than not.
    variant: of "dp-dro": "default", or "paper" for the paper's steps and its accounting of the noise.
    options: further arguments of the method's class, such as {"lambda_start": 3.0} of `algorithms.DpDroAdmm`.
    verbose: show a progress bar on standard error, where that is a terminal.
    random_state: seed of the noise. None takes one from the system's entropy, never stored; whoever knows the seed can
        take the noise off again.

    Attributes
    ----------
    coef_ [K, P], intercept_ [K]: M in units of the scaled features. classes_ [K].
    lambda_: [G], the dual variable of each site's ball, G sites in the order of `sites_`: after "dp-dro" the site's
        last (noisy) one, after "dro" the best one for M; None for other methods.
    privacy_: the `fedhedge.privacy.Statement` of each site by its name; None for methods without a budget.
    bounds_: the bounds in use. n_iter_: rounds done. run_: the `fedhedge.Run`; it holds the seed and a digest
        of the rows, and therefore stays behind when the estimator is pickled or saved.

    In training, a private method scales rows down to norm 1 (options: row_bound) after the constant is appended: this
    changes the weight of a row and no prediction. Source: the second paper.
    """

    def __init__(
        self,
        *,
        method: str = "dro",
        privacy: Privacy | None = None,
        feature_bounds: Any = None,
        radius: float = 0.01,
        label_cost: float = 0.5,
        norm: str = "l1",
        rho: float | None = None,
        rounds: int | None = None,
        weighting: str = "rows",
        intercept_scaling: float = 0.5,
        classes: Any = None,
        allow_one_class: bool = False,
        variant: str = "default",
        options: Mapping[str, Any] | None = None,
        verbose: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.method = method
        self.privacy = privacy
        self.feature_bounds = feature_bounds
        self.radius = radius
        self.label_cost = label_cost
        self.norm = norm
        self.rho = rho
        self.rounds = rounds
        self.weighting = weighting
        self.intercept_scaling = intercept_scaling
        self.classes = classes
        self.allow_one_class = allow_one_class
        self.variant = variant
        self.options = options
        self.verbose = verbose
        self.random_state = random_state

    def algorithm(self) -> Algorithm:
        """The method as `fedhedge.simulate` takes it; raises InvalidInput for parameters that cannot be used."""
        checks.one_of("weighting", self.weighting, ("rows", "uniform"))
        checks.number("intercept_scaling", self.intercept_scaling, low=0.0)
        checks.boolean("allow_one_class", self.allow_one_class)
        checks.boolean("verbose", self.verbose)
        made = methods.build(self.get_params(deep=False))
        bounds.check_form(self.feature_bounds, private=isinstance(made, Private))
        return made

    def fit(self, X: Any, y: Any, clients: Any = None) -> Self:
        """Train on rows X [n, P] with labels y [n] of the sites that `clients` [n] names; None is one site.

        Raises InvalidInput that names the site and the column for data that cannot be used.
        """
        algorithm, seed = self.algorithm(), self._seed()
        sites.check_columns(X)
        self.label_name_ = str(getattr(y, "name", None) or "y")
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=False)
        where = sites.assign(clients, len(X))
        sites.check_rows(where)
        sites.check_finite(X, self._columns(), where)
        self.classes_, codes = sites.classes_of(
            y, self.label_name_, where, self.classes, allow_one_class=self.allow_one_class
        )
        if self.privacy is not None:
            if isinstance(self.feature_bounds, str):
                warnings.warn("feature bounds taken from the data are not private: see `privacy_`", stacklevel=2)
            for site, count in zip(where.names, where.counts, strict=True):
                check_delta(self.privacy.delta, int(count), str(site))
        if isinstance(self.feature_bounds, EstimatedBounds):
            assert self.privacy is not None
            self.bounds_ = bounds.estimate(self.feature_bounds, self.privacy, X, where.index, self._columns(), seed)
        else:
            self.bounds_ = bounds.resolve(self.feature_bounds, X, self._columns())
        features = self.bounds_(X)
        if self.intercept_scaling:
            features = np.column_stack([features, np.full(len(X), self.intercept_scaling)])
        if isinstance(algorithm, Private):
            statements.warn_of_noise(algorithm, len(self.classes_), features.shape[1], where.counts, self.weighting)
        clients = Clients(
            features,
            codes,
            where.index,
            np.zeros(len(X), np.int8),
            names=where.names,
            classes=self.classes_.tolist(),
            description={"source": "arrays", "splits": "all rows train"},
        )
        rounds, progress = methods.rounds_of(self.method, self.rounds), None if self.verbose else False
        trained = training.train(algorithm, clients, rounds, self.weighting, seed, progress=progress)
        self.run_, self.sites_, self.lambda_ = trained.run, where.names, trained.lambda_
        self.n_iter_ = self.run_.counts["rounds"]
        self.coef_ = self.run_.params[:, : X.shape[1]]
        # Without a constant feature this sum is empty.
        self.intercept_ = self.intercept_scaling * self.run_.params[:, X.shape[1] :].sum(axis=1)
        self.privacy_ = None
        if isinstance(algorithm, Private):
            assert self.privacy is not None
            self.privacy_ = statements.state(
                algorithm,
                self.privacy,
                where.names,
                where.counts,
                trained.rounds,
                self.bounds_,
                classes_declared=self.classes is not None,
            )
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Scores coef_ x + intercept_ of scaled rows, [n, K]; for two classes the second's less the first's, [n].

        Raises InvalidInput naming a column that is not finite, ValueError for other columns than in training.
        """
        check_is_fitted(self)
        sites.check_columns(X)
        X = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=False)
        sites.check_finite(X, self._columns())
        scores: FloatArray = self.bounds_(X) @ self.coef_.T + self.intercept_
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels [n] of the greatest score; the first of equal ones. Raises as `decision_function` does."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def save(self, path: str | Path) -> None:
        """Write the fitted classifier to a folder: model.json, its arrays, and privacy.txt with the statements.

        A model already there is replaced: at every moment the folder holds the old one or the new one.
        The rows, the seed and `run_` stay behind.
        """
        check_is_fitted(self)
        folder.write(Path(path), self)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote; raises InvalidInput when it is damaged, contradicts itself, or is something else."""
        return folder.read(Path(path), cls)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {key: value for key, value in state.items() if key != "run_"}

    def _columns(self) -> Any:
        return getattr(self, "feature_names_in_", None)

    def _seed(self) -> int:
        if self.random_state is None:
            return secrets.randbits(32)
        if isinstance(self.random_state, numbers.Integral):
            return streams.check_seed(int(self.random_state))
        return int(check_random_state(self.random_state).randint(2**32, dtype=np.uint32))

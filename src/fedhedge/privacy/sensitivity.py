"""How far one replaced row can move what a client releases, and a pair of tables that goes that far.

Neighbouring tables: one row (x, y) of the client is replaced by any other with ||x||_2 <= L; the number of rows N is
public. Notation: Crammer-Singer loss l(M; x, y) = max(0, 1 + max_{k != y} m_k.x - m_y.x) and its robust form
h = max(l(M; x, y), max_{k != y} l(M; x, k) - kappa lambda).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedhedge import checks

FloatArray = NDArray[np.float64]
# The witness turns its two rows apart by this angle: its distance falls short of the bound by the factor 1 - 5e-13.
_ANGLE = 1e-6


def gradient_sensitivity(samples: int, feature_norm: float = 1.0) -> float:
    """l2 (Frobenius) sensitivity of a client's mean subgradient in M: 2 sqrt(2) L / N, for one replaced row.

    In the unit of a feature. `samples` is N, `feature_norm` is L.

    Proof. Where the active piece of h names label k and competitor j, the subgradient of a row is (e_j - e_k) x^T, of
    norm sqrt(2) ||x||_2 <= sqrt(2) L; where the loss is zero it is 0. Replacing a row changes one of N terms of the
    mean, hence the mean by at most (sqrt(2) L + sqrt(2) L) / N. The same holds for l without the robust part. Equality:
    the same x of norm L under labels a and b whose scores lie less than 1 apart and above all others, no label flipped.
    """
    samples = checks.integer("samples", samples, low=1)
    return 2 * math.sqrt(2) * checks.number("feature_norm", feature_norm, above=0) / samples


def model_sensitivity(samples: int, rho: float, eta: float, feature_norm: float = 1.0) -> float:
    """l2 (Frobenius) sensitivity of the ADMM model step: 2 sqrt(2) L / (N (rho + 1/eta)), for one replaced row.

    In the unit of the model's entries. `rho` is the ADMM penalty, `eta` the step size, both above 0.

    Proof. M = (Mt/eta + rho (Mbar - mu) - G_M) / (1/eta + rho). Mt, Mbar, the dual mu, and in G_M the term c dphi(Mt)
    (or the gradient of a regulariser) are functions of what was released before; given that, they are the same
    for both tables and cancel. What is left is the difference of the two mean subgradients over rho + 1/eta.
    So noise of deviation sigma on M is noise of deviation sigma (rho + 1/eta) on the gradient, with the same
    mu = sensitivity / sigma: no choice of rho or eta buys privacy.
    """
    rho = checks.number("rho", rho, low=0)
    eta = checks.number("eta", eta, above=0)
    return gradient_sensitivity(samples, feature_norm) / (rho + 1 / eta)


def lambda_sensitivity(samples: int, kappa: float, nu: float) -> float:
    """Sensitivity of the step of lambda: kappa nu / N, for one replaced row; 0 when kappa is infinite.

    In the unit of lambda. `kappa` is the label cost, `nu` the step size of lambda.

    Proof. lambda = lt - nu (r + mean d_lambda h_i - c), where lt, r and c are given by what was released before. A
    row's d_lambda h is -kappa on the flipped branch and 0 else, so the mean changes by at most kappa / N. Trusted
    labels (kappa infinite) never flip, and lambda then depends on no row at all.
    """
    samples = checks.integer("samples", samples, low=1)
    nu = checks.number("nu", nu, above=0)
    if kappa == math.inf:
        return 0.0
    return checks.number("kappa", kappa, low=0) * nu / samples


@dataclass(frozen=True)
class Witness:
    """Two neighbouring tables, and a state, at which the sensitivities of M and of lambda are reached together.

    coef: M, float[K, P]. lambda_: the dual variable. rows: float[N, P]. labels: int[N]. The neighbour has
    `replacement` as its row 0 (same label); all else is equal.
    """

    coef: FloatArray
    lambda_: float
    rows: FloatArray
    labels: NDArray[np.int64]
    replacement: FloatArray

    @property
    def neighbour_rows(self) -> FloatArray:
        """The neighbouring table's rows, float[N, P]: row 0 replaced."""
        return np.concatenate([self.replacement[None], self.rows[1:]])


def witness(
    samples: int, features: int, classes: int, kappa: float, lambda_: float, feature_norm: float = 1.0
) -> Witness:
    """A pair of tables that reaches both bounds at once (to 5e-13), so that mu_M^2 + mu_lambda^2 cannot be improved.

    Rows x and x' of norm L, label 0, a hair's breadth apart on either side of the surface on which the worst label
    flips: x is flipped to class 1, with subgradient (e_0 - e_1) x^T and d_lambda h = -kappa; x' is not, with
    subgradient (e_1 - e_0) x'^T and d_lambda h = 0. Away from ties no pair of which one row alone is flipped reaches
    the bound on M exactly, so the two bounds are approached together and not attained.

    samples, features >= 2, classes >= 2; 0 < kappa lambda_ < 2 (both hinges active). Raises InvalidInput else.
    """
    samples = checks.integer("samples", samples, low=1)
    features = checks.integer("features", features, low=2)
    classes = checks.integer("classes", classes, low=2)
    checks.number("kappa * lambda_", kappa * lambda_, above=0, below=2)
    length = checks.number("feature_norm", feature_norm, above=0)
    along, across = math.cos(_ANGLE), math.sin(_ANGLE)
    first, second = np.zeros(features), np.zeros(features)
    first[:2] = length * along, length * across
    second[:2] = length * along, -length * across
    coef = np.zeros((classes, features))
    # Class 0 leads by kappa lambda / 2, where the flipped and the true label weigh the same; the second feature decides
    # on which side a row falls, and whether class 1 is the last of the others (x) or the first (x').
    coef[0, :2] = kappa * lambda_ / (2 * length * along), 1 / length
    coef[1, 1] = -1 / length
    rows = np.zeros((samples, features))
    rows[0] = first
    return Witness(coef, float(lambda_), rows, np.zeros(samples, dtype=np.int64), second)

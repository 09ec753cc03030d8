"""Whether training under a privacy budget can learn anything, before it is run."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import gammaln

from fedhedge import checks
from fedhedge.privacy.budget import Privacy, check_delta
from fedhedge.privacy.calibration import NoiseMultipliers, calibrate, spent
from fedhedge.privacy.gaussian import gaussian_epsilon
from fedhedge.privacy.sensitivity import gradient_sensitivity


@dataclass(frozen=True)
class Plan:
    """The noise of one client's rounds under a total budget, and how it compares with the signal.

    signal_to_noise: the norm bound of a client's mean subgradient, sqrt(2) L, over the expected norm of the noise on
    it, sigma E||Z|| with Z standard normal of classes x features entries. A best case: a real gradient is shorter. L
    cancels: signal_to_noise = samples / (2 multiplier E||Z||), times sqrt(clients) for the average over equal clients.

    noise: sigma / sensitivity of each release of a round (no unit). gradient_sigma: deviation of the noise on each
    entry of the mean subgradient, in units of L, for every method. Unit of privacy: one replaced row of one client.
    rounds_needed, samples_needed, epsilon_needed, clients_needed: the value of that one setting, the others as they
    are, at which signal_to_noise reaches 1; rounds_needed is None when not even a single round does.
    """

    privacy: Privacy
    rounds: int
    samples: int
    features: int
    classes: int
    clients: int
    lambda_share: float
    noise: NoiseMultipliers
    gradient_sigma: float
    signal_to_noise: float
    epsilon_paper: float
    rounds_needed: int | None
    samples_needed: int
    epsilon_needed: float
    clients_needed: int

    def __str__(self) -> str:
        lambda_noise = "" if self.noise.lambda_ is None else f", and on lambda {self.noise.lambda_:.4g} times its own"
        who = "one client" if self.clients == 1 else f"the average over {self.clients} such clients"
        lines = [
            f"Budget: {self.privacy}; unit: one replaced row of the {self.samples} rows of a client.",
            f"Noise in each of {self.rounds} rounds: {self.noise.model:.4g} times the sensitivity of the "
            f"{self.classes} x {self.features} model{lambda_noise}.",
            f"  By the paper's moments formula this noise costs epsilon = {self.epsilon_paper:.4g} over the run.",
            f"  On each entry of a client's mean gradient: deviation {self.gradient_sigma:.4g} (features of norm 1).",
            f"Signal-to-noise ratio of {who}: {self.signal_to_noise:.3g}",
            "  (largest possible norm of the mean gradient / expected norm of the noise on it, in one round).",
        ]
        return "\n".join([*lines, *self._advice()])

    def _advice(self) -> list[str]:
        if self.signal_to_noise >= 1:
            return ["The largest signal exceeds the noise; near the optimum, where gradients shrink, it need not."]
        rounds = "no number of rounds" if self.rounds_needed is None else f"at most {self.rounds_needed} rounds"
        return [
            "Each round would be mostly noise. A ratio of 1 needs one of these, the rest unchanged:",
            f"  rounds   {self.rounds} -> {rounds}",
            f"  samples  {self.samples} -> at least {self.samples_needed} rows at each client",
            f"  epsilon  {self.privacy.epsilon:g} -> at least {self.epsilon_needed:.4g} (weaker privacy)",
            f"  clients  {self.clients} -> at least {self.clients_needed}, averaged with equal weight",
            "or a model with fewer features or classes.",
        ]


def plan(
    epsilon: float,
    delta: float,
    rounds: int,
    samples: int,
    *,
    features: int = 10,
    classes: int = 2,
    clients: int = 1,
    lambda_share: float = 0.0,
) -> Plan:
    """Plan `rounds` rounds of a client of `samples` rows under a total budget; see `Plan` for what it says.

    Exact accounting of the whole run (`calibrate`); unit of privacy: one replaced row of one client. features and
    classes give the model's size, clients the number of equal clients that are averaged, lambda_share the part of mu^2
    spent on lambda (0.05 in the paper's DP-Fed DRO, 0 for methods without it).

    Raises InvalidInput when a setting is outside its range or delta >= 1/samples.
    """
    privacy = Privacy(epsilon, delta)
    samples = checks.integer("samples", samples, low=1)
    check_delta(delta, samples, "every client")
    features = checks.integer("features", features, low=1)
    classes = checks.integer("classes", classes, low=2)
    clients = checks.integer("clients", clients, low=1)
    noise = calibrate(privacy, rounds, lambda_share=lambda_share)
    ratio = signal_to_noise(noise.model, math.sqrt(clients) * samples, classes * features)
    # ratio is linear in samples and in the run's mu, and goes with sqrt(clients) and 1/sqrt(rounds).
    fewer_rounds = math.floor(rounds * ratio**2)
    run_mu = noise.mu * math.sqrt(rounds)
    return Plan(
        privacy=privacy,
        rounds=rounds,
        samples=samples,
        features=features,
        classes=classes,
        clients=clients,
        lambda_share=lambda_share,
        noise=noise,
        gradient_sigma=noise.model * gradient_sensitivity(samples),
        signal_to_noise=ratio,
        epsilon_paper=spent(noise, rounds, delta, accounting="paper"),
        rounds_needed=fewer_rounds if fewer_rounds > 0 else None,
        samples_needed=math.ceil(samples / ratio),
        epsilon_needed=gaussian_epsilon(delta, run_mu / ratio),
        clients_needed=math.ceil(clients / ratio**2),
    )


def signal_to_noise(multiplier: float, rows: float, entries: int) -> float:
    """The norm bound of an average of mean subgradients over the expected norm of its noise, see `Plan`.

    multiplier: sigma / sensitivity. entries: of the model. rows: N of one client; of an average with weights w_g over
    clients of N_g rows, 1 / sqrt(sum (w_g / N_g)^2), which is sqrt(G) N for G equal ones.
    """
    return rows / (2 * multiplier * _expected_norm(entries))


def _expected_norm(entries: int) -> float:
    # E||Z|| of a standard normal vector: sqrt(2) Gamma((n+1)/2) / Gamma(n/2), close to sqrt(n).
    return math.sqrt(2) * math.exp(float(gammaln((entries + 1) / 2) - gammaln(entries / 2)))

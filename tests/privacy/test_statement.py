"""A site's statement says what was derived, and what it does not cover."""

from __future__ import annotations

import json
import math
from typing import Any

import dp_accounting
import pytest
from dp_accounting import pld

from fedhedge import InvalidInput
from fedhedge.privacy import Privacy, Release, Statement, calibrate, lambda_sensitivity, model_sensitivity


def paper_run(**changes: Any) -> Statement:
    """The paper's first setting: epsilon 0.5 and delta 1e-6 in each of 50 rounds."""
    noise = calibrate(Privacy(0.5, 1e-6, per="round"), 50, lambda_share=0.05, accounting="paper")
    assert noise.lambda_ is not None
    model, lambda_ = model_sensitivity(300, 0.8, 0.1), lambda_sensitivity(300, 0.5, 0.02)
    settings: dict[str, Any] = {
        "site": "north",
        "samples": 300,
        "rounds": 50,
        "each_round": (
            Release("model", model, noise.model * model),
            Release("lambda", lambda_, noise.lambda_ * lambda_),
        ),
        "delta": 1e-6,
        "requested": Privacy(0.5, 1e-6, per="round"),
    }
    return Statement(**{**settings, **changes})


def test_epsilons_of_the_papers_setting() -> None:
    statement = paper_run()
    assert statement.epsilon == pytest.approx(3.101, abs=5e-4)
    assert statement.epsilon_paper == pytest.approx(3.7299, abs=5e-5)
    assert statement.epsilon_round_paper == pytest.approx(0.5)
    assert statement.epsilon_round < 0.5
    assert statement.reason is None


def test_releases_made_once_are_composed_in() -> None:
    accountant = pld.PLDAccountant()
    event = dp_accounting.ComposedDpEvent(
        [
            dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(8.0), 20),
            dp_accounting.GaussianDpEvent(2.0),
        ]
    )
    statement = paper_run(
        rounds=20, each_round=(Release("model", 0.5, 4.0),), once=(Release("bounds", 3.0, 6.0),), bounds="estimated"
    )
    assert statement.epsilon == pytest.approx(accountant.compose(event).get_epsilon(1e-6), rel=1e-4)
    assert "bounds: Gaussian, l2 sensitivity 3" in str(statement)
    with pytest.raises(InvalidInput, match=r"once: .*bounds were estimated"):
        paper_run(bounds="estimated")


def test_no_epsilon_is_stated_where_the_classic_formula_proves_nothing() -> None:
    statement = paper_run(each_round=(Release("model", 1.0, 3.0),))
    assert statement.epsilon_round_paper is None
    assert statement.reason is not None
    assert "proven for epsilon below 1" in statement.reason
    assert "none for one round by the paper's classic formula" in str(statement)
    assert statement.as_dict()["epsilon_round_paper"] is None


def test_dictionary_is_json_and_text_is_readable() -> None:
    statement = paper_run(also_not_covered=("a step size scaled with a model solved on private data",))
    content = json.loads(json.dumps(statement.as_dict(), allow_nan=False))
    assert content["epsilon"] == statement.epsilon
    assert [release["mu"] for release in content["each_round"]] == [r.mu for r in statement.each_round]
    assert content["requested"] == {"epsilon": 0.5, "delta": 1e-6, "per": "round"}
    text = str(statement)
    assert max(map(len, text.splitlines())) <= 100
    flat = " ".join(text.split())
    for part in (
        "site north (300 rows)",
        "one row (features and label) is replaced",
        "3.101 at delta = 1e-06",
        "3.73 at",
        "to quote: the first epsilon above",
        "simpler argument and is therefore larger",
        "one draw tells N(0, 1) from N(mu, 1)",
    ):
        assert part in flat
    for part in (
        "number of rows",
        "which sites exist",
        "hyper-parameters",
        "private data",
        "comes from a seed",
        "scaler in a pipeline",
        "no file",
    ):
        assert part in flat.split("not covered:")[1]


def test_caveats_follow_the_facts() -> None:
    sound = paper_run(secure_noise=True)
    assert "seed" not in " ".join(sound.not_covered).replace("hyper-parameters or seeds", "")
    from_data = paper_run(bounds="data")
    assert from_data.not_covered[0] == "the feature bounds, which were taken from the data"
    assert "3.101 at delta = 1e-06 (if the feature bounds are public)" in " ".join(str(from_data).split())
    trusted = paper_run(each_round=(Release("model", 1.0, 20.0), Release("lambda", 0.0, 0.0)))
    assert "lambda: depends on no row" in str(trusted)
    assert trusted.mu == pytest.approx(math.sqrt(50) / 20)


def test_bad_arguments() -> None:
    with pytest.raises(InvalidInput, match=r"delta at site 'north': received 0.01"):
        paper_run(delta=0.01)
    with pytest.raises(InvalidInput, match=r"model.sigma: received 0"):
        Release("model", 1.0, 0.0)
    with pytest.raises(InvalidInput, match=r"bounds: received 'guess'; allowed: declared, estimated, data"):
        paper_run(bounds="guess")

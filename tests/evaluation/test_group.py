import pytest

from evaluation.made_runs import make_run
from fedhedge.checks import InvalidInput
from fedhedge.evaluation import common, differing, flatten, group

VALUES = [[0.5, 0.5]]


def data(digest, seed):
    return {"source": "made", "digest": digest, "splits": {"seed": seed, "test": 0.2}, "scaling": {"shift": [seed, 1]}}


def test_seeds_of_one_method_are_together_in_order_of_appearance():
    runs = [make_run(VALUES, seed=s, algorithm={"name": n, "step": 0.1}) for s in (1, 0) for n in ("B", "A")]
    found = group(runs)
    assert list(found) == ["B", "A"]
    assert [run.settings["seed"] for run in found["B"]] == [1, 0]


def test_a_name_that_appears_twice_gets_the_settings_that_differ():
    methods = [
        {"name": "FedeRage", "alpha": 0.05, "gamma": 0.75, "kappa": 15.25},
        {"name": "FedeRage", "alpha": 0.1, "gamma": 0.75, "kappa": 7.75},
        {"name": "FedAvg", "step": 0.1},
    ]
    labels = list(group([make_run(VALUES, algorithm=method) for method in methods]))
    assert labels == ["FedeRage (alpha=0.05)", "FedeRage (alpha=0.1)", "FedAvg"]


def test_settings_outside_the_algorithm_are_named_and_labels_stay_distinct():
    laws = [{"name": "FixedSize", "prior": [float(i) for i in range(12)], "size": 3 + k % 2} for k in range(2)]
    assert list(group([make_run(VALUES, availability=law) for law in laws])) == [
        "FedAvg (availability.size=3)",
        "FedAvg (availability.size=4)",
    ]
    laws = [{"name": "FixedSize", "prior": [float(i + k) for i in range(12)]} for k in range(2)]
    assert list(group([make_run(VALUES, availability=law) for law in laws])) == ["FedAvg", "FedAvg #2"]


def test_rows_dealt_anew_for_each_seed_are_one_method():
    runs = [make_run(VALUES, seed=seed, data=data(f"digest {seed}", seed)) for seed in range(3)]
    assert {label: len(members) for label, members in group(runs).items()} == {"FedAvg": 3}


def test_two_dealings_with_the_same_seeds_are_two_groups():
    runs = [make_run(VALUES, seed=seed, data=data(digest, 0)) for seed in (0, 1) for digest in ("a", "b")]
    assert [len(members) for members in group(runs).values()] == [2, 2]


def test_a_fresh_run_and_a_loaded_one_are_alike():
    fresh = make_run(VALUES, seed=0, model={"name": "MLP", "hidden": (32,)})
    loaded = make_run(VALUES, seed=1, model={"name": "MLP", "hidden": [32]})
    assert list(group([fresh, loaded])) == ["FedAvg"]


def test_methods_around_others_are_named_with_them_and_oracles_are_marked():
    inner = {"name": "FedeRage", "alpha": 0.1, "kappa": 7.75}
    methods = [
        {"name": "FedOpt", "base": {"name": "FedAvg", "step": 0.1}},
        {"name": "FedAvot", "oracle": True, "base": inner},
        {"name": "FedAvot", "oracle": True, "base": inner | {"alpha": 0.2, "kappa": 4.0}},
        {"name": "FedOpt", "base": {"name": "InverseProbability", "oracle": True, "base": inner}},
    ]
    runs = [make_run(VALUES, algorithm=method) for method in methods]
    assert list(group(runs)) == [
        "FedOpt",
        "FedAvot/FedeRage (base.alpha=0.1) (oracle)",
        "FedAvot/FedeRage (base.alpha=0.2) (oracle)",
        "FedOpt/InverseProbability/FedeRage (oracle)",
    ]
    assert list(group({"ours": runs[:1], "told": runs[1:2]})) == ["ours", "told (oracle)"]


def test_a_mapping_keeps_its_labels():
    runs = [make_run(VALUES, seed=seed) for seed in range(2)]
    assert group({"ours": runs[:1], "theirs": runs[1:]}) == {"ours": runs[:1], "theirs": runs[1:]}


@pytest.mark.parametrize("runs", [[], {}, {"ours": []}, [make_run(VALUES)] * 2, {"ours": [make_run(VALUES)] * 2}])
def test_nothing_or_the_same_run_twice_is_refused(runs):
    with pytest.raises(InvalidInput, match=r"runs: received|seeds of (FedAvg|ours): received \[0, 0\]"):
        group(runs)


def test_settings_in_common_and_apart():
    one = make_run(VALUES, algorithm={"name": "FedAvg", "step": 0.1}, data=data("a", 0))
    two = make_run(VALUES, algorithm={"name": "FedProx", "step": 0.1, "mu": 0.01}, data=data("a", 0), seed=1)
    assert flatten(one.settings)["data.splits.test"] == 0.2
    assert common([one, two])["algorithm.step"] == 0.1
    assert differing([one, two]) == ["algorithm.name", "seed", "algorithm.mu"]


def test_full_participation_beside_other_laws_is_an_oracle():
    """The ceiling that a comparison may show; where everybody is always there for all, it is the setting."""
    some, everyone = {"name": "FixedSize", "size": 3}, {"name": "Everyone"}
    runs = [make_run(VALUES, availability=law) for law in (some, everyone)]
    assert [label.endswith("(oracle)") for label in group(runs)] == [False, True]
    assert list(group({"here": runs[:1], "ceiling": runs[1:]})) == ["here", "ceiling (oracle)"]
    assert list(group(runs[1:])) == ["FedAvg"]

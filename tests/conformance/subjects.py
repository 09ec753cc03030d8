"""An instance of every registered method, made from its fields, and a small federation on which it can run."""

import dataclasses
import functools

import jax
import numpy as np

import fedhedge as fh
from federations import begin
from fedhedge.algorithms import METHODS
from fedhedge.simulation.arithmetic import arithmetic

ROUNDS, CLASSES, FEATURES = 12, 3, 4
COUNTS = (5, 8, 6, 9, 4)
CHANCES = (0.5, 0.4, 0.35, 0.3, 0.2)
# Rounds of every size, none and all among them.
LAW = fh.availability.Independent(CHANCES)
# What fields without a default, or with one that means "off", get.
FILLED = {"noise": 1.0, "lambda_noise": 1.0, "rounds": ROUNDS}
# Methods that draw at random beside mini-batches and noise, by which client comes first among other things.
DRAWS = {"DRFA": "clients, by their weights"}


@functools.cache
def federation(order: tuple[int, ...] = (0, 1, 2, 3, 4)) -> fh.data.Clients:
    """Five unequal clients with rows of norm at most 1 and all classes; `order` says who comes as number 0, 1, ..."""
    rng = np.random.default_rng(7)
    tables = []
    for count in COUNTS:
        X = rng.normal(size=(count, FEATURES))
        X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
        tables.append((X, np.arange(count) % CLASSES))
    chosen = [tables[client] for client in order]
    X, y = (np.concatenate(part) for part in zip(*chosen, strict=True))
    owner = np.repeat(np.arange(len(order)), [len(table[1]) for table in chosen])
    return fh.data.Clients.from_splits((X, y, owner))


def method(name: str, law: fh.availability.Law = LAW) -> fh.algorithms.Algorithm:
    """The method with its defaults; `law` for those that are told one."""
    values = FILLED | {"law": law}
    kind = METHODS[name]
    return kind(**{field.name: values[field.name] for field in dataclasses.fields(kind) if field.name in values})


def of_matrices(name: str) -> bool:
    """Whether a method solves the Crammer-Singer problem, in one step a round, instead of training any model."""
    return METHODS[name].precision == "float64"


def prepared(name, *, algorithm=None, clients=None, law=LAW, loop="auto", **options):
    """A run before its first round."""
    matrices = of_matrices(name)
    settings = {"rounds": ROUNDS, "evaluate_every": 4, "batch_size": None, "evaluate_on": ("train",), "seed": 1}
    settings |= {"local_steps": 1 if matrices else 2, "loop": loop} | options
    model = fh.models.CrammerSinger() if matrices else fh.models.Linear()
    algorithm = algorithm or method(name, law)
    with arithmetic(algorithm.precision):
        simulation = begin(algorithm, model, clients or federation(), law, **settings)
    if simulation.plan.layout.padded:
        # Slots for the largest cohort in every round: one programme instead of one for each size.
        simulation.slots = lambda table: len(simulation.clients)
    return simulation


def ran(simulation):
    """The simulation after its last round."""
    with arithmetic(simulation.algorithm.precision):
        simulation.run(None, False, False)
    return simulation


def leaves(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def close(left, right, tolerance):
    """Whether two trees of arrays agree to a tolerance relative to the largest entry of each array."""
    for a, b in zip(leaves(left), leaves(right), strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1.0, np.abs(b).max(initial=0.0)))


def tolerance(name: str) -> float:
    """A few hundred roundings of the method's arithmetic; exact solvers stop at a gap of 1e-8 and not at a point."""
    if not METHODS[name].traceable:
        return 1e-3
    return 1e-10 if of_matrices(name) else 1e-4

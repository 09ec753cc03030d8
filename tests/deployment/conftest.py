"""A small federation in one process: three files, their sites, and the simulation of the same files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedhedge as fh
from fedhedge.config.config import Config
from fedhedge.deployment import tables
from fedhedge.deployment.budget import NoBudget
from fedhedge.deployment.coordinator import Coordinator
from fedhedge.deployment.federation import Federation
from fedhedge.deployment.link import Direct
from fedhedge.deployment.site import Site

SITES = ("east", "north", "south")
CLASSES = ("adelie", "chinstrap", "gentoo")


def no_noise(shape: tuple[int, ...], scale: float) -> np.ndarray:
    raise AssertionError("this federation adds no noise")


@dataclasses.dataclass
class Small:
    """Files of three sites of unequal size, and what a configuration makes of them."""

    folder: Path

    def content(self, algorithm: dict[str, Any], model: str = "MLP", **top: Any) -> dict[str, Any]:
        settings = {"rounds": 6, "local_steps": 3, "batch_size": 8, "evaluate_every": 3, "evaluate_on": ["test"]}
        described = {"name": model} | ({"hidden": [5]} if model == "MLP" else {})
        return settings | top | {"data": {"label": "kind"}, "model": described, "algorithm": algorithm}

    def federation(self, content: dict[str, Any], **terms: Any) -> Federation:
        table = {"sites": list(SITES), "features": ["u", "v", "w"], "classes": list(CLASSES), "patience": 1.0}
        return Federation(content | {"federation": table | terms}, "small")

    def simulated(self, content: dict[str, Any], law: dict[str, Any] | None = None) -> fh.Run:
        data = {"source": "folder", "path": str(self.folder), "scaling": "none", **content["data"]}
        content = content | {"data": data, "availability": law or {"name": "Everyone"}}
        return fh.simulate(**Config(content, "small").simulation(), progress=False)

    def site(
        self,
        name: str,
        federation: Federation,
        state: Path,
        guard: Any = None,
        gaussian: Any = no_noise,
        signing: Any = None,
    ) -> Site:
        rows = tables.read(self.folder / f"{name}.csv", federation, name)
        return Site(federation, name, rows, state / name, guard or NoBudget(), gaussian, ("train", "test"), signing)

    def sites(self, federation: Federation, state: Path) -> dict[str, Site]:
        return {name: self.site(name, federation, state) for name in SITES}


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    folder = tmp_path_factory.mktemp("sites")
    rng = np.random.default_rng(7)
    for number, name in enumerate(SITES):
        rows = (20, 33, 47)[number]
        kinds = rng.permutation(np.arange(rows) % 3)
        values = rng.normal(size=(rows, 3)) + 2.0 * np.eye(3)[kinds] + 0.3 * number
        lines = ["u,v,w,kind"]
        lines += [",".join([*map(repr, row.tolist()), CLASSES[kind]]) for row, kind in zip(values, kinds, strict=True)]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Small(folder)


@pytest.fixture
def federate(small: Small, tmp_path: Path) -> Callable[..., fh.Run]:
    """Run a federation over calls, and return what it leaves."""

    def run(federation: Federation) -> fh.Run:
        link = Direct(small.sites(federation, tmp_path))
        return Coordinator(federation, link, tmp_path / "server", lambda line: None).run()

    return run

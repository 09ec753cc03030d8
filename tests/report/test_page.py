import re
from html.parser import HTMLParser

import numpy as np
import pytest

import fedhedge
from evaluation.made_runs import make_run
from fedhedge import algorithms, availability, data, models
from fedhedge.checks import InvalidInput
from fedhedge.evaluation import paired_t
from fedhedge.report import write_report
from report.studies import RARE, federation

VOID = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """Tags in order, tables as rows of cell texts by the label of their region, and whether tags are balanced."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.tables, self.words = [], [], {}, []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        assert len(attributes) == len(attrs), f"an attribute of <{tag}> twice"
        self.tags.append((tag, attributes))
        if tag not in VOID:
            self.open.append(tag)
        if attributes.get("role") == "region":
            self.table = self.tables.setdefault(attributes["aria-label"], [])
        elif tag == "tr":
            self.table.append([])
        elif tag in ("td", "th"):
            self.table[-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        self.words.append(text)
        if self.open and self.open[-1] in ("td", "th"):
            self.table[-1][-1] += text


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """(runs, page, text) of two methods with three seeds each."""
    runs = federation()
    return runs, *page(tmp_path_factory.mktemp("page"), runs, rare=RARE, target=0.5)


def page(tmp_path, runs, **arguments):
    text = write_report(runs, tmp_path / "report.html", **arguments).read_text()
    return Page(text), text


def test_page_is_balanced_self_contained_and_every_figure_has_words(compared):
    _, found, text = compared
    assert "http:" not in text
    assert "https:" not in text
    for tag, attributes in found.tags:
        assert tag not in ("script", "link", "img", "iframe", "object", "image")
        for name in ("src", "href", "xlink:href"):
            assert attributes.get(name, "#").startswith("#")
    assert not re.findall(r"url\((?!#)|@import", text)
    figures = [i for i, (tag, _) in enumerate(found.tags) if tag == "figure"]
    assert len(figures) == 8
    for at in figures:
        tag, attributes = found.tags[at + 1]
        assert (tag, attributes["role"]) == ("div", "img")
        assert re.search(r"\d", attributes["aria-label"])
    ids = [attributes["id"] for _, attributes in found.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_the_summary_holds_the_recomputed_numbers(compared):
    runs, found, _ = compared
    head, *rows = found.tables["Summary of methods"]
    assert [row[0] for row in rows] == ["FedAvg", "FedeRage"]
    for number, row in enumerate(rows):
        end = [run.history.query("client >= 0 and metric == 'accuracy'").value.tail(6).to_numpy() for run in runs]
        values = 100 * np.array(end[3 * number : 3 * number + 3])
        shown = dict(zip(head, row, strict=True))
        mean = values.mean(axis=1)
        assert shown["accuracy %\nmean ± sd"] == f"{mean.mean():.1f} ± {mean.std(ddof=1):.1f}"
        assert shown["worst\nclient"] == f"{values.min(axis=1).mean():.1f}"
        assert shown["rare\nmean"] == f"{values[:, list(RARE)].mean():.1f}"
        assert shown["sd over\nclients"] == f"{values.std(axis=1).mean():.1f}"
        assert shown["uplink\neach"] == "100"


def test_differences_are_the_paired_intervals(compared):
    runs, found, _ = compared
    means = [run.history.query("client >= 0 and metric == 'accuracy'").value.tail(6).mean() for run in runs]
    interval = paired_t(means[3:], means[:3])
    said = "{:+.1f}\n({:+.1f} to {:+.1f})".format(
        *(100 * v for v in (interval.difference, interval.low, interval.high))
    )
    assert found.tables["Differences between methods"][1][:2] == ["FedeRage", said.replace("-", "−")]


def test_worst_clients_participation_and_cost_are_there(tmp_path):
    through = [(0, 0), (1, 0), (2, 1)]
    run = make_run([[0.9, 0.2, 0.4]] * 2, every=4, through=through, inclusion=[0.5, 0.25, 0.25], empty_rounds=1)
    found, _ = page(tmp_path, [run])
    assert found.tables["Worst clients of each method"][1][1:] == [
        "1: 20.0\nthrough 25.0 %",
        "2: 40.0\nthrough 25.0 %",
        "0: 90.0\nthrough 50.0 %",
    ]
    assert found.tables["All clients"][1:] == [["0", "90.0"], ["1", "20.0"], ["2", "40.0"]]
    # client, P, expected, got through, z = (1 - 4/4) / sqrt(4 . 3/16), p, observed
    assert found.tables["Participation of all clients"][2] == ["1", "25.00", "1.0", "1", "+0.0", "33.33", "33.33"]
    assert found.tables["Cost of each method"][1] == ["FedAvg", "100", "100", "75", "300", "0", "100"]


def test_settings_are_told_apart_and_can_be_copied(compared):
    _, found, text = compared
    assert found.tables["Settings of each method"][1:] == [
        ["FedAvg", "FedAvg", "0, 1, 2"],
        ["FedeRage", "FedeRage; alpha = 0.1", "0, 1, 2"],
    ]
    common = dict(found.tables["Settings common to all runs"][1:])
    assert (common["data.source"], common["algorithm.step"], common["weighting"]) == ("made", "0.1", "uniform")
    words = "".join(found.words)
    assert "seed = [0, 1, 2]" in words
    assert "[algorithm]" in words
    assert fedhedge.__version__ in text


def test_the_same_runs_give_the_same_page(tmp_path):
    runs = federation(seeds=2, evaluations=3)
    assert page(tmp_path / "one", runs)[1] == page(tmp_path / "two", runs)[1]


def test_names_are_escaped(tmp_path):
    runs = {"<script>alert(1)</script>": [make_run([[0.5], [0.7]])]}
    found, text = page(tmp_path, runs, title="a < b & c")
    assert "<title>a &lt; b &amp; c</title>" in text
    assert "script" not in {tag for tag, _ in found.tags}


@pytest.mark.parametrize(
    "runs",
    [
        pytest.param([make_run([[0.5]])], id="one run, one client, one evaluation"),
        pytest.param([make_run(loss=[[2.0, 1.0], [1.0, 0.5]])], id="no predictions"),
        pytest.param([make_run([[0.1, np.nan], [0.5, np.nan]], seed=s) for s in (0, 1)], id="a client without rows"),
        pytest.param(
            {"A": [make_run([[0.1], [0.5]], every=5)], "B": [make_run([[0.1], [0.2], [0.4]], every=7)]},
            id="other rounds",
        ),
        pytest.param([make_run([[0.0] * 3] * 2, through=[], empty_rounds=10, inclusion=[0.0] * 3)], id="nobody came"),
        pytest.param(
            [make_run([[0.5] * 80] * 2, algorithm={"name": "FedAvg", "step": s / 100}) for s in range(1, 9)],
            id="many methods with long labels",
        ),
    ],
)
def test_odd_studies_give_a_page(tmp_path, runs):
    found, text = page(tmp_path, runs, target=0.4)
    assert found.tables["Summary of methods"]
    assert "nan" not in re.sub(r"<[^>]*>", "", text).lower()
    assert "inf " not in text


def test_unusable_arguments_are_refused_before_anything_is_written(tmp_path):
    for arguments in ({"rare": [99]}, {"target": "high"}, {"split": "validation"}, {"last": 50}):
        with pytest.raises(InvalidInput):
            write_report(federation(seeds=1), tmp_path / "report.html", **arguments)
    assert list(tmp_path.iterdir()) == []


def test_real_runs_from_end_to_end(tmp_path):
    clients = data.load("iris").partition(data.ByLabel(clients=6, classes_per_client=1), seed=0)
    law = availability.FixedSize(None, size=2)
    runs = [
        fedhedge.simulate(
            method, models.Linear(), clients, law, rounds=40, evaluate_every=20, seed=seed, progress=False
        )
        for method in (algorithms.FedeRage(alpha=alpha, gamma=0.5, beta_step=0.05, step=0.1) for alpha in (0.5, 0.25))
        for seed in (0, 1)
    ]
    found, _ = page(tmp_path, runs, rare=[5], target=0.5)
    rows = found.tables["Summary of methods"][1:]
    assert [row[0] for row in rows] == ["FedeRage (alpha=0.5)", "FedeRage (alpha=0.25)"]
    for row, pair in zip(rows, (runs[:2], runs[2:]), strict=True):
        assert row[1].startswith(f"{100 * np.mean([run.clients().mean() for run in pair]):.1f} ± ")
    assert {"figure-beta", "figure-tail-rate"} <= {attributes.get("id") for _, attributes in found.tags}

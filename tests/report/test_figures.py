import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import matplotlib as mpl
import numpy as np
import pytest

from evaluation.made_runs import make_run
from fedhedge.checks import InvalidInput
from fedhedge.report import write_plots, write_report
from fedhedge.report.figures import plots
from fedhedge.report.notes import notes
from fedhedge.report.study import Study
from report.studies import RARE, federation

SVG = "{http://www.w3.org/2000/svg}"


def named(runs, rare=()):
    return {plot.name: plot for plot in plots(Study.of(runs, rare))}


def test_which_figures_there_are_follows_from_the_runs():
    everything = named(federation(), RARE)
    assert list(everything) == [
        "client-mean", "worst-client", "rare-clients", "loss", "clients", "participation", "beta", "tail-rate",
    ]  # fmt: skip
    assert list(named([make_run(loss=[[1.0], [0.5]])])) == ["client-mean", "worst-client", "clients", "participation"]


def test_text_alternatives_state_the_numbers_that_are_drawn():
    runs = federation()
    end = np.array([[run.history.query("client >= 0 and metric == 'accuracy'").value.tail(6)] for run in runs[:3]])
    found = named(runs, RARE)
    mean, worst = end.mean(axis=-1), end.min(axis=-1)
    for name, values in (("client-mean", mean), ("worst-client", worst)):
        said = f"FedAvg {100 * values.mean():.1f} ± {100 * values.std(ddof=1):.1f} % at round 40"
        assert said in found[name].alt
    assert f"FedAvg: mean {100 * mean.mean():.1f} %, worst {100 * worst.mean():.1f} %" in found["clients"].alt
    assert "FedeRage 10.0 ± 0.0 % at round 40" in found["tail-rate"].alt
    assert "FedAvg" not in found["tail-rate"].alt
    through = sum((run.participation.client == 5).sum() for run in runs[:3])
    assert f"through in {through} rounds, 6.0 expected" in found["participation"].alt


def test_lines_are_drawn_where_the_values_are():
    runs = federation(seeds=1)
    (axes,) = named(runs)["client-mean"].figure.axes
    history = runs[0].history.query("client >= 0 and metric == 'accuracy'")
    expected = 100 * history.groupby("round").value.mean()
    assert axes.lines[0].get_xdata().tolist() == expected.index.tolist()
    assert axes.lines[0].get_ydata() == pytest.approx(expected.to_numpy())


def test_bars_go_from_the_most_to_the_least_available_client():
    accuracy = [[0.1, 0.2, 0.3, 0.4]]
    run = make_run(accuracy, inclusion=[0.5, 0.9, 0.1, 0.5 + 1e-15])
    axes = named([run])["clients"].figure.axes
    assert [bar.get_height() for bar in axes[0].patches] == pytest.approx([20, 10, 40, 30])
    assert [bar.get_height() for bar in axes[1].patches] == pytest.approx([90, 50, 50, 10])


def test_runs_with_other_draws_get_a_figure_of_their_own():
    runs = [
        make_run([[0.5] * 2] * 2, algorithm={"name": name}, through=[(0, client)], inclusion=[0.5, 0.5])
        for name, client in (("A", 0), ("B", 1), ("C", 0))
    ]
    found = named(runs)
    assert found["participation"].caption.startswith("A, C.")
    assert found["participation-2"].caption.startswith("B.")


def test_files_are_written_and_are_the_same_each_time(tmp_path):
    runs = federation(seeds=1, evaluations=2)
    paths = write_plots(runs, tmp_path / "one", rare=RARE)
    again = write_plots(runs, tmp_path / "two", rare=RARE)
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == sorted(path.name for path in paths)
    for one, two in zip(paths, again, strict=True):
        assert one.read_bytes() == two.read_bytes()
    for path in paths:
        if path.suffix == ".png":
            assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
        else:
            root = ElementTree.fromstring(path.read_text())
            assert root.find(f"{SVG}title").text
            assert not root.findall(f".//{SVG}image")


def test_nothing_is_written_when_an_argument_cannot_be_used(tmp_path):
    with pytest.raises(InvalidInput, match="rare"):
        write_plots(federation(seeds=1), tmp_path / "none", rare=[17])
    assert not (tmp_path / "none").exists()


def test_ids_on_one_page_do_not_clash_and_references_resolve():
    page = "".join(plot.inline() for plot in named(federation(seeds=2, evaluations=3), RARE).values())
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="|url\()#([^")]+)', page)) <= set(ids)
    assert "http" not in page


def test_colours_are_left_to_the_page_with_a_fallback():
    inline = named(federation(seeds=1))["client-mean"].inline()
    assert "var(--series-0, #0072b2)" in inline
    assert not re.findall(r"(?<!, )#[0-9a-f]{6}\b", inline)


def test_a_label_that_looks_like_markup_or_mathematics_is_plain_text():
    found = named({"<b>$x$ & co": [make_run([[0.5], [0.6]])]})["client-mean"].inline()
    assert "&lt;b&gt;$x$ &amp; co" in found


def test_the_readers_settings_and_figures_are_not_touched(tmp_path):
    script = (
        "import sys, matplotlib as mpl\n"
        "from report.studies import federation\n"
        "from fedhedge.report import write_plots\n"
        "mpl.rcParams['lines.linewidth'] = 17.0\n"
        "before = mpl.rcParams.copy()\n"
        f"write_plots(federation(seeds=1, evaluations=2), {str(tmp_path)!r})\n"
        "assert mpl.rcParams.copy() == before\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    path = [entry for entry in sys.path if entry]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}\n{script}"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_readers_settings_do_not_change_a_figure():
    runs = federation(seeds=1, evaluations=2)
    plain = named(runs)["client-mean"].svg()
    with mpl.rc_context({"axes.facecolor": "pink", "font.size": 30, "svg.fonttype": "path"}):
        assert named(runs)["client-mean"].svg() == plain


def test_clients_sorted_by_one_of_several_laws_say_whose():
    runs = {name: [make_run([[0.5] * 2], inclusion=law)] for name, law in (("A", [0.2, 0.4]), ("B", [0.4, 0.2]))}
    assert "Sorted by availability under A." in named(runs)["clients"].caption
    assert "Sorted" not in named({"A": runs["A"]})["clients"].caption


def test_runs_over_different_numbers_of_clients_are_refused():
    with pytest.raises(InvalidInput, match=r"clients: received \[1, 2\]"):
        Study.of({"A": [make_run([[0.5]])], "B": [make_run([[0.5, 0.5]])]})


def losses(last, **arguments):
    """Two clients over three evaluations; the last values of the first one are given."""
    return make_run(loss=[[2.0, 2.0], [1.0, 1.0], [last, 0.5]], **arguments)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("last", [np.inf, np.nan])
def test_losses_that_are_not_finite_are_left_out_and_counted(last, tmp_path):
    runs = {"A": [losses(0.5)], "B": [losses(last, algorithm={"name": "B"})]}
    found = named(runs)
    write_report(runs, tmp_path / "report.html")
    bars = found["clients"].figure.axes[1].patches
    assert np.isnan(bars[0].get_height())
    assert bars[1].get_height() == 0.5
    mean, worst = (found[name] for name in ("client-mean", "worst-client"))
    if np.isinf(last):
        assert mean.figure.axes[0].lines[1].get_xdata().tolist() == [0, 10]
        assert "Evaluations left out, because a value is not finite: B 1 of 3." in worst.caption
        assert "B not finite at round 20" in worst.alt
        assert "Left out: 1 values that are not finite." in found["clients"].caption
    else:
        said = notes(Study.of(runs))
        assert "Left out of numbers over clients, because the loss is not a number: B (client 0)." in said


@pytest.mark.filterwarnings("error")
def test_a_method_without_any_finite_loss_leaves_an_empty_place(tmp_path):
    runs = {"A": [losses(0.5)], "B": [make_run(loss=np.full((3, 2), np.inf))]}
    write_report(runs, tmp_path / "report.html")
    assert named(runs)["client-mean"].figure.axes[0].lines[0].get_ydata() == pytest.approx([2.0, 1.0, 0.5])
    assert "B 3 of 3" in named({"B": runs["B"]})["client-mean"].caption


@pytest.mark.parametrize(("last", "scale"), [(30.0, "linear"), (1e4, "log"), (1e30, "log"), (-1e4, "linear")])
def test_losses_that_range_far_have_a_logarithmic_axis(last, scale):
    found = named({"A": [losses(0.5)], "B": [losses(last, seed=s) for s in (1, 2)]})
    for name in ("client-mean", "worst-client", "clients"):
        axes = found[name].figure.axes[0]
        assert axes.get_yscale() == scale
        assert ("Logarithmic axis." in found[name].caption) is (scale == "log")
    if scale == "log":
        axes = found["client-mean"].figure.axes[0]
        low, high = axes.get_ylim()
        assert 0 < low < 0.5
        assert high > last / 2
        # No label stands on another: by eye, in inches.
        heights = axes.transData.transform([(0.0, text.get_position()[1]) for text in axes.texts])[:, 1]
        assert abs(heights[0] - heights[1]) / axes.figure.dpi > 9.5 / 72


def test_accuracy_keeps_its_linear_axis():
    found = named([make_run([[0.001, 0.002], [0.9, 0.8]], loss=[[1.0, 1.0], [1e4, 0.1]])])
    assert [found[name].figure.axes[0].get_yscale() for name in ("client-mean", "loss")] == ["linear", "log"]

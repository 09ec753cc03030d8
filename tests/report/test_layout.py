import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fedhedge.report.layout import client_ticks, figure, shortened, spaced


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8).map(sorted), st.floats(0.001, 0.3))
def test_labels_keep_their_distance_and_stay_inside_where_they_fit(wanted, gap):
    placed = spaced(wanted, gap, 0.0, 1.0)
    assert (np.diff(placed) >= gap - 1e-12).all()
    assert placed[0] >= -1e-12
    assume(gap * (len(wanted) - 1) <= 1)
    assert placed[-1] <= 1 + 1e-12


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8).map(sorted))
def test_labels_far_enough_apart_stay_where_they_are(wanted):
    gap = min(np.diff(wanted), default=1.0)
    assume(gap > 0)
    assert spaced(wanted, gap * 0.999, 0.0, 1.0) == pytest.approx(wanted)


@pytest.mark.parametrize("clients", [1, 5, 30, 200])
def test_rare_clients_are_numbered_first_and_numbers_do_not_collide(clients):
    _, (axes,) = figure([1.0], left=0.5, right=0.1, top=0.1, bottom=0.5, gap=0.0)
    order = np.arange(clients)[::-1]
    client_ticks(axes, order, [0])
    shown = {label.get_text() for label in axes.get_xticklabels()}
    assert "0" in shown
    inches = np.diff(np.sort(axes.get_xticks())) / (clients + 0.4) * axes.bbox.width / axes.figure.dpi
    assert inches.min(initial=1.0) > 7 / 72


def test_long_text_is_cut():
    assert shortened("a" * 50) == "a" * 50
    assert shortened("a" * 60) == "a" * 49 + "…"

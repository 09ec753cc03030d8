import itertools
import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from fedhedge.report import style

DARK_PAPER = "#16171b"

# Machado, Oliveira and Fernandes 2009, severity 1.0; for linear RGB.
DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}


def linear(colour):
    value = np.array(to_rgb(colour))
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """WCAG 2 contrast ratio."""
    high, low = sorted((float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (one, other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def lab(rgb):
    """CIE L*a*b* of linear RGB (sRGB primaries, D65)."""
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ np.clip(rgb, 0, 1)
    f = np.array([t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in xyz / [0.9505, 1.0, 1.089]])
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize(("series", "paper"), [(style.SERIES, style.PAPER), (style.SERIES_ON_DARK, DARK_PAPER)])
def test_lines_stand_out_from_the_page(series, paper):
    assert min(contrast(colour, paper) for colour in series) >= 3.0


@pytest.mark.parametrize("series", [style.SERIES, style.SERIES_ON_DARK])
@pytest.mark.parametrize("deficiency", list(DEFICIENCIES))
def test_the_first_four_colours_stay_apart_for_colour_blind_readers(series, deficiency):
    seen = [lab(DEFICIENCIES[deficiency] @ linear(colour)) for colour in series[:4]]
    # A difference of 10 is plain at a glance (2.3 is the just noticeable one).
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) >= 10


def test_text_is_readable():
    assert contrast(style.INK, style.PAPER) >= 7
    assert contrast(style.MUTED, style.PAPER) >= 4.5


def test_looks_are_all_different():
    found = style.looks([f"method {i}" for i in range(24)])
    assert len({(look.colour, str(look.dash)) for look in found.values()}) == 24


def test_the_readers_own_settings_come_back_and_do_not_matter():
    with mpl.rc_context({"lines.linewidth": 17.0}):
        before = mpl.rcParams.copy()
        with style.settings():
            assert mpl.rcParams["lines.linewidth"] == 1.8
        assert mpl.rcParams.copy() == before


@pytest.mark.parametrize("series", [style.SERIES, style.SERIES_ON_DARK])
def test_ten_methods_have_ten_colours(series):
    assert len(series) == 10
    seen = [lab(linear(colour)) for colour in series]
    # Three times what is plain at a glance.
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) >= 30


@pytest.mark.parametrize("series", [style.SERIES, style.SERIES_ON_DARK])
@pytest.mark.parametrize("deficiency", list(DEFICIENCIES))
def test_of_ten_colours_those_that_look_alike_to_colour_blind_readers_have_other_dashes(series, deficiency):
    dashes = [str(look.dash) for look in style.looks([f"method {i}" for i in range(10)]).values()]
    seen = [lab(DEFICIENCIES[deficiency] @ linear(colour)) for colour in series]
    for a, b in itertools.combinations(range(10), 2):
        assert np.linalg.norm(seen[a] - seen[b]) >= 7 or dashes[a] != dashes[b], (series[a], series[b])


def test_the_page_knows_every_colour():
    css = (Path(style.__file__).parent / "templates" / "page.css").read_text()
    for number, (light, dark) in enumerate(zip(style.SERIES, style.SERIES_ON_DARK, strict=True)):
        assert re.findall(rf"--series-{number}: (#[0-9a-f]{{6}});", css) == [light, dark]

"""The page in a real browser; skipped where Chromium is not installed."""

import shutil
import subprocess

import numpy as np
import pytest

from evaluation.made_runs import make_run
from fedhedge.report import write_report
from report.studies import RARE, federation

NAMES = ("chromium", "chromium-browser", "google-chrome", "headless-shell")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--v=0",
    "--dump-dom",
)
WIDER = "<script>document.title = document.documentElement.scrollWidth > innerWidth ? 'wider' : 'fits'</script>"

pytestmark = pytest.mark.slow


@pytest.fixture
def browse(tmp_path):
    """Open a page: (document after loading, lines that the page wrote to the console)."""
    browser = next((found for found in map(shutil.which, NAMES) if found), None)
    if browser is None:
        pytest.skip(f"no browser found (looked for {', '.join(NAMES)})")

    def open_page(path, width=1200):
        command = [browser, *FLAGS, f"--window-size={width},900", f"--user-data-dir={tmp_path / 'profile'}"]
        done = subprocess.run([*command, path.as_uri()], capture_output=True, text=True, timeout=120)
        return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]

    return open_page


def test_the_browser_reports_what_goes_wrong(browse, tmp_path):
    path = tmp_path / "bad.html"
    path.write_text("<script>console.error('here')</script>")
    assert any("here" in line for line in browse(path)[1])


def test_the_page_opens_without_a_word_on_the_console(browse, tmp_path):
    document, console = browse(write_report(federation(), tmp_path / "report.html", rare=RARE, target=0.5))
    assert console == []
    assert document.count("<figure") == document.count('role="img"') == 8


def test_the_page_is_no_wider_than_a_phone(browse, tmp_path):
    path = write_report(federation(), tmp_path / "report.html", rare=RARE, target=0.5)
    # The page itself forbids scripts, so the probe replaces that rule.
    text = path.read_text().replace("default-src 'none'", "script-src 'unsafe-inline'")
    path.write_text(text.replace("</body>", f"{WIDER}</body>"))
    assert "<title>fits</title>" in browse(path, width=500)[0]


NAMED = ["FedAvg", "FedProx", "Scaffold", "FedeRage", "FedOpt(FedAvg)", "ScaffPD", "AgnosticFL", "ControlledFedeRage"]
CUT = """<script>
const shown = [...document.querySelectorAll('.scroll')].filter(box => !box.closest('details'));
const cut = shown.filter(box => box.scrollWidth > box.clientWidth);
document.title = cut.map(box => box.getAttribute('aria-label')).join(', ') || 'whole';
</script>"""


def test_no_table_in_view_is_cut_off_on_a_desk(browse, tmp_path):
    loss = np.random.default_rng(0).random((2, 30)) * 1e30
    runs = [make_run(loss=loss * (1 + s), seed=s, algorithm={"name": name}) for name in NAMED for s in range(2)]
    path = write_report(runs, tmp_path / "report.html", rare=RARE)
    text = path.read_text().replace("default-src 'none'", "script-src 'unsafe-inline'")
    path.write_text(text.replace("</body>", f"{CUT}</body>"))
    assert "<title>whole</title>" in browse(path)[0]
    assert "Worst clients of each method" in browse(path, width=500)[0].split("</title>")[0]

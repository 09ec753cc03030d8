"""Sections of tables and figures: what a section writes, and pages of several of them."""

import re

import pandas as pd
import pytest

from fedhedge.checks import InvalidInput
from fedhedge.report import style
from fedhedge.report.curves import curve_plot
from fedhedge.report.section import Section, as_lines, in_terminal, write_section, write_sections
from fedhedge.report.tables import Table
from report.test_browser import browse  # noqa: F401 - a fixture
from report.test_page import Page

FIGURES = ("first", "second")


def section(name="sample", title="A <sample> & more"):
    """Two figures, two tables, a text with characters that HTML knows, and data."""
    with style.settings():
        frame = pd.DataFrame({0: [0.1, 0.5], 1: [0.2, 0.7]}, index=[0, 10])
        plots = [
            curve_plot(figure, f"Figure {figure}", {"A": frame, "B": frame / 2}, style.looks(["A", "B"]), True, "Read.")
            for figure in FIGURES
        ]
    tables = {
        "Numbers": Table(["method", "x"], [["A", "1.0\n(0.5 to 1.5)"], ["B & C", "2.0"]]),
        "More": Table(["a"], [["b"]]),
    }
    data = {"numbers": pd.DataFrame({"method": ["A", "B & C"], "x": [1.0, 2.0]})}
    return Section(name, title, ["First, 1 < 2.", "Second."], f"fedhedge reproduce {name}", tables, plots, data)


def ids(found):
    return [attributes["id"] for _, attributes in found.tags if "id" in attributes]


def test_page_is_balanced_and_self_contained(tmp_path):
    write_section(tmp_path, section())
    text = (tmp_path / "report.html").read_text()
    found = Page(text)
    assert "http:" not in text
    assert "https:" not in text
    for tag, attributes in found.tags:
        assert tag not in ("script", "link", "img", "iframe", "object", "image")
        for name in ("src", "href", "xlink:href"):
            assert attributes.get(name, "#").startswith("#")
    assert not re.findall(r"url\((?!#)|@import", text)
    assert len(ids(found)) == len(set(ids(found)))
    words = "".join(found.words)
    for said in ("A <sample> & more", "First, 1 < 2.", "fedhedge reproduce sample", "Read."):
        assert said in words
    assert found.tables["Numbers"] == [["method", "x"], ["A", "1.0\n(0.5 to 1.5)"], ["B & C", "2.0"]]


def test_every_figure_has_words_with_numbers(tmp_path):
    write_section(tmp_path, section())
    found = Page((tmp_path / "report.html").read_text())
    figures = [i for i, (tag, _) in enumerate(found.tags) if tag == "figure"]
    assert len(figures) == len(FIGURES)
    for at in figures:
        tag, attributes = found.tags[at + 1]
        assert (tag, attributes["role"]) == ("div", "img")
        assert re.search(r"\d", attributes["aria-label"])


def test_files_beside_the_page(tmp_path):
    one = section()
    write_section(tmp_path, one)
    names = {path.name for path in tmp_path.iterdir()}
    images = {f"{figure}.{kind}" for figure in FIGURES for kind in ("png", "svg")}
    assert names == images | {"numbers.csv", "section.html", "report.html"}
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "numbers.csv"), one.data["numbers"])


def test_two_sections_share_no_ids_even_with_figures_of_one_name(tmp_path):
    for name in ("one", "two"):
        write_section(tmp_path / name, section(name))
    path = write_sections([tmp_path / "one", tmp_path / "two"], tmp_path / "page.html", title="Both")
    text = path.read_text()
    found = Page(text)
    assert len(ids(found)) == len(set(ids(found)))
    assert {"one", "two"} <= set(ids(found))
    # Every reference within the page has a target of its own section.
    for target in re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', text):
        assert "".join(target) in ids(found)
    assert [tag for tag, _ in found.tags].count("html") == 1
    assert "<title>Both</title>" in text


def test_a_folder_without_a_section_is_refused_by_name_before_anything_is_written(tmp_path):
    write_section(tmp_path / "one", section())
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match=f"{re.escape(str(tmp_path / 'empty'))}.*section.html"):
        write_sections([tmp_path / "one", tmp_path / "empty"], tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_the_same_section_gives_the_same_page(tmp_path):
    for name in ("one", "two"):
        write_section(tmp_path / name, section())
    assert (tmp_path / "one/report.html").read_bytes() == (tmp_path / "two/report.html").read_bytes()


def test_in_the_terminal_columns_are_aligned_and_cells_are_of_one_line():
    table = section().tables["Numbers"]
    lines = as_lines(table).splitlines()
    assert lines == ["method                 x", "A       1.0 (0.5 to 1.5)", "B & C                2.0"]
    words = Table(["problem", "method", "x"], [["A", "one", "never"], ["B", "another", "+2.0"], ["C", "one", "–"]])
    assert as_lines(words).splitlines()[:2] == ["problem  method       x", "A        one      never"]
    assert words.left == [True, True, False]
    assert in_terminal(section()).startswith("A <sample> & more\n\nNumbers\n")


@pytest.mark.slow
def test_the_page_opens_without_a_word_on_the_console(browse, tmp_path):  # noqa: F811
    for name in ("one", "two"):
        write_section(tmp_path / name, section(name))
    path = write_sections([tmp_path / "one", tmp_path / "two"], tmp_path / "page.html")
    document, console = browse(path)
    assert console == []
    assert document.count("<figure") == document.count('role="img"') == 2 * len(FIGURES)

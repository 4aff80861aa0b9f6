"""The report of a table model in a real browser, on a phone; skipped where there is no Chromium."""

import os
import shutil
from itertools import pairwise

import pytest

from graphormer_sepnorm.explain.pictures import draw_pair
from graphormer_sepnorm.report.page import Grid, Picture, ReportPage, Section, render

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None or os.name != "posix", reason="there is no Chromium"),
]
BOXES = "found => found.map(each => each.getBoundingClientRect().toJSON())"


def boxes_on_a_phone(grid: Grid) -> tuple[list[dict], list[dict]]:
    """The boxes of the cells and of the pictures of a table with one row."""
    content = render(ReportPage("title", "summary", sections=(Section("section", grids=(grid,)),))).decode()
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 400, "height": 900})
        page.set_content(content)
        cells, pictures = (page.eval_on_selector_all(name, BOXES) for name in ("td", "td img"))
        browser.close()
    return cells, pictures


def test_the_pictures_of_a_pair_stand_apart_and_its_numbers_on_one_line():
    parts = [Picture(each, "structure") for each in draw_pair("CC(C)Cc1ccccc1", "Clc1ccccc1")]
    header = ("from", "to", "mean change", "standard deviation", "pairs")
    cells, pictures = boxes_on_a_phone(Grid(header, ((*parts, "+1.00", "0.25", "12"),)))
    before, after = pictures
    assert before["right"] + 8 <= after["left"] and before["top"] == after["top"]
    assert len({cell["top"] for cell in cells[2:]}) == 1 and cells[2]["top"] >= before["bottom"]
    assert all(left["right"] <= right["left"] for left, right in pairwise(cells[2:]))

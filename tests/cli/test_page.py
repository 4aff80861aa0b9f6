"""The page and a report in a real browser; skipped where there is no Chromium."""

import csv
import io
import os
import shutil
import time
from itertools import pairwise

import pytest

from graphormer_sepnorm.explain.pictures import draw_pair
from graphormer_sepnorm.interfaces.web.job_queue import JobLimits, Worker
from graphormer_sepnorm.report.page import Grid, Picture, ReportPage, Section, render
from tests.page import InThisProcess, PretendedService, open_queue, served, uncompiled_service

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None or os.name != "posix", reason="there is no Chromium"),
]
OPTIONS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
PATIENCE = 300_000  # milliseconds
expect = playwright.expect
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def queue(tmp_path_factory):
    worker = Worker(uncompiled_service, tmp_path_factory.mktemp("models"))
    with open_queue(worker, tmp_path_factory.mktemp("store"), JobLimits(step_seconds=300)) as queue:
        yield queue


@pytest.fixture(scope="module")
def address(queue):
    with served(queue) as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture
def user(browser, address):
    """Opens the page as a new user; at the end it has asked no other server, and no script has failed."""
    contexts, mistakes = [], []

    def listen(page):
        page.on("pageerror", lambda error: mistakes.append(str(error)))
        page.on("dialog", lambda dialog: (mistakes.append(dialog.message), dialog.dismiss()))
        page.on("console", lambda line: mistakes.append(line.text) if "Content Security" in line.text else None)
        page.on("request", lambda asked: None if asked.url.startswith(address) else mistakes.append(asked.url))

    def open_page():
        context = browser.new_context(viewport={"width": 1200, "height": 900}, accept_downloads=True)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        listen(page)
        page.goto(address)
        page.wait_for_selector("#editor[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not [mistake for mistake in mistakes if not mistake.startswith(("data:", "blob:"))]


def wait_for(page, text: str) -> None:
    page.locator("#status", has_text=text).wait_for()


def go_back(page) -> None:
    with page.expect_event("load"):  # htmx loads the page of the address
        page.go_back(wait_until="commit")


def active(page) -> str:
    return page.evaluate("document.activeElement.id")


def upload(page, name: str, content: bytes) -> None:
    page.set_input_files("#file", {"name": name, "mimeType": "text/csv", "buffer": content})
    page.click("#predict")


def download(page) -> bytes:
    with page.expect_download() as started:
        page.click("text=Download CSV")
    assert started.value.suggested_filename.endswith("-predictions.csv")
    with open(started.value.path(), "rb") as file:
        return file.read()


def wait_for_picture(page, picture: str) -> None:
    """Waits until a picture has arrived and could be decoded; the row around it may be replaced meanwhile."""
    expect(page.locator(picture).first).not_to_have_js_property("naturalWidth", 0)


def test_draw_predict_and_look(user):
    page = user()
    place = page.locator("#editor").bounding_box()
    page.mouse.click(place["x"] + 300, place["y"] + 200)
    expect(page.locator("#text")).not_to_have_value("")
    drawn = page.input_value("#text")
    assert drawn == "CC"
    page.click("#predict")
    wait_for(page, "1 molecule computed")
    card = page.locator("#rows .card")
    expect(card).to_have_count(1)  # the rows come after the status
    assert card.locator(".smiles").inner_text() == drawn
    assert "2 heavy atoms" in card.locator(".molecule .warning").inner_text()
    assert "2 heavy atoms" in card.locator(".bars .warning").get_attribute("title")
    assert " to " in card.locator(".number").first.inner_text()
    assert "C" in card.locator(".nearest").inner_text()
    wait_for_picture(page, ".card img")
    assert "/tables/" in page.url
    page.reload()
    wait_for(page, "1 molecule computed")


def test_columns_are_chosen_and_moved_with_the_keyboard(user):
    page = user()
    upload(page, "two.csv", b"smiles,note\nCCO,x\nCC,y\n")
    wait_for(page, "2 of 2 molecules computed")

    def heads():
        return [text.strip(" \n▲") for text in page.locator("#rows thead th").all_inner_texts()]

    page.focus("#view summary")
    page.keyboard.press("Enter")
    page.focus("#view [value=note]")
    page.keyboard.press("Space")
    expect(page.locator("#rows thead th", has_text="note")).to_have_count(1)
    usual = ["Row", "Molecule", "Nearest training molecule", "logp", "Alerts"]
    listed = page.locator("#view .check").all_inner_texts()
    expect(page.locator("#view [value=note]")).to_be_focused()
    assert heads() == [*usual, "note"]
    page.focus("#view a[aria-label='Move note to the left']")
    for place in (4, 3, 2):
        page.keyboard.press("Enter")
        expect(page.locator("#rows thead th").nth(place)).to_have_text("note")
        expect(page.locator("#view a[aria-label='Move note to the left']")).to_be_focused()
    assert heads() == [*usual[:2], "note", *usual[2:]]
    for link, shown in (("all", 2 + len(listed)), ("usual", 5), ("none", 2)):
        page.focus(f"#{link}")
        page.keyboard.press("Enter")
        expect(page.locator("#rows thead th")).to_have_count(shown)
        expect(page.locator(f"#{link}")).to_be_focused()
        assert page.locator("#view .check").all_inner_texts() == listed
    page.check("#view [value=note]")
    expect(page.locator("#rows thead th")).to_have_count(3)
    page.reload()
    expect(page.locator("#rows thead th").nth(2)).to_have_text("note")
    page.fill("#text", "CCN a\nCCC b")
    page.click("#predict")
    page.wait_for_url("**/tables/*?columns=note*")


def test_back_leads_through_what_was_looked_at(user, address):
    page = user()
    upload(page, "many.csv", b"smiles\n" + b"CCO\n" * 60)
    wait_for(page, "60 of 60 molecules computed")
    table = page.url
    page.click("thead a:has-text('logp')")
    page.wait_for_url("**?sort=logp")
    page.locator("th[aria-sort=ascending]").wait_for()
    page.click("text=Next (2)")
    page.wait_for_url("**?page=2&sort=logp")
    page.locator("#rows", has_text="Page 2 of 2").wait_for()
    page.click("#rows tbody a >> nth=0")
    page.wait_for_url("**/rows/*?page=2&sort=logp")
    wait_for_picture(page, ".card .molecule img")
    go_back(page)
    page.wait_for_url("**?page=2&sort=logp")
    page.locator("#rows", has_text="Page 2 of 2").wait_for()
    go_back(page)
    page.wait_for_url(f"{table}?sort=logp")
    page.locator("#rows", has_text="Page 1 of 2").wait_for()
    assert page.locator("th[aria-sort=ascending]").count() == 1
    go_back(page)
    page.wait_for_url(table)
    page.locator("#rows").wait_for()
    go_back(page)
    page.wait_for_url(f"{address}/")
    expect(page.locator("#result section")).to_have_count(0)


def test_back_while_a_page_loads_shows_the_page_of_its_address(user, address):
    page = user()
    upload(page, "one.csv", b"smiles\nCCO\n")
    wait_for(page, "1 molecule computed")
    page.route("**/htmx.min.js", lambda route: (time.sleep(1), route.continue_()))
    page.reload(wait_until="commit")
    page.evaluate("history.back()")
    page.wait_for_url(f"{address}/")
    expect(page.locator("#result section")).to_have_count(0)


def test_the_keyboard_is_enough(user):
    page = user()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    for _ in range(30):
        if active(page) == "text":
            break
        page.keyboard.press("Tab")
    page.keyboard.type("c1ccccc1O phenol")
    page.keyboard.press("Control+Enter")
    wait_for(page, "1 molecule computed")
    page.locator("#atoms-0").wait_for()
    expect(page.locator("#table-title")).to_be_focused()
    assert page.locator("#table-title").evaluate("each => getComputedStyle(each).outlineStyle") == "none"
    expect(page.locator("#said")).to_have_text("1 molecule computed, with a warning.")
    for _ in range(10):
        if active(page) == "atoms-0":
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    wait_for_picture(page, "#atoms img")
    expect(page.locator("#atoms-title")).to_be_focused()
    assert "logp = " in page.locator("#atoms img").get_attribute("alt")
    assert page.locator("#atoms table").first.locator("tbody tr").count() == 7


def test_five_thousand_rows_with_broken_ones(user):
    lines = [f"{row},{'C' * (row % 9 + 1) if row % 100 else 'C[C'}" for row in range(5000)]
    page = user()
    upload(page, "large.csv", "\n".join(["id,smiles", *lines]).encode())
    wait_for(page, "5,000 of 5,000 molecules computed, 50 of them without a prediction")
    assert page.locator("#rows tbody tr").count() == 50
    page.click("text=Last (100)")
    page.locator("#rows", has_text="Page 100 of 100").wait_for()
    expect(page.locator("#rows .wide")).to_be_focused()
    page.reload()
    page.locator("#rows", has_text="Page 100 of 100").wait_for()
    assert page.locator("#rows tbody th").last.inner_text() == "5001"  # as a spreadsheet counts
    rows = list(csv.DictReader(io.StringIO(download(page).decode())))
    assert [row["id"] for row in rows] == [str(number) for number in range(5000)]
    assert [bool(row["error"]) for row in rows] == [number % 100 == 0 for number in range(5000)]
    assert all(float(row["logp_low"]) < float(row["logp"]) < float(row["logp_high"]) for row in rows[1:100])


def test_a_long_table_outlives_a_reload_and_a_lost_connection_and_the_focus_stays_while_rows_arrive(user):
    page = user()
    upload(page, "long.csv", b"smiles\n" + b"c1ccccc1CCCCO\n" * 10_000)
    page.locator("#status progress").wait_for()
    page.reload()
    page.locator("#rows tbody tr").first.wait_for()
    page.context.set_offline(True)
    page.locator("#result > .problem", has_text="The server did not answer").wait_for()
    assert page.locator("#rows tbody tr").count() > 0
    page.context.set_offline(False)
    expect(page.locator("#result > .problem")).to_have_count(0)
    for name in ("molecule-3", "csv", "cancel"):
        page.focus(f"#{name}")
        for _ in range(2):
            with page.expect_response(lambda answer: "/status" in answer.url):
                pass
        expect(page.locator(f"#{name}")).to_be_focused()
    page.keyboard.press("Enter")
    wait_for(page, "the rest was cancelled")


@pytest.mark.parametrize("width", [400, 1280])
def test_a_model_is_trained_with_the_keyboard(browser, trainings, tmp_path, width):
    """From a table to a training that is cancelled, with a program that only pretends to train."""
    models = InThisProcess(PretendedService())
    with open_queue(models, tmp_path / "store") as queue, served(queue, trainings=trainings) as address:
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto(f"{address}/train")
        rings = "".join(f"C1{'C' * number}C1,{number},a\n" for number in range(1, 30))
        table = f"smiles,y,note\n{rings}CC,0.5,sleep".encode()
        page.set_input_files("#file", {"name": "assay.csv", "mimeType": "text/csv", "buffer": table})
        page.focus("text=Look at it")
        page.keyboard.press("Enter")
        page.wait_for_url(f"{address}/train/*")  # until it is loaded with its scripts
        expect(page.locator("#look .problem")).to_be_visible()  # two columns could be meant
        page.focus("[name=targets][value=y]")
        page.keyboard.press("Space")
        expect(page.locator("#look pre")).to_contain_text("--target-columns y")
        expect(page.locator("#look .problem")).to_have_count(0)
        page.focus("#split")
        page.keyboard.type("random")
        page.keyboard.press("Tab")
        expect(page.locator("#look pre")).to_contain_text("--split random")
        expect(page.locator("#split_column")).to_be_focused()  # which the new part has not moved
        assert page.evaluate("document.documentElement.scrollWidth") == width
        page.focus("button.main")
        page.keyboard.press("Enter")
        expect(page.locator("#bar")).to_have_js_property("value", 40)
        page.focus("#cancel")
        page.keyboard.press("Enter")
        expect(page.locator("#bar")).to_have_count(0)
        expect(page.locator("#training")).to_contain_text("Cancelled")
        page.close()


BOXES = "found => found.map(each => each.getBoundingClientRect().toJSON())"


def test_the_pictures_of_a_pair_stand_apart_and_its_numbers_on_one_line(browser):
    parts = [Picture(each, "structure") for each in draw_pair("CC(C)Cc1ccccc1", "Clc1ccccc1")]
    header = ("from", "to", "mean change", "standard deviation", "pairs")
    grid = Grid(header, ((*parts, "+1.00", "0.25", "12"),))
    page = browser.new_page(viewport={"width": 400, "height": 900})
    page.set_content(render(ReportPage("title", "summary", sections=(Section("section", grids=(grid,)),))).decode())
    cells, (before, after) = (page.eval_on_selector_all(name, BOXES) for name in ("td", "td img"))
    page.close()
    assert before["right"] + 8 <= after["left"] and before["top"] == after["top"]
    assert len({cell["top"] for cell in cells[2:]}) == 1 and cells[2]["top"] >= before["bottom"]
    assert all(left["right"] <= right["left"] for left, right in pairwise(cells[2:]))

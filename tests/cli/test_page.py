"""The page in a real browser, with two tiny models; skipped where there is no Chromium."""

import csv
import io
import os
import shutil

import pytest

from graphormer_sepnorm.interfaces.web.job_queue import JobLimits
from graphormer_sepnorm.interfaces.web.worker import Worker
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
    row = page.locator("#rows tbody tr")
    expect(row).to_have_count(1)  # the rows come after the status
    assert row.locator(".smiles").inner_text() == drawn
    assert "2 heavy atoms" in row.locator(".warning").inner_text()
    assert " to " in row.locator(".number small").first.inner_text()
    assert "C" in row.locator(".nearest").inner_text()
    wait_for_picture(page, "#rows tbody img")
    assert "/tables/" in page.url
    page.reload()
    wait_for(page, "1 molecule computed")


def test_a_long_smiles_ends_in_an_ellipsis_where_it_is_cut(user):
    page = user()
    page.fill("#text", "C" * 150 + "\nCC")
    page.click("#predict")
    rows = page.locator("#rows .smiles")
    expect(rows).to_have_count(2)
    found = rows.evaluate_all(
        "all => all.map((each) => [each.scrollHeight > each.clientHeight, getComputedStyle(each).webkitLineClamp])"
    )
    assert found == [[True, "3"], [False, "3"]]


def test_the_drawing_follows_the_text_while_it_has_the_focus(user):
    page = user()
    empty = page.locator("#editor").screenshot()
    page.click("#text")
    page.keyboard.type("c1ccccc1O")
    drawn = drawing_after(page, empty)
    assert active(page) == "text" and page.input_value("#text") == "c1ccccc1O"
    page.keyboard.type("CC")
    drawing_after(page, drawn)
    assert active(page) == "text"


def drawing_after(page, before: bytes) -> bytes:
    """The drawing once it is another one than before, and finished: two pictures in a row are the same."""
    last = before
    for _ in range(PATIENCE // 500):
        page.wait_for_timeout(500)
        drawn = page.locator("#editor").screenshot()
        if drawn == last != before:
            return drawn
        last = drawn
    raise AssertionError("the drawing stays as it was, or does not come to an end")


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
    wait_for_picture(page, "#dialog #atoms img")
    expect(page.locator("#atoms-title")).to_be_focused()
    assert "logp = " in page.locator("#atoms img").get_attribute("alt")
    assert page.locator("#atoms table").first.locator("tbody tr").count() == 7
    page.keyboard.press("Escape")
    expect(page.locator("#atoms-0")).to_be_focused()
    assert not page.locator("#dialog").is_visible()


def test_a_screen_reader_has_a_name_for_everything(user):
    page = user()
    page.fill("#text", "CCO\nCC")
    page.click("#predict")
    wait_for(page, "computed")
    page.locator("#atoms-1").wait_for()
    tree = page.locator("body").aria_snapshot()
    for name in ('textbox "SMILES', 'button "Predict"', 'button "Atom picture of row 1"', 'img "Structure of CCO"'):
        assert name in tree
    assert 'columnheader "Molecule"' in tree and 'link "Download CSV"' in tree


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
    assert page.locator("#rows tbody th").last.inner_text() == "5000"
    rows = list(csv.DictReader(io.StringIO(download(page).decode())))
    assert [row["id"] for row in rows] == [str(number) for number in range(5000)]
    assert [bool(row["error"]) for row in rows] == [number % 100 == 0 for number in range(5000)]
    assert all(float(row["logp_low"]) < float(row["logp"]) < float(row["logp_high"]) for row in rows[1:100])


def test_a_hostile_table_is_shown_and_nothing_of_it_is_run(user):
    content = (
        "smiles,<img src=x onerror=alert(1)>,note\n"
        'CCO,"<script>alert(2)</script>",=HYPERLINK("http://x")\n'
        "=1+1,{{ 7 * 7 }},-1\n"
        "<svg onload=alert(3)>,</td></table><script>alert(4)</script>,caf\u00e9\n"
    ).encode("latin-1")
    page = user()
    upload(page, "<img src=x onerror=alert(5)>.csv", content)
    wait_for(page, "3 of 3 molecules computed, 2 of them without a prediction")
    page.locator("#rows tbody tr").nth(2).wait_for()
    shown = page.locator("#rows").inner_text()
    assert "<script>alert(2)</script>" in shown and "{{ 7 * 7 }}" in shown and "caf\ufffd" in shown
    assert page.locator("#rows script, #rows svg, #rows img[src='x']").count() == 0
    saved = download(page)
    assert b"'=HYPERLINK" in saved and b"'=1+1" in saved and b'"-1"' in saved and b"caf\xe9" in saved


def test_wrong_encodings_and_sizes_are_sentences(user, tmp_path, address):
    page = user()
    upload(page, "other.csv", "smiles\nCC\n".encode("utf-16"))
    wait_for(page, "other.csv is UTF-16: save it as UTF-8")
    large = tmp_path / "large.csv"
    with open(large, "wb") as file:
        file.truncate(100_000_000)
    page.set_input_files("#file", large)
    page.click("#predict")
    page.locator("#result .problem", has_text="large.csv is too large: at most 20 MB").wait_for()
    status = page.evaluate(
        """async () => (await fetch("/api/tables", {method: "POST", headers: {"Content-Type": "application/json"},
        body: "x".repeat(25000000)})).status"""
    )
    assert status == 413
    page.click("#clear-file")
    page.fill("#text", " ")
    page.click("#predict")
    page.locator("#result .problem", has_text="There are no molecules").wait_for()


@pytest.mark.parametrize("width", [1280, 400])
def test_the_prediction_is_seen_first_at_every_width(user, width):
    page = user()
    page.set_viewport_size({"width": width, "height": 800})
    page.fill("#text", "CCO")
    page.click("#predict")
    wait_for(page, "1 molecule computed")
    for part in (".number b", ".warning", "#atoms-0"):
        place = page.locator(f"#rows {part}").bounding_box()
        assert place["x"] >= 0 and place["x"] + place["width"] <= width
    shown = page.locator("#rows .number b").bounding_box()
    assert 0 <= shown["y"] < 800
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_column_and_the_options_are_chosen_on_the_page(user):
    page = user()
    page.click(".options summary")
    page.uncheck("#domain")
    page.select_option("#interval", "")
    upload(page, "assay.csv", b"mol,name\nCC,ethane\nCCC,propane\n")
    wait_for(page, "Choose the column of assay.csv that has the SMILES.")
    page.select_option("#again", "mol")
    page.click("#status button")
    wait_for(page, "2 of 2 molecules computed")
    assert page.locator("#rows .nearest").count() == 0 and page.locator("#rows .number", has_text=" to ").count() == 0
    page.click("text=Sort and filter")
    page.fill("#find", "propane")
    page.press("#find", "Enter")
    expect(page.locator("#rows tbody tr")).to_have_count(1)
    assert page.locator("#rows .smiles").inner_text() == "CCC"
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 26, 33)"
    structure = page.locator("#rows .molecule img").evaluate("each => getComputedStyle(each).backgroundColor")
    assert structure == "rgba(0, 0, 0, 0)"


def test_two_choices_at_once_are_both_kept(user):
    """The second comes while the rows of the first are on their way, and these replace the form."""
    page = user()
    upload(page, "two.csv", b"smiles\nCCO\nCC\n")
    wait_for(page, "2 of 2 molecules computed")
    page.click("text=Sort and filter")
    held = []
    page.route("**/rows?**", lambda route: held.append(route) if not held else route.continue_())
    page.select_option("#sort", "logp")
    page.select_option("#order", "descending")
    expect(page.locator("#shown")).to_have_text("Predictions, page 1 of 1, sorted by logp, descending")
    assert page.url.endswith("?sort=logp&order=descending") and page.locator("#result > .problem").count() == 0
    assert (page.input_value("#sort"), page.input_value("#order")) == ("logp", "descending")


def test_new_rows_keep_what_is_open_and_what_is_typed(user):
    """As while a table is computed."""
    page = user()
    page.check("[name=properties]")
    upload(page, "two.csv", b"smiles\nCCO\nCC\n")
    wait_for(page, "2 of 2 molecules computed")
    page.click("text=Sort and filter")
    page.locator("#rows td details summary").nth(1).click()
    page.locator("#find").press_sequentially("CC")
    with page.expect_response(lambda answer: "/rows" in answer.url, timeout=20_000):
        page.evaluate("htmx.trigger(document.body, 'rows-changed')")
    page.locator("#find").press_sequentially("O")
    assert page.input_value("#find") == "CCO" and active(page) == "find"
    is_open = page.locator("#rows details").evaluate_all("all => all.map(each => each.open)")
    assert is_open == [True, False, True] and page.locator("#rows tbody tr").count() == 2


def test_the_dialog_opens_before_its_picture_is_computed(user):
    page = user()
    page.fill("#text", "CCO")
    page.click("#predict")
    wait_for(page, "1 molecule computed")
    held = []
    page.route("**/atoms", lambda route: held.append(route))

    def asked():
        for _ in range(600):
            if held:
                return held.pop()
            page.wait_for_timeout(50)
        raise AssertionError("no picture was asked for")

    page.click("#atoms-0")
    expect(page.locator("#dialog #drawing")).to_have_text("Computing the atom picture...")
    assert page.locator("#dialog").is_visible() and page.locator("#drawing").get_attribute("aria-live") == "polite"
    page.keyboard.press("Escape")
    expect(page.locator("#atoms-0")).to_be_focused()
    asked().continue_()
    page.locator("#atoms-title").wait_for(state="attached")
    assert not page.locator("#dialog").is_visible()
    page.click("#atoms-0")
    expect(page.locator("#drawing")).to_have_text("Computing the atom picture...")
    assert page.locator("#atoms img").count() == 0
    asked().continue_()
    wait_for_picture(page, "#dialog #atoms img")
    expect(page.locator("#drawing")).to_have_text("")
    page.keyboard.press("Escape")
    page.click("#atoms-0")
    expect(page.locator("#drawing")).to_have_text("Computing the atom picture...")
    asked().abort()
    expect(page.locator("#drawing")).to_have_text("The server did not answer: it may have been closed.")


def test_a_wide_table_has_a_shadow_where_it_goes_on(user):
    page = user()
    upload(page, "two.csv", b"smiles\nCCO\nCC\n")
    wait_for(page, "2 of 2 molecules computed")
    assert "linear-gradient" in page.locator("#rows .wide").evaluate("each => getComputedStyle(each).backgroundImage")
    heads = page.locator("#rows thead th").evaluate_all("all => all.map((each) => each.getClientRects()[0].height)")
    assert len(set(heads)) == 1 and heads[0] < 45
    page.click("nav a[href='/about']")
    expect(page.locator("main .table table")).to_have_count(2)


def test_a_form_is_sent_once(user):
    page, sent = user(), []
    page.on("request", lambda asked: sent.append(asked.url) if asked.method == "POST" else None)
    page.fill("#text", "CCO")
    page.dblclick("#predict")
    wait_for(page, "1 molecule computed")
    page.evaluate("form = document.getElementById('molecules'); form.requestSubmit(); form.requestSubmit()")
    page.locator("#predict:enabled").wait_for()
    assert len(sent) == 2
    page.locator("#atoms-0").dblclick()
    wait_for_picture(page, "#atoms img")
    page.keyboard.press("Escape")
    assert not page.locator("#dialog").is_visible()


def test_a_table_outlives_a_reload_and_a_lost_connection(user):
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
    page.click("#cancel")
    wait_for(page, "the rest was cancelled")


def test_tables_without_molecules_are_sentences(user):
    page = user()
    for name, content, sentence in (
        ("empty.csv", b"", "empty.csv is empty: it should begin with a line of column names."),
        ("header.csv", b"smiles\n", "header.csv has no molecules."),
        ("blank.csv", b"\n\n\n", "The first line of blank.csv should name the columns, each with another name."),
        ("wrong.csv", b"smiles,n\nfoo,1\nbar,2\n", "2 of 2 molecules computed, 2 of them without a prediction."),
    ):
        upload(page, name, content)
        wait_for(page, sentence)
    assert (
        page.locator("#rows .reason").first.inner_text()
        == "'foo' is not a valid SMILES: 'f' is no atom outside square brackets."
    )


def test_columns_may_have_any_name(user):
    page = user()
    upload(page, "odd \U0001f600.csv", '"the ""M"" \U0001f600 <b>",my name\nCC,ethane\nCCC,propane\n'.encode())
    wait_for(page, "Choose the column of odd \U0001f600.csv that has the SMILES.")
    page.select_option("#again", 'the "M" \U0001f600 <b>')
    page.click("#status button")
    wait_for(page, "2 of 2 molecules computed")
    first = next(csv.DictReader(io.StringIO(download(page).decode())))
    assert list(first)[:3] == ['the "M" \U0001f600 <b>', "my name", "logp"] and first["my name"] == "ethane"


def test_a_molecule_too_large_to_draw(user):
    page = user()
    page.set_viewport_size({"width": 400, "height": 800})
    page.fill("#text", f"{'C' * 20_000}\n{'C(C)' * 200}C")
    page.click("#predict")
    wait_for(page, "2 of 2 molecules computed, 1 of them without a prediction")
    page.locator("#rows", has_text="No picture").wait_for()
    assert page.locator("#rows .reason").inner_text() == "The molecule has 20,000 atoms; at most 1,000 are read."
    page.click("#atoms-1")
    page.locator("#dialog .problem", has_text="at most 200 are drawn").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_two_users_at_once(user):
    """The second is not held up by the first, who cancels and keeps what was done."""
    first, second = user(), user()
    upload(first, "long.csv", b"smiles\n" + b"c1ccccc1CCCCO\n" * 10_000)
    first.locator("#status progress").wait_for()
    second.fill("#text", "CCO")
    second.click("#predict")
    wait_for(second, "1 molecule computed")
    first.click("#cancel")
    wait_for(first, "the rest was cancelled")
    rows = download(first).decode().splitlines()
    assert 1 < len(rows) < 10_001
    assert first.url != second.url and second.locator("#rows tbody tr").count() == 1


@pytest.mark.parametrize("width", [400, 1280])
def test_a_model_is_trained_with_the_keyboard(browser, trainings, tmp_path, width):
    """From a table to the report, with a program that only pretends to train."""
    models = InThisProcess(PretendedService())
    with open_queue(models, tmp_path / "store") as queue, served(queue, trainings=trainings) as address:
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto(f"{address}/train")
        rings = "".join(f"C1{'C' * number}C1,{number},a\n" for number in range(1, 30))
        table = {
            "name": "assay.csv",
            "mimeType": "text/csv",
            "buffer": f"smiles,y,note\n{rings}CC,0.5,sleep".encode(),
        }
        page.set_input_files("#file", table)
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
        assert active(page) == "split_column"  # which the new part has not moved
        assert page.evaluate("document.documentElement.scrollWidth") == width
        page.focus("button.main")
        page.keyboard.press("Enter")
        expect(page.locator("#bar")).to_have_js_property("value", 40)
        page.focus("#cancel")
        page.keyboard.press("Enter")
        expect(page.locator("#bar")).to_have_count(0)
        expect(page.locator("#training")).to_contain_text("Cancelled")
        table["buffer"] = table["buffer"].replace(b"sleep", b"b")
        page.set_input_files("#file", table)
        page.click("text=Look at it")
        page.wait_for_url(f"{address}/train/*")
        page.check("[name=targets][value=y]")
        expect(page.locator("#look pre")).to_contain_text("--target-columns y")
        page.select_option("#split", "random")
        page.click("button.main")
        page.click("text=Read the report")
        expect(page.locator("p")).to_have_text("report")
        page.close()

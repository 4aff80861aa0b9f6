"""A page of a report: everything of the user's is escaped, and nothing is loaded from elsewhere."""

import base64
import hashlib
import json
import re
import zlib

from graphormer_sepnorm.report.charts import Axis, Chart
from graphormer_sepnorm.report.page import Card, Grid, Molecule, Picture, ReportPage, Section, glossary, render
from graphormer_sepnorm.report.words import metric_words, terms
from graphormer_sepnorm.tasks import METRICS

HOSTILE = "</code><script>alert('x')</script>\"><img src=x onerror=alert(1)> {{ 7 * 7 }} &amp;"
ESCAPED = (
    "&lt;/code&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&#34;&gt;&lt;img src=x onerror=alert(1)&gt; "
    "{{ 7 * 7 }} &amp;amp;"
)


def page(**section) -> str:
    return render(ReportPage("title", "summary", sections=(Section("section", **section),))).decode()


def test_whatever_comes_from_the_user_is_escaped_wherever_it_stands():
    """The only script is the one that the policy names."""
    picture = Picture(b"<svg/>", HOSTILE)
    molecule = Molecule(HOSTILE, HOSTILE, picture, ((HOSTILE, HOSTILE),))
    grid, axis = Grid((HOSTILE,), ((HOSTILE,),), HOSTILE), Axis(HOSTILE, (0, 1))
    parts = (HOSTILE,), (grid,), (Chart(HOSTILE, axis, axis, HOSTILE),), (picture,), (molecule,), ((HOSTILE, HOSTILE),)
    section, card = Section(HOSTILE, *parts), Card(HOSTILE, HOSTILE, HOSTILE, (HOSTILE,))
    text = render(ReportPage(HOSTILE, HOSTILE, (card,), (HOSTILE,), (section,), (HOSTILE,))).decode()
    assert text.count("<script") == 1 and "onerror=alert(1)>" not in text and "49" not in text
    assert (text.count(ESCAPED), text.count("<img")) == (30, 2)
    (script,) = re.findall("<script>(.*)</script>", text, re.DOTALL)
    (named,) = re.findall("script-src 'sha256-([^']*)'", text)
    assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() == named


def test_the_verdict_the_chart_and_structures_come_first():
    """Structures are compressed JSON, which neither is a script nor can end its element."""
    chart, drawings = Chart("", Axis("", (0, 1)), Axis("", (0, 1)), "parity"), {"CCO": "</script><svg/>"}
    report = ReportPage("caf\udce9", "", (Card("card", "1"),), (), (), ("a: well", "b: badly"), (chart,), drawings)
    text = render(report).decode()
    assert "caf?" in text, "bytes that are no text do not stop the page"
    places = [text.index(each) for each in ("<li>a: well", "<li>b: badly", "<figcaption>parity", "<h3>card", 'id="str')]
    assert places == sorted(places)
    (packed,) = re.findall('id="structures">([^<]*)</script>', text)
    assert json.loads(zlib.decompress(base64.b64decode(packed))) == drawings


def test_pictures_are_embedded():
    text = page(pictures=(Picture(b"<svg/>", "of something"),))
    assert '<figure><img src="data:image/svg+xml;base64,PHN2Zy8+" alt="of something"><figcaption>of something' in text
    cell = page(grids=(Grid(("part",), ((Picture(b"<svg/>", "C[*:1]"),),)),))
    assert '<td><img src="data:image/svg+xml;base64,PHN2Zy8+" alt="C[*:1]" title="C[*:1]"></td>' in cell
    assert re.search(r"<footer>graphormer_sepnorm [0-9.]+, \d{4}-\d\d-\d\d</footer>", text)
    assert "http:" not in text and "https:" not in text and "default-src 'none'" in text


def test_a_table_that_is_too_wide_for_a_phone_is_stacked_there():
    names = ("a", "b", "c", "d", "e")
    wide, narrow = page(grids=(Grid(names, (names,)),)), page(grids=(Grid(names[:4], (names[:4],)),))
    assert '<div class="table stacked">' in wide and '<td data-label="e">e</td>' in wide
    assert '<div class="table">' in narrow and "data-label=" not in narrow.partition("<body>")[2]


def test_only_the_terms_that_occur_are_explained():
    sections = [Section("Scores", ("An out-of-fold score.",), (Grid(("", "RMSE"), ()),))]
    (grid,) = glossary([Card("a", "0.5", "mean absolute error (MAE)", ("Intervals, not one.",))], sections).grids
    assert [term for term, _ in grid.rows] == ["MAE", "RMSE", "out of fold"]
    assert {metric.title for metric in METRICS.values()} <= terms().keys()
    assert metric_words("mae") == "mean absolute error (MAE)" and metric_words("rocauc") == "ROC-AUC"

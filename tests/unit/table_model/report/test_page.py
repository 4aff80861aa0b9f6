"""A page of a report: everything of the user's is escaped, and nothing is loaded from elsewhere."""

from graphormer_sepnorm.table_model.report.page import Grid, Molecule, Picture, ReportPage, Section, render

HOSTILE = "</code><script>alert('x')</script>\"><img src=x onerror=alert(1)> {{ 7 * 7 }} &amp;"
ESCAPED = (
    "&lt;/code&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&#34;&gt;&lt;img src=x onerror=alert(1)&gt; "
    "{{ 7 * 7 }} &amp;amp;"
)


def page(**section) -> str:
    return render(ReportPage("title", "summary", (Section("section", **section),), "1.0")).decode()


def test_whatever_comes_from_the_user_is_escaped_wherever_it_stands():
    picture = Picture("svg", b"<svg/>", HOSTILE)
    molecule = Molecule(HOSTILE, picture, ((HOSTILE, HOSTILE),))
    section = Section(
        HOSTILE, (HOSTILE,), (Grid((HOSTILE,), ((HOSTILE,),), HOSTILE),), (picture,), (molecule,), (HOSTILE,)
    )
    text = render(ReportPage(HOSTILE, HOSTILE, (section,), HOSTILE)).decode()
    assert "<script" not in text and "onerror=alert(1)>" not in text and "49" not in text
    assert text.count(ESCAPED) == 16
    assert text.count("<img") == 2


def test_pictures_are_embedded():
    text = page(pictures=(Picture("png", b"\x89PNG", "of something"), Picture("svg", b"<svg/>", "else")))
    assert '<img src="data:image/png;base64,iVBORw==" alt="of something"><figcaption>of something' in text
    assert '<img src="data:image/svg+xml;base64,PHN2Zy8+" alt="else">' in text
    assert "http:" not in text and "https:" not in text and "default-src 'none'" in text


def test_a_molecule_that_cannot_be_drawn_has_its_text_alone():
    text = page(molecules=(Molecule("CCO", None, (("similarity", "0.5"),)),))
    assert "<img" not in text and "<code>CCO</code>" in text and "<dt>similarity</dt><dd>0.5</dd>" in text


def test_bytes_that_are_no_text_do_not_stop_the_page():
    assert b"caf?" in render(ReportPage("caf\udce9", "", (), "1.0"))

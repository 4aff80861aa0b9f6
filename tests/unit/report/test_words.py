"""The words of a report, in templates."""

import pytest
from jinja2 import UndefinedError

from graphormer_sepnorm.report.words import environment, line, words


def test_paragraphs_are_separated_by_empty_lines_and_facts_are_not_escaped():
    few = words("headline.few", warnings={"a<b": "x & y"}, tested=3, learnt=None, has_folds=False)
    assert few == ("a<b: x & y.", "The test set is small (3 labels), so the score is uncertain.")


def test_no_facts_give_no_paragraph():
    assert words("headline.few", warnings={}, tested=None, learnt=None, has_folds=False) == ()
    assert line("trust.unlike", consequence="", split="random", errors_grow=False) == ""


def test_a_fact_that_is_missing_is_an_error():
    with pytest.raises(UndefinedError):
        words("headline.accuracy", name="yes")


def test_every_template_can_be_read():
    names = environment().list_templates()
    assert {"headline.jinja", "report.html"} <= set(names)
    for name in names:
        if name != "report.js":
            environment().get_template(name)

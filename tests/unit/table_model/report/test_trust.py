"""Reliability in words, by hand."""

from graphormer_sepnorm.table_model.report.trust import trust_section
from tests.unit.table_model.report.conftest import reported


def test_what_is_not_calibrated_is_said_for_its_own_reason():
    def words(kind: str) -> str:
        return trust_section(reported({"trust": {"calibrated_by": "validation molecules"}}, kind)).words[0]

    assert words("multiclass") == "Multiclass probabilities are not calibrated and have no intervals."
    assert words("regression") == "No intervals: a target has no labels among the validation molecules."

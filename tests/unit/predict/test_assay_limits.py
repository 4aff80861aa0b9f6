"""Limits of assays, by hand."""

import math

import pytest
from rdkit import Chem

from graphormer_sepnorm.predict.assay_limits import limit_words
from graphormer_sepnorm.runs.zoo import AssayLimit, read_card, resolve_model, shipped_tables

ASPIRIN = Chem.MolFromSmiles("CC(=O)Oc1ccccc1C(=O)O")  # 180.16 g/mol
AT_LEAST = "near the upper limit of the assay: read as at least"
AT_MOST = "near the lower limit of the assay: read as at most"


@pytest.mark.parametrize(
    ("value", "limit", "words"),
    [
        (math.log10(18.1), AssayLimit(100, "more", "uM"), AT_LEAST),
        (math.log10(17.9), AssayLimit(100, "more", "uM"), ""),
        (0.8, AssayLimit(0.8, "less"), AT_MOST),
        (0.81, AssayLimit(0.8, "less"), ""),
        (0.81, AssayLimit(0.8, "more"), AT_LEAST),
        (math.nan, AssayLimit(0.8, "less"), ""),
    ],
)
def test_a_prediction_near_a_limit_is_a_bound(value, limit, words):
    assert limit_words(value, limit, ASPIRIN) == words and limit_words(value, limit, None) == ""


def test_limits_in_uM_are_those_of_concentrations():
    cards = [read_card(resolve_model(name)) for name in shipped_tables()]
    endpoints = [known for card in cards for known in card.endpoints.values() if known.limit and known.limit.unit]
    assert endpoints and all(known.scale == "log10" and known.description.endswith("ug/mL") for known in endpoints)

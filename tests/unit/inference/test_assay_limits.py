"""Limits of assays, by hand."""

import math
import re

import pytest
from rdkit import Chem

from graphormer_sepnorm.inference.assay_limits import LIMIT, limit_words
from graphormer_sepnorm.runs.zoo import card_endpoints, shipped_tables

ASPIRIN = Chem.MolFromSmiles("CC(=O)Oc1ccccc1C(=O)O")  # 180.16 g/mol
AT_LEAST = "near the upper limit of the assay: read as at least"
AT_MOST = "near the lower limit of the assay: read as at most"


@pytest.mark.parametrize(
    ("value", "limit", "words"),
    [
        (math.log10(18.1), "100 uM or more", AT_LEAST),
        (math.log10(17.9), "100 uM or more", ""),
        (0.8, "0.8 or less", AT_MOST),
        (0.81, "0.8 or less", ""),
        (0.81, "0.8 or more", AT_LEAST),
        (0.5, "", ""),
        (math.nan, "0.8 or less", ""),
    ],
)
def test_a_prediction_near_a_limit_is_a_bound(value, limit, words):
    assert limit_words(value, limit, ASPIRIN) == words and limit_words(value, limit, None) == ""


def test_the_limits_of_all_cards_can_be_read():
    for facts in (facts for name in shipped_tables() for facts in card_endpoints(name).values() if "limit" in facts):
        found = LIMIT.fullmatch(facts["limit"])
        assert found is not None
        assert not found[2] or re.fullmatch("log10 of .+, ug/mL", facts["description"])

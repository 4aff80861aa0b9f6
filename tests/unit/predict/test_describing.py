"""Alerts, properties, units and limits of assays, by hand."""

import math

import numpy as np
import pytest
from rdkit import Chem

from graphormer_sepnorm.chem.features import read_molecules
from graphormer_sepnorm.chem.properties import PROPERTIES
from graphormer_sepnorm.options import Answers
from graphormer_sepnorm.output.columns import PredictionColumns
from graphormer_sepnorm.predict.describing import limit_words, measured_unit, measured_words, shown_unit
from graphormer_sepnorm.predict.predictors import Predictor
from graphormer_sepnorm.runs.zoo import AssayLimit, read_card, resolve_model, shipped_tables
from tests.tiny import tiny_model

QUINONE = "O=C1C=CC(=O)C=C1"
ASPIRIN = Chem.MolFromSmiles("CC(=O)Oc1ccccc1C(=O)O")  # 180.16 g/mol
AT_LEAST = "near the upper limit of the assay: read as at least"
AT_MOST = "near the lower limit of the assay: read as at most"


def test_columns_of_what_is_asked_for():
    model = Predictor([tiny_model()])
    names = {
        (True, False): ["logp", "alerts", "error"],
        (False, True): ["logp", *PROPERTIES, "error"],
        (True, True): ["logp", "alerts", *PROPERTIES, "error"],
    }
    plain = model.predict([QUINONE, "C[C"])
    for (alerts, properties), expected in names.items():
        columns = PredictionColumns(model, Answers(alerts=alerts, properties=properties))
        assert [column.name for column in columns.all] == expected
        found = columns.reader.compute(read_molecules("ogb", [QUINONE, "C[C"]))
        cells = dict(zip(expected, columns.cells(found, found.errors), strict=True))
        np.testing.assert_array_equal(cells["logp"], plain.values[:, 0])
        if alerts:
            assert cells["alerts"] == ["Brenk: chinone_1; PAINS_A: quinone_A(370)", ""]
        if properties:
            assert round(cells["MolWt"][0], 1) == 108.1 and np.isnan(cells["MolWt"][1])


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


@pytest.mark.slow
def test_limits_in_uM_are_those_of_concentrations():
    cards = [read_card(resolve_model(name)) for name in shipped_tables()]
    endpoints = [known for card in cards for known in card.endpoints.values() if known.limit and known.limit.unit]
    assert endpoints and all(known.scale == "log10" and known.description.endswith("ug/mL") for known in endpoints)


@pytest.mark.parametrize(
    ("scale", "description", "unit", "shown"),
    [
        ("log10", "log10 of clearance, mL/min/kg", "mL/min/kg", "mL/min/kg"),
        ("log10", "log10 of efflux ratio", "", ""),
        ("log10", "", "in the unit of the table", "in the unit of the table"),
        ("-log10 nM", "", "nM", "nM"),
        ("log10", "log10 of unbound fraction in human plasma, %", "%", "% unbound"),
        ("log10", "log10 of bound fraction in human plasma, %", "%", "% bound"),
        ("log10", "log10 of recovery, %", "%", "%"),
        ("log10", "log10 of dose bound, mg", "mg", "mg"),
    ],
)
def test_the_unit_is_that_of_the_description_or_the_scale(scale, description, unit, shown):
    assert (measured_unit(scale, description), shown_unit(scale, description)) == (unit, shown)


def test_a_logarithm_is_brought_back_with_its_interval():
    assert measured_words(1.0, "log10", "%") == "= 10.0 %"
    assert measured_words(1.0, "log10", "%", 0.5, 2.0) == "= 10.0 % (3.16 to 100)"
    assert measured_words(0.5, "log10", "") == "= 3.16"
    assert measured_words(7.0, "-log10 nM", "nM", 6.0, 8.0) == "= 100 nM (10.0 to 1,000)"

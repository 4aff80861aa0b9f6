"""Alerts and properties beside predictions."""

import numpy as np

from graphormer_sepnorm.chem.basic_properties import PROPERTIES
from graphormer_sepnorm.chem.features import read_molecules
from graphormer_sepnorm.output.columns import PredictionColumns
from graphormer_sepnorm.predict.answers import Answers
from graphormer_sepnorm.predict.predictors import Predictor
from tests.tiny import tiny_model

QUINONE = "O=C1C=CC(=O)C=C1"


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
        assert [column.name for column in columns.columns()] == expected
        found = columns.reader.compute(read_molecules("ogb", [QUINONE, "C[C"]))
        cells = dict(zip(expected, columns.cells(found, found.errors), strict=True))
        np.testing.assert_array_equal(cells["logp"], plain.values[:, 0])
        if alerts:
            assert cells["alerts"] == ["Brenk: chinone_1; PAINS_A: quinone_A(370)", ""]
        if properties:
            assert round(cells["MolWt"][0], 1) == 108.1 and np.isnan(cells["MolWt"][1])

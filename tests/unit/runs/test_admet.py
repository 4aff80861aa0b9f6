"""The shipped panel ``admet``."""

import io

import numpy as np
import pandas as pd
import pytest

from graphormer_sepnorm.options import Answers
from graphormer_sepnorm.output.predict_table import predict_table
from graphormer_sepnorm.runs.zoo import card_endpoints, resolve_model
from graphormer_sepnorm.table_model.load import load_model, load_predicting_model

ASPIRIN, LOPERAMIDE = "CC(=O)Oc1ccccc1C(=O)O", "CN(C)C(=O)C(CCN1CCC(O)(c2ccc(Cl)cc2)CC1)(c1ccccc1)c1ccccc1"


def test_the_card_describes_the_targets_of_the_model_in_their_order():
    found = card_endpoints(resolve_model("admet"))
    assert list(found) == list(load_predicting_model(["admet"]).targets) and len(found) == 43
    assert {facts["licence"] for facts in found.values()} == {"CC BY 4.0", "MIT", "public domain"}
    groups = list(dict.fromkeys(facts["group"] for facts in found.values()))
    assert groups == ["Physical chemistry", "Absorption", "Distribution", "Metabolism", "Excretion", "Toxicity"]
    assert all(facts["source"] and facts["trust"] and facts["molecules"] > 200 for facts in found.values())
    limits = {target: facts["limit"] for target, facts in found.items() if "limit" in facts}
    assert limits == {"Sol": "110 uM or more", "HLM": "0.8 or less", "RLM": "1.15 or less"}


def test_files_and_python_give_the_same_numbers(tmp_path):
    predict_table(load_predicting_model(["admet"]), [ASPIRIN, LOPERAMIDE], tmp_path / "out.csv")
    written = pd.read_csv(io.StringIO((tmp_path / "out.csv").read_text()))
    found = load_model("admet").predict([ASPIRIN, LOPERAMIDE])
    for name in found.select_dtypes("number"):
        np.testing.assert_allclose(written[name], found[name], rtol=1e-5, atol=1e-7)
    assert written.Sol_limit[0] == found.Sol_limit[0] == "near the upper limit of the assay: read as at least"
    chosen = load_model("admet").predict([LOPERAMIDE], endpoints=["hERG", "CYP3A4*"])
    for name in ("hERG", "CYP3A4_inhibitor", "CYP3A4_substrate"):
        assert chosen[name][0] == pytest.approx(found[name][1], abs=1e-5)
    assert "LogD" not in chosen and found.hERG[1] > 0.5 > found.hERG[0]
    drugs = found.filter(like="_drug_percentile")
    assert drugs.shape == (2, 43) and ((drugs >= 0) & (drugs <= 100)).all(axis=None)


def test_logarithms_below_zero_are_no_mistake(tmp_path):
    """All labels of CL_microsome are logarithms above 0; that of 0.7 uL/min/mg is below."""
    made = predict_table(load_predicting_model(["admet"]), [ASPIRIN], tmp_path / "out.csv", answers=Answers(0.9))
    assert set(made["below_zero"]) == {"PPB", "PPB_low"}

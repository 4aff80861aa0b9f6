import csv

import numpy as np
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference.predict import Predictor
from graphormer_sepnorm.inference.predict_table import predict_table
from tests.tiny import tiny_model


@pytest.fixture
def table(tmp_path):
    (tmp_path / "in.csv").write_text("error,smiles\nmine,CCO\nyours,C(\n")
    return tmp_path / "in.csv"


def first_row(path):
    return next(csv.DictReader(path.read_text().splitlines()))


def test_a_row_for_each_row_with_what_was_there(table, tmp_path):
    predictor = Predictor([tiny_model()])
    result = predict_table(predictor, str(table), tmp_path / "out.tsv")
    assert (result["rows"], result["unreadable"]) == (2, 1)
    header, first, second = csv.reader((tmp_path / "out.tsv").read_text().splitlines(), delimiter="\t")
    assert header == ["error", "smiles", "logp", "error_predicted"]
    assert first[:2] == ["mine", "CCO"] and np.isfinite(float(first[2])) and first[3] == ""
    assert second[:3] == ["yours", "C(", ""] and "not a valid SMILES" in second[3]


def test_several_models_give_mean_and_spread(table, tmp_path):
    models = [tiny_model(seed=seed) for seed in (0, 1)]
    alone = []
    for number, model in enumerate(models):
        predict_table(Predictor([model]), str(table), tmp_path / f"{number}.csv")
        alone.append(float(first_row(tmp_path / f"{number}.csv")["logp"]))
    predict_table(Predictor(models), str(table), tmp_path / "both.csv")
    row = first_row(tmp_path / "both.csv")
    assert float(row["logp"]) == pytest.approx(sum(alone) / 2, rel=1e-4)
    assert float(row["logp_std"]) > 0


def test_another_suffix_is_refused_before_anything_is_written(table, tmp_path):
    with pytest.raises(InputError, match=r"predictions are written as \.csv or \.tsv, not as '\.xlsx'"):
        predict_table(Predictor([tiny_model()]), str(table), tmp_path / "out.xlsx")
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]

"""A model of each format predicts what it predicted when it was saved."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from graphormer_sepnorm.table_model.load import load_model

SAVED = sorted(path.parent for path in (Path(__file__).parents[1] / "saved").glob("*/stack.safetensors"))
assert SAVED


@pytest.mark.slow
@pytest.mark.parametrize("folder", SAVED, ids=lambda folder: folder.name)
def test_a_saved_model_predicts_what_it_did(folder, tmp_path):
    expected = pd.read_csv(folder / "predicted.csv")
    model = load_model(folder)
    model.model.save(tmp_path)
    for loaded in (model, load_model(tmp_path)):
        found = loaded.predict(expected.smiles.tolist(), interval=0.5, domain=True)
        numbers = expected.columns[1:]
        np.testing.assert_allclose(found[numbers].astype(float), expected[numbers], rtol=1e-3, atol=1e-3)

"""Models by their names."""

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.domain import OTHER_CONDITIONS
from graphormer_sepnorm.runs.zoo import PRETRAINED
from graphormer_sepnorm.table_model.load import load_model, load_predicting_model
from tests.table_models import Trained


@pytest.mark.slow
def test_the_shipped_model_gives_logarithms_and_values_in_the_units_of_the_assays():
    found = load_model("adme").predict(["CC(=O)Oc1ccccc1C(=O)O"])
    for name in ("HLM", "MDR1_ER", "RLM", "Sol", "hPPB", "rPPB"):
        np.testing.assert_allclose(found[f"{name}_unlogged"], 10 ** found[name], rtol=1e-6)
    assert 10 < found.Sol_unlogged[0] < 100 and 0 < found.Sol[0] < 2


@pytest.mark.slow
def test_the_shipped_model_predicts_no_more_than_all_of_a_drug_unbound():
    atenolol, aspirin = "CC(C)NCC(O)COc1ccc(CC(N)=O)cc1", "CC(=O)Oc1ccccc1C(=O)O"
    found = load_model("adme").predict([atenolol, aspirin], interval=0.9)
    for name in ("hPPB", "rPPB"):
        assert found[name][0] == found[f"{name}_high"][0] == 2 and found[f"{name}_unlogged"][0] == 100
        assert found[name][1] < 2 and found[f"{name}_high"][1] <= 2 and (found[f"{name}_low"] < found[name]).all()
    assert found.rPPB_high[1] == 2 and found.HLM_high.max() > found.HLM.max()


@pytest.mark.parametrize("name", sorted(PRETRAINED))
def test_a_model_that_imitates_a_teacher_is_not_for_predicting(name):
    with pytest.raises(InputError, match=rf"^{name} imitates .*: fine-tune it with train FILE --from {name}, or write"):
        load_predicting_model([name])


@pytest.mark.slow
@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_a_table_of_another_library_is_read_by_its_columns(trained: Trained, library):
    kind = getattr(pytest.importorskip(library), {"polars": "DataFrame", "pyarrow": "table"}[library])
    columns = {"id": [1, 2, 3], "smiles": ["CCO", "C[C", "c1ccccc1O"]}
    model = load_model(trained.run.path)
    pd.testing.assert_frame_equal(model.predict(kind(columns)), model.predict(pd.DataFrame(columns)), check_dtype=False)
    with pytest.raises(InputError, match="name one with smiles_column='NAME'"):
        model.predict(kind({"a": [1], "b": ["x"]}))
    assert model.predict(kind(columns)["smiles"]).a.tolist() == pytest.approx(
        model.predict(columns["smiles"]).a, nan_ok=True
    )


@pytest.mark.slow
def test_the_nearest_row_of_a_molecule_is_the_one_under_its_conditions(conditioned):
    """A training molecule under its own conditions, and under a temperature that it was not measured at."""
    learnt = pd.read_csv(conditioned.path / "table.csv").query("split != 'test'").iloc[[0]]
    table = pd.DataFrame({"smiles": learnt.smiles, "T": learnt["condition T"], "assay": learnt["condition assay"]})
    table = pd.concat([table, table.assign(T=42.0)], ignore_index=True)
    found = load_model(conditioned.path).predict(table, domain=True)
    assert found.similarity.tolist() == [1, 1] and OTHER_CONDITIONS not in found.warning[0]
    assert OTHER_CONDITIONS in found.warning[1]


def test_molecules_come_as_smiles_as_molecules_or_in_a_table(trained: Trained):
    model = load_model(str(trained.run.path))
    found = model.predict(["CCO", Chem.MolFromSmiles("OCC"), None])
    assert list(found) == ["smiles", "a", "a_std", "error"] and found.smiles.isna().tolist() == [False, False, True]
    assert found.a[0] == pytest.approx(found.a[1], rel=1e-6) and np.isnan(found.a[2]) and found.error[2]
    indexed = model.predict(pd.DataFrame({"structure": ["CCO"]}, index=["x"]), smiles_column="structure")
    assert indexed.index.tolist() == ["x"] and indexed.a["x"] == pytest.approx(found.a[0], rel=1e-6)
    added = ["a_percentile", "nearest", "nearest_id", "nearest_a", "similarity", "cls_distance", "warning", "error"]
    assert list(model.predict([], domain=True)) == [*found.columns[:-1], *added]
    table = pd.DataFrame({"ID": [1, 2], "ROMol": [None, Chem.MolFromSmiles("OCC")]})  # as PandasTools names them
    assert [model.predict(table).a[1], model.predict([b"CCO"]).a[0]] == pytest.approx([found.a[0]] * 2, rel=1e-6)
    with pytest.raises(InputError, match="no column 'ID2'"):
        model.predict(table, smiles_column="ID2")


def test_columns_have_the_types_of_a_full_table_if_it_is_empty_or_unreadable(trained: Trained):
    model, types = load_model(trained.run.path), []
    for molecules in (["CCO", "C"], ["C(", None], [], pd.DataFrame({"smiles": []})):
        types.append(model.predict(molecules, domain=True, alerts=True).dtypes.map(str).to_dict())
    assert types == [types[0]] * 4 and types[0]["a"] == "float64" and types[0]["alerts"] == types[0]["error"]


def test_a_series_keeps_its_index_so_that_predictions_stay_with_their_molecules(trained: Trained):
    table = pd.DataFrame({"smiles": ["CCO", "c1ccccc1", "CCN"]}, index=[7, 3, 5])
    predict = load_model(trained.run.path).predict
    found = predict(table.smiles)
    assert found.index.tolist() == [7, 3, 5]
    np.testing.assert_array_equal(found.a, predict(table.smiles.tolist()).a)


@pytest.mark.slow
def test_python_explains_what_it_predicts(trained: Trained):
    model = load_model(trained.run.path)
    (found,) = model.explain([Chem.MolFromSmiles("Cc1ccccc1")])
    assert found.prediction == pytest.approx(model.predict(["Cc1ccccc1"]).a[0], rel=1e-5)
    assert {fragment.smiles for fragment in found.fragments} == {"C", "c1ccccc1"}
    with pytest.raises(InputError, match=r"row 1 .*not a valid SMILES"):
        model.explain(["C", "C(C"])
    with pytest.raises(InputError, match="unknown target 'x'"):
        model.explain(["C"], target="x")


@pytest.mark.slow
def test_what_python_gets_wrong_is_said(trained: Trained):
    model, network = load_model(str(trained.run.path)), load_model("zinc-subset")
    unknown, two = "the model has no information on its training", np.array([["C", "CC"]])
    for ask, message in (
        (lambda: model.predict(Chem.MolFromSmiles("C")), "give a list of molecules, not one molecule"),
        (lambda: model.predict({"C", "CC"}), "not set"),
        (lambda: model.predict(pd.DataFrame({"mol": ["C"]})), "name one with smiles_column='NAME'. Its columns: mol"),
        (lambda: model.predict({"smiles": ["CCO"]}), "pass a DataFrame, a Series or a list of SMILES, not dict$"),
        (lambda: model.predict(two), r"one column of SMILES, but the shape is \(1, 2\)$"),
        (lambda: model.predict(["CCO"], interval="0.9"), "^interval: give a number between 0 and 1, .* not '0.9'$"),
        (lambda: model.predict(["CCO"], domain="no"), "^domain: choose True or False, not 'no'$"),
        (lambda: model.predict(["CCO"], interval=0.9999), "choose one of at most"),
        (lambda: network.predict(["CCO"], interval=0.9), unknown),
        (lambda: load_model("zinc-subset", precision="fp16"), "'fp16', choose one of auto, float32, bfloat16"),
        (load_model, "name a model"),
    ):
        with pytest.raises(InputError, match=message):
            ask()
    pd.testing.assert_frame_equal(model.predict(np.array([["CCO"], ["C"]])), model.predict(["CCO", "C"]))
    assert model.predict([None, np.nan, 1.5]).error.str.contains("SMILES is missing|'1.5' is not").all()

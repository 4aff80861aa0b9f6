"""Which molecules of a library are suggested, by two tiny models."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem

from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.library import suggest as module
from graphormer_sepnorm.library.part_writer import PartOptions, Processes, Selection
from graphormer_sepnorm.library.run import predict_library
from graphormer_sepnorm.library.suggest import SuggestRequest, acquisition_of, suggest
from graphormer_sepnorm.predict.domain import fit_domain
from graphormer_sepnorm.predict.predictors import Predictor
from graphormer_sepnorm.predict.training_rows import TrainingRows
from graphormer_sepnorm.predict.trust import Trust
from tests.tables import records
from tests.tiny import Trusting, tiny_model
from tests.unit.library.test_run import written

__all__ = ["written"]


@pytest.fixture(scope="module")
def predictor() -> Predictor:
    """It has seen ethanol, of 1, and benzene, of 2."""
    trust = Trust(fit_domain(["CCO", "c1ccccc1"]), rows=TrainingRows.of(np.array([[1.0], [2]])).named(["e", "b"]))
    return Trusting([tiny_model(seed=seed) for seed in range(2)], trust=trust)


@pytest.fixture
def library(tmp_path):
    """Fifty molecules, some of them twice, those that were measured, and one that cannot be read."""
    smiles = [*sample_table().smiles[:50], "OCC", "C1=CC=CC=C1", "C[C", *sample_table().smiles[:5]]
    lines = "".join(f"m{number},{text}\n" for number, text in enumerate(smiles))
    (tmp_path / "library.csv").write_text("name,smiles\n" + lines)
    return str(tmp_path / "library.csv")


@pytest.mark.slow
@pytest.mark.parametrize("minimize", [False, True])
def test_the_most_promising_molecules_that_were_not_measured(written, predictor, library, tmp_path, minimize):
    out = tmp_path / "next.csv"
    request = SuggestRequest(5, "confidence-bound", minimize=minimize, kappa=0.5, distance=0)
    result = suggest(predictor, library, out, request)
    assert (result["suggested"], result["rows"], result["unreadable"], result["left_out"]) == (5, 58, 1, 7)
    found = predictor.predict(sample_table().smiles[:50].tolist())
    bound = found.values[:, 0] + (-0.5 if minimize else 0.5) * found.spread[:, 0]
    best = np.argsort(bound if minimize else -bound, kind="stable")[:5]
    rows = records(out)
    assert [row["name"] for row in rows] == [f"m{place}" for place in best]
    assert [row["rank"] for row in rows] == list("12345") and rows[0]["nearest_id"] in ("e", "b")
    assert float(rows[0]["confidence_bound"]) == pytest.approx(float(bound[best[0]]), rel=1e-5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["library.csv", "next.csv"]


@pytest.mark.slow
def test_what_was_begun_is_gone_on_with(predictor, library, tmp_path, monkeypatch):
    def killed(*arguments):
        raise KeyboardInterrupt

    for source in (library, str(tmp_path), str(tmp_path / "*.csv")):
        with pytest.raises(InputError, match="is the input: choose another output"):
            suggest(predictor, source, tmp_path / "library.csv", SuggestRequest(5), where=Processes(workers=1))
    out, request = tmp_path / "next.parquet", SuggestRequest(3)
    with monkeypatch.context() as patch:
        patch.setattr(module, "read_pool", killed)
        with pytest.raises(KeyboardInterrupt):
            suggest(predictor, library, out, request, where=Processes(workers=1))
    assert (tmp_path / "next.parquet.parts" / "top.parquet").exists()
    with monkeypatch.context() as patch:
        patch.setattr("graphormer_sepnorm.library.run.compute", killed)
        assert suggest(predictor, library, out, request, where=Processes(workers=1))["suggested"] == 3
    assert not (tmp_path / "next.parquet.parts").exists()


@pytest.mark.slow
@pytest.mark.parametrize("reason", ["unreadable", "other job", "damaged"])
def test_what_a_failed_call_leaves_hinders_no_other_one(written, predictor, library, tmp_path, reason):
    out = tmp_path / "next.csv"
    if reason == "unreadable":
        with pytest.raises(InputError, match="absent"):
            suggest(predictor, library, out, SuggestRequest(3), PartOptions(Selection(""), smiles_column="absent"))
        assert sorted(path.name for path in tmp_path.iterdir()) == ["library.csv"]
    else:
        other, options = Predictor([tiny_model(seed=2)]), PartOptions(Selection("logp"))
        predict_library(other, library, tmp_path / "next.csv.parts", options)
        if reason == "damaged":
            (tmp_path / "next.csv.parts" / "manifest.json").write_text("{")
    assert suggest(predictor, library, out, SuggestRequest(3))["suggested"] == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["library.csv", "next.csv"]


def test_molecules_that_the_model_cannot_judge_come_last(written, predictor, tmp_path):
    """Of what is not measured, only propanol and pentane have the size and elements of what is measured."""
    (tmp_path / "library.csv").write_text("smiles\nCCC[Pt]Cl\nCCCO\nOCC\nCCCCC\nCCCCCCCCC[Br]\n")
    for count, last in ((1, 0), (2, 0), (3, 1), (4, 2)):
        request = SuggestRequest(count)
        result = suggest(predictor, str(tmp_path / "library.csv"), tmp_path / "next.csv", request)
        rows = records(tmp_path / "next.csv")
        assert (result["put_last"], result["suggested_last"]) == (2, last) and len(rows) == count
        strange = ["No training molecule contains" in row["warning"] for row in rows]
        assert strange == [False] * min(count, 2) + [True] * last


def test_suggestions_unlike_all_training_molecules_are_counted(written, predictor, tmp_path, capsysbinary):
    """Ethanol and propanol are similar to each other, pyridine is like neither."""
    rows = TrainingRows.of(np.array([[1.0], [2], [3]])).named(["e", "p", "b"])
    model = Trusting(predictor.models, trust=Trust(fit_domain(["CCO", "CCCO", "CCCCO"]), rows=rows))
    (tmp_path / "library.csv").write_text("smiles\nCCCCCO\nc1ccncc1\n")
    result = suggest(model, str(tmp_path / "library.csv"), tmp_path / "next.csv", SuggestRequest(2))
    warnings = [row["warning"] for row in records(tmp_path / "next.csv")]
    warned = [text for text in warnings if "No training molecule is similar" in text]
    assert result["unlike"] == len(warned) == 1
    assert f"is {result['usual_similarity']:.3f} or more" in warned[0]
    suggest(model, str(tmp_path / "library.csv"), Path("-"), SuggestRequest(2), for_people=True)
    header, *lines = (line.split() for line in capsysbinary.readouterr().out.decode().splitlines())
    assert header == ["rank", "SMILES", "logp", "logp_std", "confidence_bound", "nearest_id", "similarity"]
    assert {line[1]: line[-2] for line in lines}["CCCCCO"] == "b" and all(len(line[-1]) == 4 for line in lines)
    suggest(model, str(tmp_path / "library.csv"), tmp_path / "next.xlsx", SuggestRequest(2), about=[("model", "mine")])
    workbook = pytest.importorskip("openpyxl").load_workbook(tmp_path / "next.xlsx")
    assert ("model", "mine") in workbook["About"].values


def test_molecules_are_known_however_they_are_written():
    """Also as another tautomer, which has another fingerprint."""
    domain = fit_domain(["CCO", "c1ccccc1", "Oc1ccccn1", "[Na+].CC(=O)[O-]", "F[Si](C)(C)c1cccs1"])
    for smiles in ("OCC", "C1=CC=CC=C1", "O=c1cccc[nH]1", "[O-]C(=O)C.[Na+]", "[SiH0](c1sccc1)(F)(C)C"):
        assert domain.knows(read_smiles(smiles)), smiles
    assert not any(domain.knows(read_smiles(smiles)) for smiles in ("CCCO", "CC(=O)O", "CC([2H])O"))


def test_measured_molecules_do_not_crowd_out_others(written, predictor, tmp_path, monkeypatch):
    """Ethanol and benzene are the best two rows, and two rows are looked at for one molecule."""
    monkeypatch.setattr(module, "LEAST_POOL", 1)
    monkeypatch.setattr(module, "POOL_PER_PICK", 1)
    values = predictor.predict(["CCO", "c1ccccc1", "CCN"]).values[:, 0]
    assert values.argmin() == 2 or values.argmax() == 2
    request = SuggestRequest(1, "prediction", minimize=bool(values.argmax() == 2))
    (tmp_path / "library.csv").write_text("smiles\nCCO\nc1ccccc1\nCCN\n")
    suggest(predictor, str(tmp_path / "library.csv"), tmp_path / "next.csv", request)
    assert [row["smiles"] for row in records(tmp_path / "next.csv")] == ["CCN"]


def test_each_file_of_a_library_has_its_own_column_of_molecules(written, predictor, tmp_path):
    """The molecules of an SDF are its structures, whatever its data items say and are called."""
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "a.csv").write_text("smiles,id\nCCN,1\n")
    (folder / "b.csv").write_text("SMILES;id\nCCCN;2\n")
    for name, smiles, item, said in (("c", "CCCCN", "smiles", "CCCCCC"), ("d", "CCCCCN", "SMILES", "")):
        with Chem.SDWriter(str(folder / f"{name}.sdf")) as writer:
            mol = Chem.MolFromSmiles(smiles)
            mol.SetProp(item, said)
            writer.write(mol)
    suggest(predictor, str(folder), tmp_path / "next.csv", SuggestRequest(4, distance=0))
    expected = predictor.predict(["CCN", "CCCN", "CCCCN", "CCCCCN"]).values[:, 0].tolist()
    found = [float(row[predictor.targets[0]]) for row in records(tmp_path / "next.csv")]
    assert sorted(found) == pytest.approx(sorted(expected), rel=1e-5)


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"best": 1.0}, "--best is for --by .*, not for --by confidence-bound"),
        ({"by": "prediction", "kappa": 2.0}, "--kappa is for --by .*, not for --by prediction"),
        ({"count": 0}, "-n 0"),
        ({"distance": 1.5}, "--distance 1.5"),
        ({"kappa": -1.0}, "--kappa -1"),
    ],
)
def test_wishes_that_make_no_sense_are_refused(wish, message):
    with pytest.raises(InputError, match=message):
        SuggestRequest(**{"count": 1, **wish})


def test_the_best_value_so_far_is_the_best_label(predictor):
    request = SuggestRequest(1, "expected-improvement")
    assert acquisition_of(predictor, request).best == 2
    assert acquisition_of(predictor, replace(request, minimize=True)).best == 1
    assert acquisition_of(predictor, replace(request, best=7.5)).best == 7.5
    assert acquisition_of(predictor, SuggestRequest(1, by="prediction")).by == "prediction"


def test_what_cannot_be_ranked_is_refused(predictor, tmp_path):
    two = Predictor([tiny_model(targets=("a", "b"), seed=seed) for seed in range(2)])
    classes = Predictor([tiny_model(kind="classification", seed=seed) for seed in range(2)])
    for model, request, message in (
        (two, SuggestRequest(1), "predicts a, b: choose one of them with --target"),
        (two, SuggestRequest(1, target="c"), "unknown target 'c', choose one of a, b"),
        (two, SuggestRequest(1, "expected-improvement", "a"), "name the best value so far with --best"),
        (Predictor([tiny_model()]), SuggestRequest(1), "needs a model that estimates its errors"),
        (classes, SuggestRequest(1), "rank probabilities with --by prediction"),
    ):
        with pytest.raises(InputError, match=message):
            acquisition_of(model, request)
    assert acquisition_of(two, SuggestRequest(1, "prediction", "B")).target == "b"
    with pytest.raises(InputError, match=r"not as '\.txt'"):
        suggest(predictor, "library.csv", tmp_path / "next.txt", SuggestRequest(1))


def test_a_library_that_is_not_utf8_is_named_once(predictor, tmp_path, capfd):
    path = tmp_path / "library.csv"
    path.write_bytes("name,smiles\ncaf\xe9,CCN\nb,CCCO\n".encode("latin-1"))
    suggest(predictor, str(path), tmp_path / "next.csv", SuggestRequest(1))
    assert capfd.readouterr().err.count("is not UTF-8") == 1

"""What the worker computes, with two tiny models."""

import numpy as np
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.web import service as module
from graphormer_sepnorm.interfaces.web.service import PredictionService, load_service
from tests.page import tiny_service
from tests.tiny import save_tiny

SMILES = ["CCO", "C[C", "[Xe]", "c1ccccc1O"]


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> PredictionService:
    return tiny_service(tmp_path_factory.mktemp("models"))


def test_facts(models):
    facts = models.facts()
    assert (facts.targets, facts.models, facts.confidence, facts.knows_domain) == (["logp"], 2, 0.9, True)


def test_answers_are_the_predictors(models):
    from graphormer_sepnorm.chem.features import read_molecules

    found = models.predictor.compute(read_molecules("mol", SMILES))
    answers = models.predict(SMILES)
    assert [bool(answer.error) for answer in answers] == [False, True, False, False]
    for row in (0, 2, 3):
        one = answers[row].predictions["logp"]
        assert (one.value, one.spread) == pytest.approx((found.values[row, 0], found.spread[row, 0]), rel=1e-5)
        half_width = models.trust.intervals.half_widths(0.9, found.spread[row : row + 1])[0, 0]
        assert (one.high - one.low) / 2 == pytest.approx(half_width, rel=1e-5)


def test_answers_say_what_was_never_seen(models):
    answers = models.predict(SMILES)
    assert "Xe was never seen" in answers[2].warning and answers[2].similarity < 0.1
    assert answers[1].similarity is None and answers[1].warning == answers[1].nearest == ""
    assert answers[0].nearest in models.trust.domain.smiles


def test_answers_name_alerts_and_properties(models):
    answers = models.predict(["O=C1C=CC(=O)C=C1", "C[C"])
    assert answers[0].alerts == "Brenk: chinone_1; PAINS_A: quinone_A(370)" and answers[1].alerts == ""
    assert round(answers[0].properties["MolWt"], 1) == 108.1 and answers[1].properties == {}


def test_salts_are_stripped_by_a_model_that_was_trained_so(tmp_path):
    plain, stripping = (
        load_service([str(save_tiny(tmp_path / name, featurizer=name))], 0.9, "cpu", "auto")
        for name in ("mol", "mol-without-salts")
    )
    (with_salt, without), (stripped, bare) = (found.predict(["CCO.[Na+].[Cl-]", "CCO"]) for found in (plain, stripping))
    assert with_salt.predictions != without.predictions
    assert stripped == bare
    assert len(stripping.atoms("CCO.[Na+].[Cl-]", "logp").atoms) == 3


def test_pictures(models):
    assert models.structure("CCO").lstrip().startswith("<?xml") and "</svg>" in models.structure("CCO")
    atoms = models.atoms("CCO", "logp")
    assert [atom.symbol for atom in atoms.atoms] == ["C", "C", "O"] and "</svg>" in atoms.picture
    total = atoms.baseline + sum(atom.contribution for atom in atoms.atoms)
    assert atoms.caption == f"logp = {total:.3g}" or np.isfinite(total)
    with pytest.raises(InputError, match="at most 200 are drawn"):
        models.structure("C" * 201)


def test_messages_about_a_table_have_the_users_name_for_it(models, tmp_path):
    path = tmp_path / "secret.csv"
    path.write_bytes("smiles".encode("utf-16"))
    with pytest.raises(InputError, match=r"^mine\.csv is UTF-16") as problem:
        models.read(path, "mine.csv", 10)
    assert str(tmp_path) not in str(problem.value)


def test_tables_are_read_as_predict_reads_them(models, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"id;smiles\n1;CC\n2\n\xe9;C\n")
    records = models.read(path, "a", 3)
    assert records.columns == ["id", "smiles"]
    assert [(row.fields[0], row.smiles, bool(row.error)) for row in records.rows] == [
        ("1", "CC", False), ("2", "", True), ("\udce9", "C", False),
    ]  # fmt: skip
    with pytest.raises(InputError, match="a has more than 2 molecules"):
        models.read(path, "a", 2)
    path.write_text("smiles\n")
    with pytest.raises(InputError, match="a has no molecules"):
        models.read(path, "a", 2)


def test_models_by_name(tmp_path, monkeypatch):
    save_tiny(tmp_path / "run", featurizer="mol", kind="classification", targets=("toxic", "sticky"))
    models = load_service([str(tmp_path / "run")], 0.9, "cpu", "auto")
    facts = models.facts()
    assert (facts.model, facts.targets, facts.is_probability, facts.models) == ("run", ["toxic", "sticky"], True, 1)
    assert facts.confidence is None and not facts.knows_domain
    assert "1 layers, width 16" in facts.about["architecture"] and str(tmp_path) not in str(facts)
    (answer,) = models.predict(["CC"])
    assert 0 < answer.predictions["sticky"].value < 1 and answer.predictions["sticky"].spread is None
    with pytest.raises(InputError, match="neither a run folder"):
        load_service(["nothing"], 0.9, "cpu", "auto")


def test_large_molecules_are_not_explained(models, monkeypatch):
    monkeypatch.setattr(module, "MOST_ATOMS_DRAWN", 2)
    with pytest.raises(InputError, match="3 atoms"):
        models.atoms("CCO", "logp")

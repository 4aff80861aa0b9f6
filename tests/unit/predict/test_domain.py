"""Similarity, distances and warnings by hand."""

import numpy as np
import pytest
from rdkit.DataStructs import BulkTanimotoSimilarity, CreateFromFPSText

from graphormer_sepnorm.chem.features import Molecules, read_molecules
from graphormer_sepnorm.chem.fingerprints import morgan_bits
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict import domain as domains
from graphormer_sepnorm.predict.domain import Domain, fit_domain, is_same_molecule
from graphormer_sepnorm.predict.subsets import subsets_of
from graphormer_sepnorm.predict.traits import strange, traits_of
from graphormer_sepnorm.system.files import CACHE_VARIABLE

SMALL = "The molecule has 1 heavy atom; training molecules have 3 to 13."
CHARGED = "The molecule has a charge of +1; training molecules have charges from -1 to 0."
SMILES = ["CCO", "CCN", "c1ccccc1C(=O)[O-]", "CC(=O)Oc1ccccc1C(=O)O"]


@pytest.fixture(scope="module")
def domain() -> Domain:
    return fit_domain(SMILES, np.array([[0.0, 0], [3, 4], [6, 8], [0, 1]]))


def test_similarity_by_hand(domain):
    """Of CCO, with 6 environments, CCCO has 4 of its 9: see the overlap of the two sets of bits."""
    ours, theirs = (set(morgan_bits(read_smiles(text)).GetOnBits()) for text in ("CCCO", "CCO"))
    smiles = ["CCCO", "OCC", "C[C", None, "OC(=O)c1ccccc1OC(C)=O"]
    found, rows, _ = domain.nearest_rows(smiles)
    assert found[0] == pytest.approx(len(ours & theirs) / len(ours | theirs))
    assert found[1] == found[4] == 1
    assert np.isnan(found[2:4]).all()
    assert rows.tolist() == [0, 0, -1, -1, 3]
    assert domain.warnings(smiles) == ["", "", "", "", ""]


def test_a_molecule_is_nearer_to_itself_than_to_its_stereoisomer():
    isomers = ["C[C@@H](O)C(=O)O", "C[C@H](O)C(=O)O", "CC(O)C(=O)O"]
    assert fit_domain(isomers).nearest_rows(isomers)[1].tolist() == [0, 1, 2]
    assert fit_domain(isomers[:2]).nearest_rows(isomers)[1].tolist() == [0, 1, 0]
    assert fit_domain(["CCO caf\udce9", "CC"]).nearest_rows(["CCO"])[0].tolist() == [1], "a name of any bytes"


def test_of_several_rows_of_a_molecule_the_one_under_its_conditions_is_the_nearest():
    domain = fit_domain(["CCO", "CCO", "CCN"])
    assert domain.nearest_rows(["OCC", "CCN"], lambda number, row: row == 1)[1].tolist() == [1, 2]
    assert domain.nearest_rows(["OCC"], lambda number, row: False)[1].tolist() == [0]
    similarity, rows, _ = domain.nearest_rows(["CCCO", "CCCO"], lambda number, row: row == number)
    assert rows.tolist() == [0, 1] and similarity[0] == similarity[1] < 1, "rows of another molecule"


def test_of_equal_fingerprints_the_nearest_has_as_many_heavy_atoms():
    """Chains of 12, 20 and 16 carbons have the same environments; the largest similarities of subsets are by hand."""
    domain = fit_domain(["C" * 12, "C" * 20, "C" * 16, "c1ccccc1"])
    similarity, rows, within = domain.nearest_rows(["C" * 19, "C" * 13], None, [np.array([0, 3]), np.array([3])])
    assert similarity.tolist() == [0.99, 0.99] and rows.tolist() == [1, 0]
    assert within.tolist() == [[1, 0], [1, 0]]
    assert domain.of_rows(np.array([0, 3])).atoms.tolist() == [6, 12]


def test_facts_on_the_molecules_of_each_endpoint_are_computed_once(domain, tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    rows = [np.array([0, 1]), np.array([0, 2, 3])]
    small, large = found = subsets_of(domain, rows)
    (file,) = tmp_path.iterdir()
    with monkeypatch.context() as patch:
        patch.delattr(Domain, "of_rows")
        assert subsets_of(domain, rows) == found
    benzoate = traits_of(read_smiles(SMILES[2]))
    assert strange(benzoate, small)[0] == "The molecule has 9 heavy atoms; training molecules have 3 to 3."
    assert strange(benzoate, large) == [] and large.usual_similarity == domain.of_rows(rows[1]).usual_similarity
    file.write_bytes(file.read_bytes()[:-9])
    assert subsets_of(domain, rows) == found, "a damaged file is replaced"


@pytest.mark.parametrize(
    ("smiles", "other", "same"),
    [
        ("OCC", "CCO", True),
        ("CCN.Cl", "CC[NH3+].[Cl-]", True),
        ("CCO", "CCN", False),
        ("C[C", "C[C", False),
        ("CCCCCCO.CCCCCCCCO", "CCCCCCCCO", False),
        ("CCCCCCO.CCCCCCCCO", "CCCCCCCCO.CCCCCCO", True),
    ],
)
def test_the_same_molecule_however_it_is_written(smiles, other, same):
    assert is_same_molecule(smiles, other) == same


@pytest.mark.parametrize(
    ("smiles", "warning"),
    [
        ("[Na+]", f"No training molecule contains Na. {SMALL} {CHARGED}"),
        ("CC[Pt](Cl)Cl", "No training molecule contains Cl or Pt."),
        ("C" * 335, "The molecule has 335 heavy atoms; training molecules have 3 to 13."),
        ("CCC[NH3+]", f"No training molecule contains N with a charge of +1. {CHARGED}"),
        ("[O-]C(=O)CC(=O)[O-]", "The molecule has a charge of -2; training molecules have charges from -1 to 0."),
        ("CCCO", ""),
        ("[2H]CCO", "No training molecule contains deuterium or another hydrogen drawn as an atom."),
        ("CCO.OCC.OC(=O)C", "The molecule is a salt or a mixture (CC(=O)O and CCO); no training molecule is one."),
    ],
)
def test_what_was_never_seen_is_warned_of(domain, smiles, warning):
    assert domain.warnings([smiles]) == [warning]


@pytest.mark.parametrize(
    ("smiles", "words"),
    [
        ("[CH2]C", "a radical"), ("CCO |^1:0|", "a radical"), ("[c]1ccccc1", "a radical"), ("C[NH+]C", "a radical"),
        ("CCO~CC", "a bond of unknown order"), ("C[C@H]1CCCC[C@H]1O |&1:1,6|", "relative stereo"),
    ],
)  # fmt: skip
def test_radicals_bonds_of_unknown_order_and_relative_stereo_are_warned_of(domain, smiles, words):
    assert words in domain.warnings([smiles])[0]
    assert words not in fit_domain([*SMILES, smiles]).warnings([smiles])[0]
    assert not any("radical" in text for text in domain.warnings(["CCO", "CC(=O)[O-].[Mn+2]", "C[N+](C)(C)C.[Cu]"]))


def test_a_molecule_that_lost_a_metal_is_warned_of(domain):
    molecules = read_molecules("mol-standardized", ["CCC(=O)O[Na]", "CCCCCO[Ti](OCCC)OCCC", "C["])
    assert domain.warnings_on(molecules) == ["", "Read as CCCCCO: standardization removed Ti and CCCO.", ""]
    assert domain.warnings_on(Molecules.of_graphs(molecules.graphs)) == ["", ""]


def test_a_model_that_learnt_from_salts_does_not_warn_of_parts():
    domain = fit_domain(["CCO", "CC(=O)[O-].[Na+]", "CCCCCC"])
    assert domain.warnings(["CCO.CCO"]) == [""]
    described = fit_domain(["CCO |(0.5,1.2,;1.3,0.7,;2.1,1.2,)|", "CCCCCC"])
    assert "is a salt or a mixture" in described.warnings(["CCO.CCO"])[0], "points of coordinates are no parts"


def test_no_training_molecule_is_strange():
    smiles = sample_table().smiles.tolist()[:100]
    found = fit_domain(smiles)
    assert set(found.warnings(smiles)) == {""} and (found.nearest_rows(smiles)[0] == 1).all()


def test_distances_by_hand(domain):
    found = domain.distance(np.array([[3.0, 0], [6, 8], [np.nan, 1], [1, -1]]))
    np.testing.assert_allclose(found, [3, 0, np.nan, 2**0.5], atol=1e-6)
    with pytest.raises(InputError, match="no embeddings"):
        fit_domain(SMILES).distance(np.zeros((1, 2)))


def test_of_many_training_molecules_some_are_kept_and_all_are_looked_at(monkeypatch):
    monkeypatch.setattr(domains, "MAX_REFERENCES", 2)
    found = fit_domain(["CCO", "CCBr", "CCCC"], np.arange(3.0)[:, None])
    assert found.bits.shape == (2, 256) and found.embeddings.tolist() == [[0], [2]]
    warning = "The molecule has 2 heavy atoms; training molecules have 3 to 4."
    assert found.warnings(["CBr", "CC(Br)C"]) == [warning, ""]


def similarities(domain: Domain) -> np.ndarray:
    """The similarity of each reference to the nearest other fingerprint."""
    references = [CreateFromFPSText(row.tobytes().hex()) for row in domain.bits]
    compared = np.array([BulkTanimotoSimilarity(one, references) for one in references])
    assert (np.array(list(domain.similarities(domain.bits))) == compared).all(), "as RDKit, to the last digit"
    return np.where(compared == 1, 0, compared).max(axis=1)


def test_a_molecule_less_similar_than_training_molecules_are_to_each_other_is_warned_of():
    smiles = sample_table().smiles[:200].tolist()
    domain = fit_domain(smiles)
    second = np.sort(similarities(domain))[1]  # of 200, one in a hundred is below
    assert domain.usual_similarity == second
    found = domain.add_unlike(["", "", "", "Odd."], np.array([second, second - 0.01, np.nan, second - 0.01]))
    sentence = found[1]
    assert found == ["", sentence, "", f"Odd. {sentence}"] and "No training molecule is similar" in sentence
    assert f"{second - 0.01:.3f}; " in sentence and f" {second:.3f} or more" in sentence


def test_the_usual_similarity_is_that_between_different_molecules():
    once, often = fit_domain(SMILES), fit_domain(SMILES * 5)
    assert once.usual_similarity == often.usual_similarity == similarities(once).min()
    assert fit_domain(["CCO", "OCC"]).usual_similarity == 0
    assert fit_domain(["CCO"]).add_unlike([""], np.array([0.0])) == [""]

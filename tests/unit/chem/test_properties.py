import numpy as np
import pytest
from rdkit import Chem

from graphormer_sepnorm.chem.properties import (
    PROPERTIES,
    basic_properties,
    excess_cycle_length,
    find_alerts,
    fragment_smiles,
    fragments,
    murcko_scaffold,
    penalized_logp,
)
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.datasets.benchmarks import sample_table
from tests.molecules import ODDITIES, REFUSED_BY_STRICT_RDKIT

# Counts of atoms by hand: the longest cycle minus six. Adamantane has only smallest rings of six atoms, but its cycle
# basis from the first atom contains one of eight.
CYCLES = {
    "CCO": 0, "C1CC1": 0, "C1CCCCC1": 0, "C1CCCCCC1": 1, "C1CCCCCCC1": 2, "c1ccc2ccccc2c1": 0, "c1ccc2c(c1)CCCCN2": 1,
    "C1CCCCCC1.C1CCCCCCCC1": 3, "C1C2CC3CC1CC(C2)C3": 2,
}  # fmt: skip

# Molecules of the ZINC benchmark's test split with their targets, the last one with the cage of adamantane.
ZINC_TARGETS = {
    "CC(C)(C)c1ccc2occ(CC(=O)Nc3ccccc3F)c2c1": 3.13991,
    "C[C@@H]1CC(Nc2cncc(-c3nncn3C)c2)C[C@@H](C)C1": 0.17239,
    "N#Cc1ccc(-c2ccc(O[C@@H](C(=O)N3CCCC3)c3ccccc3)cc2)cc1": 2.61842,
    "CNS(=O)(=O)c1cccc([C@@H](C)NC(=O)C23CC4CC(CC(C4)C2)C3)c1": -7.53751,
}


@pytest.mark.parametrize(("smiles", "excess"), CYCLES.items())
def test_excess_cycle_length_counts_the_atoms_above_six(smiles, excess):
    assert excess_cycle_length(read_smiles(smiles)) == excess


@pytest.mark.slow
def test_penalized_logp_of_benzene_by_hand():
    # Crippen: six aromatic CH, 6 * (0.1581 + 0.1230) = 1.6866; SA score at its lower bound, 1; no long cycle.
    # (1.6866 - 2.4570953) / 1.4343244 = -0.5371835
    # (-1 + 3.0525811) / 0.8335207 = 2.4625437
    # (0 + 0.0485697) / 0.2860212 = 0.1698115
    assert penalized_logp("c1ccccc1") == pytest.approx(-0.5371835 + 2.4625437 + 0.1698115, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("smiles", "target"), ZINC_TARGETS.items())
def test_penalized_logp_is_the_benchmark_target(smiles, target):
    assert penalized_logp(smiles) == pytest.approx(target, abs=1e-4)


@pytest.mark.parametrize(
    ("smiles", "scaffold"),
    [
        ("CCO", ""), ("Cc1ccccc1O", "c1ccccc1"), ("OC1CCC(CC1)c1ccncc1", "c1cc(C2CCCCC2)ccn1"),
        ("CC(=O)Nc1ccc(Cc2ccccc2)cc1", "c1ccc(Cc2ccccc2)cc1"), ("O=C(N[C@@H]1CCNC1)c1ccccc1", "O=C(NC1CCNC1)c1ccccc1"),
        ("Cc1ccc([B-2]2(c3ccc(C)cc3)=NCCO2)cc1", "c1ccc([B-2]2(c3ccccc3)=NCCO2)cc1"),
    ],
)  # fmt: skip
def test_murcko_scaffold(smiles, scaffold):
    assert murcko_scaffold(smiles) == scaffold


@pytest.mark.parametrize(
    ("smiles", "alerts"),
    [
        ("O=C1C=CC(=O)C=C1", ["Brenk: chinone_1", "PAINS_A: quinone_A(370)"]),
        ("CC(=O)Oc1ccccc1C(=O)O", ["Brenk: phenol_ester"]),
        ("CCO", []),
        ("O=N(=O)c1ccccc1.CCBr", ["Brenk: Oxygen-nitrogen_single_bond", "Brenk: alkyl_halide", "Brenk: nitro_group"]),
    ],
)
def test_alerts_of_known_molecules(smiles, alerts):
    assert find_alerts(Chem.MolFromSmiles(smiles)) == alerts


def test_aspirin_by_the_textbook():
    found = dict(zip(PROPERTIES, basic_properties(Chem.MolFromSmiles("CC(=O)Oc1ccccc1C(=O)O")), strict=True))
    assert round(found["MolWt"], 2) == 180.16 and round(found["TPSA"], 1) == 63.6
    assert (found["NumHDonors"], found["NumHAcceptors"], found["NumAromaticRings"]) == (1, 3, 1)
    assert found["FractionCSP3"] == 1 / 9 and 0 < found["QED"] < 1


def test_every_property_is_a_number_of_any_molecule():
    for smiles in ("[Na+]", "[H][H]", "*C", "C" * 300, "CC[Pt](Cl)Cl"):
        assert np.isfinite(basic_properties(Chem.MolFromSmiles(smiles))).all(), smiles


@pytest.mark.parametrize(
    ("smiles", "parts"),
    [
        ("CC(=O)Oc1ccccc1C(=O)O", ["CC=O", "O", "O=CO", "c1ccccc1"]),  # by BRICS
        ("Cc1ccccc1", ["C", "c1ccccc1"]),  # by rings: BRICS finds nothing
        ("C1CC1C1CC1", ["C1CC1", "C1CC1"]), ("c1ccc2ccccc2c1", ["c1ccc2ccccc2c1"]), ("CCCC", ["CCCC"]), ("C", ["C"]),
        ("[Na+].CC(=O)[O-]", ["CC(=O)[O-]", "[Na+]"]),
    ],
)  # fmt: skip
def test_fragments_by_hand(smiles, parts):
    mol = Chem.MolFromSmiles(smiles)
    assert sorted(fragment_smiles(mol, atoms) for atoms in fragments(mol)) == parts


def test_each_atom_is_in_one_fragment():
    for smiles in [*sample_table().smiles[:100], *ODDITIES.values(), *REFUSED_BY_STRICT_RDKIT]:
        mol = read_smiles(smiles)
        assert sorted(atom for atoms in fragments(mol) for atom in atoms) == list(range(mol.GetNumAtoms())), smiles

"""The fast descriptors."""

import hashlib

import numpy as np
from rdkit.Chem import Crippen, Descriptors

from graphormer_sepnorm.chem.fast_descriptors import VERSIONS, WIDTH, fast_descriptors
from graphormer_sepnorm.chem.smiles import read_smiles


def test_descriptors_agree_with_rdkit():
    mol = read_smiles("CC(=O)Nc1ccc(O)cc1")
    (row,) = fast_descriptors([mol])
    assert row.dtype == np.float32 and len(row) == WIDTH
    assert row[0] == np.float32(Descriptors.ExactMolWt(mol)) and row[1] == 11
    assert np.float32(Crippen.MolLogP(mol)) in row
    surfaces = [Descriptors.SlogP_VSA1(mol), Descriptors.SMR_VSA1(mol), Descriptors.PEOE_VSA1(mol)]
    np.testing.assert_array_equal(row[[-36, -24, -14]], np.float32(surfaces))


def test_each_molecule_has_its_row():
    rows = fast_descriptors(["CCO", "[Na+].[Cl-]", "C[Pt]C", "OCC"])
    np.testing.assert_allclose(rows[0], rows[3], rtol=1e-6)
    assert not np.isinf(rows).any()
    assert fast_descriptors([]).shape == (0, WIDTH)


def test_a_version_never_changes():
    """Models have learnt its values and their order: what a changed function computes is a new version."""
    values = np.round(fast_descriptors(["C[C@H](N)C(=O)Nc1ccc(Cl)c(S(=O)(=O)N2CCOCC2)c1", "CC1CO1"]), 3) + 0.0
    digest = hashlib.sha256(values.astype(np.float32).tobytes()).hexdigest()[:8]
    assert {VERSIONS[-1]: digest} == {"descriptors 1": "3c03339a"}

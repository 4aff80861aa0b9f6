import pytest
from ogb.utils.features import (
    allowable_features,
    atom_to_feature_vector,
    bond_to_feature_vector,
    get_atom_feature_dims,
    get_bond_feature_dims,
)
from rdkit import Chem

from graphormer_sepnorm.chem import vocabularies as ogb
from graphormer_sepnorm.chem.features import OGB_ATOM_SIZES, OGB_BOND_SIZES, ogb_atom, ogb_bond
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.errors import InputError
from tests.molecules import ODDITIES, REFUSED_BY_STRICT_RDKIT


def test_vocabularies_are_those_of_ogb():
    assert list(OGB_ATOM_SIZES) == get_atom_feature_dims() and list(OGB_BOND_SIZES) == get_bond_feature_dims()
    for ours, name in (
        (ogb.OGB_CHIRAL_TAGS, "possible_chirality_list"),
        (ogb.OGB_HYBRIDIZATIONS, "possible_hybridization_list"),
        (ogb.OGB_ORDERS, "possible_bond_type_list"),
    ):
        assert [*ours, "misc"] == allowable_features[name]
    assert list(ogb.OGB_STEREO) == allowable_features["possible_bond_stereo_list"]


@pytest.mark.parametrize(
    "smiles",
    [
        *ODDITIES.values(),
        *REFUSED_BY_STRICT_RDKIT,
        *("*", "[C-5]", "[C-6]", "[C+6]", "[FeH9]", "[U](F)(F)(F)(F)(F)F", "[Co@OH9]", "F/C=C\\F", "[NH3]->[Fe]"),
    ],
)
def test_features_are_those_of_ogb(smiles):
    mol = read_smiles(smiles)
    assert [ogb_atom(atom) for atom in mol.GetAtoms()] == [atom_to_feature_vector(atom) for atom in mol.GetAtoms()]
    assert [ogb_bond(bond) for bond in mol.GetBonds()] == [bond_to_feature_vector(bond) for bond in mol.GetBonds()]


def test_stereo_outside_ogbs_vocabulary_is_refused():
    mol = Chem.MolFromSmiles("CC")
    bond = mol.GetBondWithIdx(0)
    bond.SetStereo(Chem.BondStereo.STEREOATROPCW)
    with pytest.raises(InputError, match="bond stereo atropcw is not in this model's vocabulary"):
        ogb_bond(bond)

"""Properties of molecules, their parts and alerts, and the keys that identify them."""

import re
from collections.abc import Callable
from functools import cache

import numpy as np
from rdkit import Chem
from rdkit.Chem import QED, Descriptors
from rdkit.Chem.FilterCatalog import FilterCatalog, FilterCatalogParams
from rdkit.Contrib.SA_Score import sascorer

from graphormer_sepnorm.chem.smiles import molecule_of, one_molecule, smiles_of
from graphormer_sepnorm.chem.standardize import constitution_of, neutral_parent
from graphormer_sepnorm.errors import InputError

# Of logP, of the negative SA score and of the negative excess cycle length.
MEANS = 2.4570953396190123, -3.0525811293166134, -0.0485696876403053
DEVIATIONS = 1.434324401111988, 0.8335207024513095, 0.2860212110245455
INCHI_KEY = re.compile(r"[A-Z]{14}-[A-Z]{10}(?![^- ])")
PROTONATION = re.compile(r"(?<=^.{25})-[A-Z](?=$| )")  # of an InChIKey, its last letter
BOND_OF_RING = Chem.MolFromSmarts("[R]-!@*")
CATALOGS = ("PAINS", "BRENK")
NAMES = (
    "MolWt", "MolLogP", "TPSA", "NumHDonors", "NumHAcceptors", "NumRotatableBonds", "NumAromaticRings", "FractionCSP3",
)  # fmt: skip
PROPERTIES: dict[str, Callable[[Chem.Mol], float]] = {name: getattr(Descriptors, name) for name in NAMES}
PROPERTIES |= {"QED": QED.qed}


def penalized_logp(mol_or_smiles: Chem.Mol | str) -> float:
    """ZINC's target (Jin et al. 2018): Crippen's logP minus Ertl's SA score minus excess cycle length, normalized."""
    mol = molecule_of(mol_or_smiles)
    if mol.GetNumAtoms() == 0:
        raise InputError("A molecule without atoms has no penalized logP.")
    with one_molecule():
        terms = PROPERTIES["MolLogP"](mol), -sascorer.calculateScore(mol), -excess_cycle_length(mol)
    return sum((term - mean) / deviation for term, mean, deviation in zip(terms, MEANS, DEVIATIONS, strict=True))


def excess_cycle_length(mol: Chem.Mol) -> int:
    """The longest cycle of Paton's (1969) basis from the first atom beyond six; adamantane has two."""
    import networkx  # its import takes a while

    graph = networkx.Graph()
    graph.add_nodes_from(reversed(range(mol.GetNumAtoms())))  # a basis begins at the last one
    graph.add_edges_from(sorted(sorted((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx())) for bond in mol.GetBonds()))
    return max([0, *(len(cycle) - 6 for cycle in networkx.cycle_basis(graph))])


def murcko_scaffold(mol_or_smiles: Chem.Mol | str) -> str:
    """The canonical SMILES, without stereo, of the Bemis-Murcko scaffold (1996); "" without rings."""
    mol = molecule_of(mol_or_smiles)
    with one_molecule(mol_or_smiles if isinstance(mol_or_smiles, str) else ""):
        scaffold = Chem.MurckoDecompose(with_implied_hydrogens(mol))
        scaffold.ClearComputedProps()
        scaffold.UpdatePropertyCache(strict=False)
        Chem.GetSymmSSSR(scaffold)
        return Chem.MolToSmiles(scaffold, isomericSmiles=False)


def with_implied_hydrogens(mol: Chem.Mol) -> Chem.Mol:
    """A copy in which hydrogens are implicit wherever SMILES allows it, regardless of how the molecule was written."""
    mol = Chem.Mol(mol)
    valence = Chem.GetPeriodicTable().GetDefaultValence
    for atom in mol.GetAtoms():
        needs_brackets = (
            atom.GetFormalCharge()
            or atom.GetNumRadicalElectrons()
            or atom.GetChiralTag() != Chem.ChiralType.CHI_UNSPECIFIED
            or (atom.GetIsAromatic() and atom.GetAtomicNum() != 6)
        )
        if atom.GetNoImplicit() and not needs_brackets and atom.GetTotalValence() == valence(atom.GetAtomicNum()):
            atom.SetNumExplicitHs(0)
            atom.SetNoImplicit(False)
    mol.UpdatePropertyCache(strict=False)
    return mol


def molecule_key(mol_or_smiles: Chem.Mol | str) -> str:
    """The standard InChIKey, with relative stereo behind it; without one, as for a wildcard, the canonical SMILES."""
    mol = molecule_of(mol_or_smiles)
    with one_molecule(mol_or_smiles if isinstance(mol_or_smiles, str) else ""):
        smiles, *extension = smiles_of(mol).split()  # of racemic and relative stereo, which InChI does not know
        return " ".join([Chem.MolToInchiKey(mol) or smiles, *extension])


def parent_key(mol: Chem.Mol, key: str) -> str:
    """The InChIKey of a molecule's ``neutral_parent``, the same for its salts; ``key`` is its ``molecule_key``."""
    part = neutral_parent(mol)
    return PROTONATION.sub("", key if part is mol else molecule_key(part))


def family_of(parent: str) -> str:
    """The same text for all stereoisomers and isotopologues of a molecule with this ``parent_key``."""
    return parent[:14] if INCHI_KEY.match(parent) else constitution_of(parent.partition(" ")[0])


def basic_properties(mol: Chem.Mol) -> np.ndarray:
    """The ``PROPERTIES`` of a molecule: float64 [P]; raises InputError if RDKit fails."""
    with one_molecule():
        return np.array([compute(mol) for compute in PROPERTIES.values()], np.float64)


@cache
def alert_catalog() -> FilterCatalog:
    """Sources: PAINS by Baell and Holloway, J. Med. Chem. 2010; BRENK by Brenk et al., ChemMedChem 2008."""
    chosen = FilterCatalogParams()
    for name in CATALOGS:
        chosen.AddCatalog(getattr(FilterCatalogParams.FilterCatalogs, name))
    return FilterCatalog(chosen)


def find_alerts(mol: Chem.Mol) -> list[str]:
    """The alerts of a molecule, each as catalog and name, for example "PAINS_A: quinone_A(370)"."""
    with one_molecule():
        matches = alert_catalog().GetMatches(mol)
        return sorted({f"{entry.GetProp('FilterSet')}: {entry.GetDescription()}" for entry in matches})


def fragments(mol: Chem.Mol) -> list[tuple[int, ...]]:
    """The atoms of each fragment, each in one. BRICS: Degen et al., ChemMedChem 2008; else rings and substituents."""
    from rdkit.Chem import BRICS  # its import takes a while

    with one_molecule():
        ends = [atoms for atoms, _ in BRICS.FindBRICSBonds(mol)] or mol.GetSubstructMatches(BOND_OF_RING)
        bonds = [mol.GetBondBetweenAtoms(*atoms).GetIdx() for atoms in ends]
        return list(Chem.GetMolFrags(Chem.FragmentOnBonds(mol, bonds, addDummies=False) if bonds else mol))


def fragment_smiles(mol: Chem.Mol, atoms: tuple[int, ...]) -> str:
    """A fragment as SMILES; raises InputError if RDKit fails."""
    with one_molecule():
        return Chem.MolFragmentToSmiles(mol, atomsToUse=list(atoms))

"""Properties of molecules, their parts and alerts, and the keys that identify them."""

import re
from collections.abc import Callable
from functools import cache

import numpy as np
from rdkit import Chem
from rdkit.Chem import QED, rdMolDescriptors
from rdkit.Chem.FilterCatalog import FilterCatalog, FilterCatalogParams
from rdkit.Contrib.SA_Score import sascorer

from graphormer_sepnorm.chem.smiles import molecule_of, one_molecule, smiles_of
from graphormer_sepnorm.chem.standardize import constitution_of, neutral_parent
from graphormer_sepnorm.errors import InputError

LOGP_MEAN, LOGP_STD = 2.4570953396190123, 1.434324401111988
NEGATIVE_SA_MEAN, NEGATIVE_SA_STD = -3.0525811293166134, 0.8335207024513095
INCHI_KEY = re.compile(r"[A-Z]{14}-[A-Z]{10}(?![^- ])")
PROTONATION = re.compile(r"(?<=^.{25})-[A-Z](?=$| )")  # of an InChIKey, its last letter
NEGATIVE_CYCLE_MEAN, NEGATIVE_CYCLE_STD = -0.0485696876403053, 0.2860212110245455
BOND_OF_RING = Chem.MolFromSmarts("[R]-!@*")
CATALOGS = ("PAINS", "BRENK")
PROPERTIES: dict[str, Callable[[Chem.Mol], float]] = {
    "MolWt": rdMolDescriptors._CalcMolWt,
    "MolLogP": lambda mol: rdMolDescriptors.CalcCrippenDescriptors(mol)[0],
    "TPSA": rdMolDescriptors.CalcTPSA,
    "NumHDonors": rdMolDescriptors.CalcNumHBD,
    "NumHAcceptors": rdMolDescriptors.CalcNumHBA,
    "NumRotatableBonds": rdMolDescriptors.CalcNumRotatableBonds,
    "NumAromaticRings": rdMolDescriptors.CalcNumAromaticRings,
    "FractionCSP3": rdMolDescriptors.CalcFractionCSP3,
    "QED": QED.qed,
}


def penalized_logp(mol_or_smiles: Chem.Mol | str) -> float:
    """ZINC's target (Jin et al. 2018): Crippen's logP minus Ertl's SA score minus excess cycle length, normalized."""
    mol = molecule_of(mol_or_smiles)
    if mol.GetNumAtoms() == 0:
        raise InputError("A molecule without atoms has no penalized logP.")
    with one_molecule():
        logp, _ = rdMolDescriptors.CalcCrippenDescriptors(mol)
        sa_score = sascorer.calculateScore(mol)
    return (
        (logp - LOGP_MEAN) / LOGP_STD
        + (-sa_score - NEGATIVE_SA_MEAN) / NEGATIVE_SA_STD
        + (-excess_cycle_length(mol) - NEGATIVE_CYCLE_MEAN) / NEGATIVE_CYCLE_STD
    )


def excess_cycle_length(mol: Chem.Mol) -> int:
    """The longest cycle of Paton's (1969) basis beyond six, as in ``networkx.cycle_basis``; adamantane has two."""
    neighbors = [sorted(other.GetIdx() for other in atom.GetNeighbors()) for atom in mol.GetAtoms()]
    parent: dict[int, int] = {}
    linked: dict[int, set[int]] = {}
    longest = 0
    for root in range(len(neighbors)):
        if root in linked:
            continue
        parent[root], linked[root], stack = root, set(), [root]
        while stack:
            atom = stack.pop()
            for other in neighbors[atom]:
                if other not in linked:
                    parent[other], linked[other] = atom, {atom}
                    stack.append(other)
                elif other not in linked[atom]:
                    ancestor, length = parent[atom], 3
                    while ancestor not in linked[other]:
                        ancestor, length = parent[ancestor], length + 1
                    linked[other].add(atom)
                    longest = max(longest, length)
    return max(longest - 6, 0)


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
        key = Chem.MolToInchiKey(mol)
        if not mol.GetStereoGroups():
            return key or Chem.MolToSmiles(mol)
        smiles, extension = smiles_of(mol).split()  # of racemic and relative stereo, which InChI does not know
        return f"{key or smiles} {extension}"


def parent_key(mol: Chem.Mol, key: str) -> str:
    """The InChIKey of a molecule's ``neutral_parent``, the same for its salts; ``key`` is its ``molecule_key``."""
    part = neutral_parent(mol)
    parent = key if part is mol else molecule_key(part)
    return PROTONATION.sub("", parent)


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

"""Forms of one molecule: python -m tests.fuzz.forms --count N --seed S."""

import functools
import gzip
import os
import random
from pathlib import Path

from rdkit import Chem

from graphormer_sepnorm.chem.properties import family_of, molecule_key, parent_key
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.chem.standardize import NUM_KINDS, is_usual, listed_parts, parent_part
from graphormer_sepnorm.datasets.benchmarks import sample_table
from tests.fuzz.edits import run
from tests.salts import ACIDS, BASES

NO_DRUGS = [text for text, kind, _ in listed_parts() if kind < NUM_KINDS - 1]
PARTS = (*NO_DRUGS, "Cl", "[Cl-]", "Br", "[Na+]", "[K+]", "[Ca+2]", "O", "[NH4+]")
METALS = ("Na", "K", "Li")


@functools.cache
def seeds() -> tuple[str, ...]:
    """The sample's molecules; all of ZINC where its file is named by FUZZED_SMILES (gzipped, one per line)."""
    if path := os.environ.get("FUZZED_SMILES"):
        lines = gzip.decompress(Path(path).read_bytes()).decode().splitlines()[1:]
        return tuple(line.split(",")[0] for line in lines)
    return tuple(sample_table().smiles[:2000])


def family(smiles: str) -> str:
    mol = read_smiles(smiles)
    return family_of(parent_key(mol, molecule_key(mol)))


def with_counter_ions(smiles: str, rng: random.Random) -> str:
    """A salt or a solvate of a molecule, in any order of parts."""
    parts = [smiles, *rng.choices(PARTS, k=rng.choice((1, 1, 1, 2, 3)))]
    rng.shuffle(parts)
    return ".".join(parts)


def with_other_stereo(smiles: str, rng: random.Random) -> str:
    """Without stereo, as the mirror image, or with one centre inverted."""
    mol = Chem.MolFromSmiles(smiles)
    centres = [atom for atom in mol.GetAtoms() if atom.GetChiralTag() != Chem.ChiralType.CHI_UNSPECIFIED]
    kind = rng.choice(("flat", "mirror", "one"))
    if kind == "flat" or not centres:
        Chem.RemoveStereochemistry(mol)
    for atom in centres if kind == "mirror" else rng.sample(centres, 1) if kind == "one" and centres else ():
        atom.InvertChirality()
    return Chem.MolToSmiles(mol)


def with_isotope(smiles: str, rng: random.Random) -> str:
    mol = Chem.MolFromSmiles(smiles)
    rng.choice([atom for atom in mol.GetAtoms() if atom.GetAtomicNum() == 6]).SetIsotope(13)
    return Chem.MolToSmiles(mol)


def has_charge_at(atom: Chem.Atom) -> bool:
    """Whether an atom or a neighbour is charged, as in an ylide, which is no salt."""
    return any(each.GetFormalCharge() for each in (atom, *atom.GetNeighbors()))


def with_charge(smiles: str, rng: random.Random) -> str:
    """Without the proton of an acid, whose place a metal may take, or with one at a base; as it is without either."""
    mol = Chem.RWMol(Chem.MolFromSmiles(smiles))
    patterns, charge = rng.choice(((ACIDS[:1], -1), (BASES[:1], 1)))
    found = [place for pattern in patterns for place, *_ in mol.GetSubstructMatches(Chem.MolFromSmarts(pattern))]
    found = [place for place in found if not has_charge_at(mol.GetAtomWithIdx(place))]
    if not found:
        return smiles
    atom = mol.GetAtomWithIdx(rng.choice(found))
    if charge < 0 and rng.random() < 0.5:
        mol.AddBond(atom.GetIdx(), mol.AddAtom(Chem.Atom(rng.choice(METALS))), Chem.BondType.SINGLE)
    else:
        atom.SetFormalCharge(charge)
    mol.UpdatePropertyCache()
    return Chem.MolToSmiles(mol)


FORMS = (with_counter_ions, with_other_stereo, with_isotope, with_charge)


def try_one(rng: random.Random) -> str:
    return check_forms(rng.choice(seeds()), rng)


def check_forms(smiles: str, rng: random.Random) -> str:
    """Makes up to three forms of a molecule, one of the other, which must be of its family; and a salt of it."""
    if is_usual(read_smiles(smiles)):
        return "counter-ion"
    forms = [smiles]
    for form in rng.choices(FORMS[1:], k=3):
        forms.append(form(forms[-1], rng))
    forms.append(with_counter_ions(forms[-1], rng))
    assert {family(text) for text in forms} == {family(smiles)}, forms
    salt = with_counter_ions(smiles, rng)
    assert Chem.MolToSmiles(parent_part(read_smiles(salt))) == Chem.MolToSmiles(read_smiles(smiles)), salt
    return "one family"


if __name__ == "__main__":
    run(try_one)

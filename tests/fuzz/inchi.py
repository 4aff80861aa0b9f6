"""InChI of mutated SMILES: python -m tests.fuzz.inchi --count N --seed S."""

import random

from rdkit import Chem, rdBase

from graphormer_sepnorm.chem.smiles import guess, read_smiles
from graphormer_sepnorm.errors import InputError
from tests.fuzz.edits import edited, random_edits, run
from tests.fuzz.smiles import TOKENS, refused_in_words, seeds


def written_as_inchi(smiles: str) -> str:
    """Reads a SMILES from its InChI: the form may be another one, and has the InChI that RDKit's form has."""
    with rdBase.BlockLogs():
        try:
            mol = read_smiles(smiles)
        except InputError:
            return "refused"
        if not (inchi := Chem.MolToInchi(mol)):
            return "refused"
        with refused_in_words():
            found = read_smiles(inchi)
            assert Chem.MolToInchi(found) == Chem.MolToInchi(Chem.MolFromInchi(inchi)), inchi
            if Chem.MolToSmiles(found) == Chem.MolToSmiles(mol):
                return "same"
            return "guess" if guess(inchi) else "usual"
    return "refused"


def try_one(rng: random.Random) -> str:
    smiles = rng.choice(seeds())
    return written_as_inchi(edited(smiles, random_edits(rng, TOKENS)) if rng.random() < 0.5 else smiles)


if __name__ == "__main__":
    run(try_one)

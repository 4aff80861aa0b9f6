"""Writes the structures that a body is pre-trained on: each molecule once, and none that a score is measured on.

    python data/make_corpus.py corpus.smi --take b3db.csv --take molhiv.csv --take zinc.csv --hold esol.csv

Of a table with a column ``split`` its rows of ``train`` are taken, and its other rows are held back; of another one all
rows are taken. All rows of the tables behind ``--hold`` are held back. Molecules are the same if the first blocks of
their InChIKeys are: whatever their stereochemistry and, as a rule, their protonation.
"""

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from rdkit import Chem, rdBase

from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system.files import write_atomically

MIN_ATOMS, MAX_ATOMS = 2, 100
SEED = 0


def read(smiles: str) -> tuple[str, str] | None:
    """The first block of a molecule's InChIKey and its canonical SMILES; None for one that is not taken."""
    try:
        mol = read_smiles(smiles)
    except InputError:
        return None
    if not MIN_ATOMS <= mol.GetNumAtoms() <= MAX_ATOMS:
        return None
    with rdBase.BlockLogs():
        key = Chem.MolToInchiKey(mol).partition("-")[0]
    return (key, Chem.MolToSmiles(mol)) if key else None


def parts(table: pd.DataFrame) -> tuple[list[str], list[str]]:
    """The SMILES of a table to take and those to hold back."""
    if "split" not in table:
        return table.smiles.tolist(), []
    taken = table.split == "train"
    return table.smiles[taken].tolist(), table.smiles[~taken].tolist()


def molecules(taken: list[str], held: list[str]) -> Iterator[str]:
    """Canonical SMILES of the molecules to take, in random order, each once and none that is held back."""
    seen = {found[0] for found in map(read, held) if found}
    for found in map(read, random.Random(SEED).sample(taken, len(taken))):
        if found and found[0] not in seen:
            seen.add(found[0])
            yield found[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="file to write, a SMILES per line")
    parser.add_argument("--take", type=Path, action="append", required=True, help="table with a column smiles")
    parser.add_argument("--hold", type=Path, action="append", default=[], help="table with a column smiles")
    arguments = parser.parse_args()
    taken, held = map(sum, zip(*(parts(pd.read_csv(path)) for path in arguments.take), strict=True), ([], []))
    held += [smiles for path in arguments.hold for smiles in pd.read_csv(path).smiles]
    write_atomically(arguments.out, "".join(f"{smiles}\n" for smiles in molecules(taken, held)).encode())


if __name__ == "__main__":
    main()

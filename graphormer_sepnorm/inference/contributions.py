"""Contributions of atoms and fragments as a table."""

from pathlib import Path

from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.inference.explain import Explanation
from graphormer_sepnorm.system.files import write_atomically
from graphormer_sepnorm.tables.writers import as_csv

HEADER = ["row", "name", "smiles", "prediction", "meaning", "baseline", "part", "structure", "atoms", "contribution"]


def write_contributions(out: Path, explanations: dict[int, Explanation]) -> None:
    """Writes a CSV with one line per atom and per fragment; rows and atoms (in SMILES order) are counted from 1.

    Raises:
        InputError: the file cannot be written.
    """
    lines = [line for row, explanation in explanations.items() for line in lines_of(row + 1, explanation)]
    write_atomically(out, as_csv([HEADER, *lines]))


def lines_of(row: int, explanation: Explanation) -> list[list]:
    """The lines of one molecule."""
    baseline = "" if explanation.baseline is None else f"{explanation.baseline:.7g}"
    begin = [row, explanation.name, explanation.smiles, f"{explanation.prediction:.7g}", explanation.meaning, baseline]
    atoms = zip(read_smiles(explanation.smiles).GetAtoms(), explanation.contributions.tolist(), strict=True)
    lines = [["atom", atom.GetSymbol(), atom.GetIdx() + 1, f"{value:.7g}"] for atom, value in atoms]
    for each in explanation.fragments:
        numbers = " ".join(str(atom + 1) for atom in each.atoms)
        lines.append(["fragment", each.smiles, numbers, f"{each.contribution:.7g}"])
    return [[*begin, *line] for line in lines]

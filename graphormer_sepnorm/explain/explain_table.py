"""Explanations of a molecule or of a whole table, drawn into pictures or as a table."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from graphormer_sepnorm.chem.smiles import quoted, read_smiles
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.explain.explanations import Explanation
from graphormer_sepnorm.explain.pictures import check_drawing, write_pictures
from graphormer_sepnorm.output.resumable_writer import opened
from graphormer_sepnorm.system.device import current
from graphormer_sepnorm.system.files import write_atomically
from graphormer_sepnorm.system.workers import Smiles
from graphormer_sepnorm.tables.formats import is_table_name
from graphormer_sepnorm.tables.rows import NO_CONDITIONS, AskedConditions, name_of, samples_of
from graphormer_sepnorm.tables.writers.base import as_csv, text_of_number

CSV = ".csv"
MOST_MOLECULES = 10_000
HEADER = ["row", "name", "smiles", "prediction", "meaning", "baseline", "part", "structure", "atoms", "contribution"]


def explain_table(
    explain: Callable[[Smiles], dict[int, Explanation | InputError]],
    molecules: str | Sequence[str],
    out: Path | None,
    smiles_column: str | None = None,
    delimiter: str | None = None,
    conditions: AskedConditions = NO_CONDITIONS,
) -> tuple[dict[int, Explanation], dict[int, InputError]]:
    """Draws explanations of the molecules of a table, or of some SMILES."""
    smiles = [molecules] if isinstance(molecules, str) else list(molecules)
    tables = [text for text in smiles if os.path.isfile(text) or is_table_name(text)]
    if tables and len(smiles) > 1:
        raise InputError(f"{tables[0]} is a table: name it without other molecules")
    if tables and out is None:
        raise InputError("name what to write for a table: -o PICTURES, a folder, -o GRID.svg or -o OUT.csv")
    if tables and out and out.exists() and os.path.exists(tables[0]) and out.samefile(tables[0]):
        raise InputError(f"{out} is the input table: choose another name for the output")
    with opened(tables[0] if tables else smiles, smiles_column, delimiter) as table:
        rows = list(islice(table.rows, MOST_MOLECULES + 1))
    samples = samples_of(table.columns, conditions, "the input", table.delimiter)(rows)
    if len(rows) > MOST_MOLECULES:
        raise InputError(f"the table has more than {MOST_MOLECULES:,} molecules, the most for one call: choose some")
    if out is not None and out.suffix != CSV:
        check_drawing(out, len(rows))
    with current().arithmetic():
        results = explain(samples)
    results |= {number: InputError(row.error) for number, row in enumerate(rows) if row.error}
    explanations = {
        row: replace(result, name=name_of(table.columns, rows[row].fields))
        for row, result in results.items()
        if isinstance(result, Explanation)
    }
    problems = {row: result for row, result in results.items() if isinstance(result, InputError)}
    if problems and not tables:
        first = quoted(smiles[min(problems)])
        words = str(problems[min(problems)])
        raise InputError(words if first in words else f"{first}: {words}")
    if out is not None:
        (write_contributions if out.suffix == CSV else write_pictures)(out, explanations)
    return explanations, problems


def write_contributions(out: Path, explanations: dict[int, Explanation]) -> None:
    """Writes a CSV with a line per atom and per fragment, rows and atoms counted from 1, and conditions at the end."""
    lines = [line for row, explanation in explanations.items() for line in lines_of_molecule(row + 1, explanation)]
    conditions = next((list(explanation.conditions) for explanation in explanations.values()), [])
    write_atomically(out, as_csv([[*HEADER, *conditions], *lines]))


def lines_of_molecule(row: int, explanation: Explanation) -> list[list]:
    """The lines of one molecule."""
    ends = explanation.prediction, explanation.baseline
    prediction, baseline = (text_of_number(value, explanation.digits) for value in ends)
    begin = [row, explanation.name, explanation.smiles, prediction, explanation.meaning, baseline]
    atoms = zip(read_smiles(explanation.smiles).GetAtoms(), explanation.contributions.tolist(), strict=True)
    lines = [["atom", atom.GetSymbol(), atom.GetIdx() + 1, f"{value:.7g}"] for atom, value in atoms]
    for each in explanation.fragments:
        numbers = " ".join(str(atom + 1) for atom in each.atoms)
        lines.append(["fragment", each.smiles, numbers, f"{each.contribution:.7g}"])
    return [[*begin, *line, *explanation.conditions.values()] for line in lines]

"""SMILES files: a SMILES and a name on each line."""

import itertools
from collections.abc import Iterator

from graphormer_sepnorm.tables.formats.table import Row, Table, without_last_blanks


def read_smi(lines: Iterator[str]) -> Table:
    """A SMILES and a name on each line, between them white space; a first line that begins with "smiles" is skipped."""
    records = without_last_blanks(line.split(None, 1) for line in lines)
    first = list(itertools.islice(records, 1))
    if not (first and first[0] and first[0][0].lower() == "smiles"):
        records = itertools.chain(first, records)
    padded = ([*record, "", ""][:2] for record in records)
    return Table(["smiles", "name"], (Row([smiles, name.strip()], smiles) for smiles, name in padded))

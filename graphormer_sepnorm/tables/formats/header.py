"""The first line of a table: whether it has the names of the columns, or a molecule already."""

import itertools
from collections.abc import Iterator, Sequence

from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.formats.table import places_of_column, printable

ROWS_LOOKED_AT = 10
COLUMNS_LOOKED_AT = 1000
FEWEST_ATOMS = 3  # C, N, ID, CN and CO are names of columns


def with_names(
    records: Iterator[list[str]], source: str, smiles_column: str | None, advice: str = ""
) -> Iterator[list[str]]:
    """The records of a table; raises InputError, which ends with ``advice``, if the first one has a molecule."""
    first = list(itertools.islice(records, 1))
    suspected = first and molecule_among(first[0], [], smiles_column)
    rows = list(itertools.islice(records, ROWS_LOOKED_AT if suspected else 0))
    if suspected and (molecule := molecule_among(first[0], rows, smiles_column)):
        raise InputError(
            f"{source} seems to have no header: its first line contains the molecule {printable(molecule)!r}; write "
            f"the names of the columns, such as smiles, in a line above it{advice}"
        )
    return itertools.chain(first, rows, records)


def molecule_among(names: list[str], rows: Sequence[list[str]], smiles_column: str | None = None) -> str:
    """The molecule in a first line of no names; NSC is a name if ``rows`` below have no molecule in its place."""
    if places_of_column(names, smiles_column) and not (smiles_column and is_molecule(smiles_column)):
        return ""
    for place, name in enumerate(names[:COLUMNS_LOOKED_AT]):
        below = [row[place] for row in rows if place < len(row) and row[place].strip()]
        if is_molecule(name) and (not below or any(map(is_molecule, below))):
            return name.split()[0]
    return ""


def is_molecule(text: str) -> bool:
    """Whether the first word of a text is a molecule of at least ``FEWEST_ATOMS`` atoms."""
    try:
        return read_smiles(text.split()[0]).GetNumAtoms() >= FEWEST_ATOMS
    except (IndexError, InputError):
        return False

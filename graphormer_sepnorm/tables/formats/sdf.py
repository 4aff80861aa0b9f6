"""Structure-data files: molfiles with data items.

Source: "CTfile formats", Dassault Systemes, 2020.
"""

import itertools
import re
from collections.abc import Iterator

from rdkit import Chem

from graphormer_sepnorm.chem.smiles import MAX_ATOMS, check_size, one_molecule, too_large
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.formats import text
from graphormer_sepnorm.tables.formats.table import Row, Table, free_name

NAME = re.compile(r">[^<]*<(.*)>[^>]*")  # of a data item; it may have < and > in it
END_OF_STRUCTURE = "M  END"


def read_sdf(lines: Iterator[str], again: Iterator[str], source: str) -> Table:
    """Records of an SDF: the structure as SMILES, the title and every data item that any record has.

    Args:
        lines: of the file; read as rows are asked for.
        again: the same lines; read at once, for the names of the items.
        source: the file, for messages.
    """
    names = dict.fromkeys(name for record in sdf_records(again, source) for name in data_items(record))
    own = [free_name(name, names, "_of_molfile") for name in ("smiles", "name")]
    return Table([*own, *names], (sdf_row(record, list(names)) for record in sdf_records(lines, source)))


def sdf_records(lines: Iterator[str], source: str) -> Iterator[list[str]]:
    """The lines of each record; raises InputError for one of more than ``MAX_RECORD`` characters."""
    record: list[str] = []
    size = 0
    for number, line in enumerate(lines, 1):
        if line.startswith("$$$$"):
            yield record
            record, size = [], 0
        else:
            record.append(line.rstrip("\r\n"))
            size += len(line)
        if size > text.MAX_RECORD:
            raise InputError(f"line {number} of {source}: a record has more than {text.MAX_RECORD:,} characters")
    if any(line.strip() for line in record):
        yield record


def split_record(record: list[str]) -> tuple[list[str], list[str]]:
    """The structure and the data items of a record; without an end of the structure, items begin with the first ">"."""
    ends = (number + 1 for number, line in enumerate(record) if line.startswith(END_OF_STRUCTURE))
    items = (number for number, line in enumerate(record) if line.startswith(">"))
    place = next(ends, None)
    if place is None:
        place = next(items, len(record))
    return record[:place], record[place:]


def data_items(record: list[str]) -> dict[str, str]:
    """The data items of a record, by name."""
    items: dict[str, str] = {}
    lines = iter(split_record(record)[1])
    for line in lines:
        if found := NAME.fullmatch(line):
            items[found[1]] = "\n".join(itertools.takewhile(str.strip, lines))
    return items


def sdf_row(record: list[str], names: list[str]) -> Row:
    """A record as a row, with an error if its structure cannot be read."""
    structure, items = split_record(record)[0], data_items(record)
    smiles, error = "", ""
    try:
        smiles = smiles_of_block(structure)
    except InputError as problem:
        error = str(problem)
    title = record[0].strip() if record else ""
    return Row([smiles, title, *(items.get(name, "") for name in names)], smiles, error)


def smiles_of_block(lines: list[str]) -> str:
    """The SMILES of a molfile, unsanitized if need be; raises InputError if there is none, or it is too large.

    Characters beyond ASCII, which it can have in its title and its comment alone, do not reach RDKit.
    """
    block = "\n".join(lines).encode("ascii", "replace").decode()
    atoms = num_heavy_atoms(lines)
    if atoms > MAX_ATOMS:
        raise InputError(too_large(atoms))
    with one_molecule():
        if atoms and (unsanitized := Chem.MolFromMolBlock(block, sanitize=False)) is not None:
            check_size(unsanitized)
        mol = Chem.MolFromMolBlock(block)
        if mol is None:
            mol = Chem.MolFromMolBlock(block, sanitize=False)
        smiles = "" if mol is None else Chem.MolToSmiles(mol)
    if mol is None:
        raise InputError("the record has no readable structure")
    return smiles


def num_heavy_atoms(lines: list[str]) -> int:
    """The atoms of a V3000 molfile but for hydrogens, counted in its text; 0 for V2000, which has at most 999 atoms.

    RDKit takes a time that grows with their square to read many.
    """
    count, inside = 0, False
    for line in lines:
        if line.startswith("M  V30"):
            fields = line.split(None, 5)[2:]
            if fields[1:2] == ["ATOM"]:
                inside = fields[0] == "BEGIN"
            else:
                count += inside and fields[1:2] not in (["H"], ["D"], ["T"])
    return count

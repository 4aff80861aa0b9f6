"""SMILES files: a SMILES and a name on each line."""

import itertools
import re
from collections.abc import Iterator

from graphormer_sepnorm.tables.formats.table import Row, Table, without_last_blanks

COLUMNS = ["smiles", "name"]
# Of a CXSMILES: coordinates, labels, radicals, items such as "&1:3", the letter r, or nothing.
EXTENSION = r"\|(?:(?:[($^]|(?:ctu|[acCfHmstuZ]|w[UD]?|[o&]\d+|rb|lp|LN|LO|RG|Sg[DH]?|atomProp|THB):|r,)[^|]*|r)?\|"
WITH_EXTENSION = re.compile(rf"\s*(\S+\s+{EXTENSION})(.*)", re.DOTALL)  # CXSMILES and a name


def read_smi(lines: Iterator[str]) -> Table:
    """A SMILES, with a CXSMILES extension, and a name per line; a first line that begins with "smiles" is skipped."""
    records = without_last_blanks(map(split_line, lines))
    first = list(itertools.islice(records, 1))
    has_header = bool(first and first[0] and first[0][0].lower() == "smiles")
    records = records if has_header else itertools.chain(first, records)
    padded = ([*record, "", ""][:2] for record in records)
    return Table([*COLUMNS], (Row([smiles, name.strip()], smiles) for smiles, name in padded), header=int(has_header))


def split_line(line: str) -> list[str]:
    found = WITH_EXTENSION.fullmatch(line)
    return list(found.groups()) if found else line.split(None, 1)

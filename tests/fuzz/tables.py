"""Mutated tables: python -m tests.fuzz.tables --count N --seed S."""

import bz2
import gzip
import lzma
import math
import random
import tempfile
from pathlib import Path

from rdkit import Chem

from graphormer_sepnorm.chem.features import read_molecules
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.formats import open_table
from graphormer_sepnorm.tables.labels import read_usable
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.writers.base import as_csv
from tests.fuzz.edits import edited, random_edits, run

TOKENS = (
    b'"', b'""', b",", b";", b"\t", b"|", b"\n", b"\r", b"\r\n", b"\0", b"\xe9", b"\xff", b"\xff\xfe", b"\xef\xbb\xbf",
    b"\xc3", b"\xed\xa0\x80", "\u00e9".encode(), "\u2028".encode(), "\U0001f600".encode(), b">", b">  <note>\n", b"<",
    b"-1", b"999", b"M  END\n", b"M  CHG  1   1  99\n", b"M  V30 BEGIN CTAB\n", b"M  V30 COUNTS 1 0 0 0 0\n", b"V3000",
    b"$$$$", b"[#119]", b"[CH999]", b"smiles", b"sep=;\n", b" ", b"#", b"'", b"C" * 70, b"\x1f\x8b",
)  # fmt: skip


def molfile(smiles: str) -> bytes:
    return f"{Chem.MolToMolBlock(Chem.MolFromSmiles(smiles))}>  <note>\na b\n".encode()


FORMATS = {
    "csv": (b"smiles,note\n", lambda smiles: f'{smiles},"a, b"'.encode(), b"\n"),
    "smi": (b"", lambda smiles: f"{smiles} a b".encode(), b"\n"),
    "sdf": (b"", molfile, b"\n$$$$\n"),
}
PACKED = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
FIRST, MIDDLE, LAST = "CCO", "c1ccccc1C(=O)[O-]", "CCN"


def read_table(path: Path, content: bytes) -> list[str] | None:
    """The SMILES of the rows, all of which are also featurized; None if the table is refused."""
    path.write_bytes(content)
    try:
        with open_table(path) as table:
            rows = list(table.rows)
    except InputError:
        return None
    assert all(len(row.fields) == len(table.columns) for row in rows)
    read_molecules("ogb", [row.smiles for row in rows])
    return [row.smiles for row in rows]


def damage_record(path: Path, kind: str, edits: list) -> str:
    """A damaged record between good ones: those are read, unless the table as a whole is refused."""
    header, record, end = FORMATS[kind]
    damaged = edited(record(MIDDLE), edits)
    content = header + record(FIRST) + end + damaged + end + record(LAST) + end
    rows = read_table(path / f"in.{kind}", content)
    if rows is None:
        assert kind == "csv" and b'"' in damaged, "only quotes can leave it open where a record ends"
        return "refused"
    assert (rows[0], rows[-1]) == (FIRST, LAST)
    return "good records read"


def damage_file(path: Path, kind: str, edits: list) -> str:
    """Damage anywhere in the file, or in its compressed bytes."""
    header, record, end = FORMATS[kind.partition(".")[0]]
    content = header + b"".join(record(smiles) + end for smiles in (FIRST, MIDDLE, LAST))
    content = PACKED.get(Path(kind).suffix, bytes)(content)
    return "refused" if read_table(path / f"in.{kind}", edited(content, edits)) is None else "read"


MARKS = {",": ".", ".": ","}
WITHOUT_LABEL = ("", "n.d.", "NA", "?")


def written(number: float, decimals: int, decimal: str, thousands: str) -> str:
    text = f"{number:,.{decimals}f}"
    return "".join({",": thousands, ".": decimal}.get(character, character) for character in text)


def label_column(rng: random.Random, decimal: str) -> tuple[list[str], list[float]]:
    """Texts of labels in one notation and one unit or several, and what they are in the first one; NaN for none."""
    thousands = rng.choice(["", MARKS[decimal], "'", "\u202f"])
    unit, is_spaced = rng.choice(["", "", "%", "nM"]), rng.random() < 0.5
    texts = [written(11_748_976, 0, decimal, thousands) + unit] * 15
    values = [11_748_976.0] * 15
    for _ in range(rng.choice([3, 10])):
        decimals = rng.choice([0, 1, 2, 3])
        number = round(10 ** rng.uniform(-1, 6), decimals)
        text, own = written(number, decimals, decimal, thousands), unit
        if unit == "nM" and rng.random() < 0.3:
            own, number = "uM", number * 1000
        text = rng.choice(["", "", "~"]) + text + rng.choice(["", "", " +- 1"])
        texts.append(text + " " * is_spaced + own)
        values.append(number)
        if rng.random() < 0.3:
            texts.append(rng.choice(WITHOUT_LABEL))
            values.append(math.nan)
    return texts, values


def read_written_labels(path: Path, rng: random.Random) -> str:
    """Two columns of labels: each label is what was written, or is refused by itself; one of them never is another."""
    delimiter = rng.choice([",", ";", "\t"])
    decimal = "," if delimiter == ";" else rng.choice([",", "."])
    columns = [label_column(rng, decimal) for _ in range(2)]
    count = min(len(texts) for texts, _ in columns)
    order = rng.sample(range(count), count)
    file = path / "in.csv"
    lines = [[f"{'C' * (row + 1)}", *(texts[row] for texts, _ in columns)] for row in order]
    file.write_bytes(as_csv([["smiles", "a", "b"], *lines], delimiter))
    found = read_usable(TableOptions(str(file), ("a", "b"), delimiter=delimiter), "mol")
    refused = len(found.skipped)
    for row in found.rows:
        for place, (_, values) in enumerate(columns):
            value, label = values[len(row.smiles) - 1], row.labels[place]
            if math.isnan(label):
                refused += not math.isnan(value)
                assert math.isnan(value) or ": write " in row.gaps[place], row
            else:
                assert math.isclose(label, value, rel_tol=1e-12), (row, value)
    return "some labels refused" if refused else "labels read"


def try_one(rng: random.Random) -> str:
    with tempfile.TemporaryDirectory() as folder:
        if rng.random() < 0.3:
            return read_written_labels(Path(folder), rng)
        edits = random_edits(rng, TOKENS)
        if rng.random() < 0.5:
            return damage_record(Path(folder), rng.choice([*FORMATS]), edits)
        return damage_file(Path(folder), rng.choice([*FORMATS, *("csv.gz", "sdf.gz", "csv.bz2", "smi.xz")]), edits)


if __name__ == "__main__":
    run(try_one)

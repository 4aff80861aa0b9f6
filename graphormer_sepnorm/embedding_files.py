"""Embeddings of whole tables into a file: NumPy's .npz, Parquet or CSV.

Every format holds, for each row of the input in order, why it could not be read, if so (``error``), and its embedding,
NaN or empty in that case. CSV and Parquet keep all columns of the input and are written in bounded memory; .npz holds
the SMILES alone and needs room for all.
"""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np
from tqdm import tqdm

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.files import check_output, rename_durably
from graphormer_sepnorm.parallel import CHUNK
from graphormer_sepnorm.prediction import Embedder, compute_chunks
from graphormer_sepnorm.tables import Row, open_table, smiles_of_rows, with_free_names


class Writer(Protocol):
    """Writes embeddings in one format."""

    def add(self, rows: list[Row], errors: list[str], values: np.ndarray) -> None:
        """Adds rows: ``values`` float32 [len(rows), D]."""

    def finish(self) -> None:
        """Completes the file."""


class NpzWriter:
    """Arrays ``embeddings`` float32 [M, D], ``row`` int64 [M] from 0, ``smiles`` and ``error`` text [M]."""

    def __init__(self, path: Path, columns: list[str], width: int):
        self.path = path
        self.smiles: list[str] = []
        self.errors: list[str] = []
        self.values = [np.empty((0, width), np.float32)]

    def add(self, rows: list[Row], errors: list[str], values: np.ndarray) -> None:
        self.smiles += smiles_of_rows(rows)
        self.errors += errors
        self.values.append(values)

    def finish(self) -> None:
        with open(self.path, "wb") as file:
            np.savez_compressed(
                file,
                embeddings=np.concatenate(self.values),
                row=np.arange(len(self.smiles)),
                smiles=np.array(self.smiles, np.str_),
                error=np.array(self.errors, np.str_),
            )


class CsvWriter:
    """The columns of the input, ``error`` and ``e0``, ``e1``, ... ."""

    def __init__(self, path: Path, columns: list[str], width: int):
        self.file = path.open("w", encoding="utf-8", errors="surrogateescape", newline="")
        self.writer = csv.writer(self.file, lineterminator="\n")
        self.writer.writerow([*columns, *with_free_names(["error", *(f"e{i}" for i in range(width))], columns)])

    def add(self, rows: list[Row], errors: list[str], values: np.ndarray) -> None:
        for row, error, numbers in zip(rows, errors, values.tolist(), strict=True):
            self.writer.writerow([*row.fields, error, *("" if error else f"{number:.7g}" for number in numbers)])

    def finish(self) -> None:
        self.file.close()


class ParquetWriter:
    """The columns of the input as text, ``error``, and ``embedding``, a list of D float32."""

    def __init__(self, path: Path, columns: list[str], width: int):
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise InputError("Parquet needs pyarrow: pip install pyarrow, or write .npz or .csv") from None
        self.pyarrow = pyarrow
        *texts, embedding = [*columns, *with_free_names(["error", "embedding"], columns)]
        numbers = pyarrow.list_(pyarrow.float32(), width)
        self.schema = pyarrow.schema([*((name, pyarrow.string()) for name in texts), (embedding, numbers)])
        self.writer = pyarrow.parquet.ParquetWriter(path, self.schema)

    def add(self, rows: list[Row], errors: list[str], values: np.ndarray) -> None:
        columns = zip(*(row.fields for row in rows), strict=True)
        texts = [[text.encode(errors="replace").decode() for text in column] for column in columns]
        embedding = self.pyarrow.FixedSizeListArray.from_arrays(values.reshape(-1), values.shape[1])
        self.writer.write_table(self.pyarrow.table([*texts, errors, embedding], schema=self.schema))

    def finish(self) -> None:
        self.writer.close()


WRITERS: dict[str, Callable[[Path, list[str], int], Writer]] = {
    ".npz": NpzWriter,
    ".parquet": ParquetWriter,
    ".csv": CsvWriter,
}


def embed_table(
    embedder: Embedder, source: str, out: Path, smiles_column: str | None = None, delimiter: str | None = None
) -> dict:
    """Writes the embeddings of the molecules of a table.

    Args:
        embedder: the model.
        source, smiles_column, delimiter: as ``open_table``.
        out: file to write; its suffix, one of ``WRITERS``, says how.

    Returns:
        ``rows, unreadable, width, output``.

    Raises:
        InputError: an unusable table, another suffix, or an output that cannot be written; nothing is left then.
    """
    if out.suffix.lower() not in WRITERS:
        raise InputError(f"embeddings are written as {', '.join(WRITERS)}, not as {out.suffix or out.name!r}")
    check_output(out, source)
    width = embedder.model.config.width
    partial = out.with_name(f"{out.name}.partial")
    rows = unreadable = 0
    with open_table(source, smiles_column, delimiter) as table:
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            writer = WRITERS[out.suffix.lower()](partial, table.columns, width)
            with tqdm(unit=" molecules", disable=None) as bar:
                for chunk, embeddings in compute_chunks(embedder, table.chunks(CHUNK), smiles_of_rows):
                    errors = [row.error or error for row, error in zip(chunk, embeddings.errors, strict=True)]
                    writer.add(chunk, errors, embeddings.values)
                    rows += len(chunk)
                    unreadable += sum(map(bool, errors))
                    bar.update(len(chunk))
            writer.finish()
            rename_durably(partial, out)
        except OSError as error:
            raise InputError(f"cannot write {out}: {error.strerror}") from None
        finally:
            partial.unlink(missing_ok=True)
    return {"rows": rows, "unreadable": unreadable, "width": width, "output": str(out)}

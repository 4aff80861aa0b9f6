"""Embeddings of whole tables into a file: NumPy's .npz, Parquet or CSV.

Every format holds, for each row of the input in order, its number from 0 (``row``), its SMILES (``smiles``), why it
could not be read, if so (``error``), and its embedding, NaN or empty in that case. Parquet and CSV are written in
bounded memory; .npz needs room for all.
"""

import csv
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np
from tqdm import tqdm

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.parallel import CHUNK
from graphormer_sepnorm.prediction import Embedder, compute_chunks
from graphormer_sepnorm.tables import open_table, smiles_of_rows


class Writer(Protocol):
    """Writes embeddings in one format."""

    def add(self, smiles: list[str], errors: list[str], values: np.ndarray) -> None:
        """Adds rows: ``values`` float32 [len(smiles), D]."""

    def finish(self) -> None:
        """Completes the file."""


class NpzWriter:
    """Arrays ``embeddings`` float32 [M, D], ``row`` int64 [M], ``smiles`` and ``error`` text [M]."""

    def __init__(self, path: Path, width: int):
        self.path = path
        self.smiles: list[str] = []
        self.errors: list[str] = []
        self.values = [np.empty((0, width), np.float32)]

    def add(self, smiles: list[str], errors: list[str], values: np.ndarray) -> None:
        self.smiles += smiles
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
    """Columns ``row``, ``smiles``, ``error`` and ``e0``, ``e1``, ... ."""

    def __init__(self, path: Path, width: int):
        self.file = path.open("w", encoding="utf-8", errors="surrogateescape", newline="")
        self.writer = csv.writer(self.file, lineterminator="\n")
        self.writer.writerow(["row", "smiles", "error", *(f"e{i}" for i in range(width))])
        self.rows = 0

    def add(self, smiles: list[str], errors: list[str], values: np.ndarray) -> None:
        for text, error, numbers in zip(smiles, errors, values.tolist(), strict=True):
            self.writer.writerow([self.rows, text, error, *("" if error else f"{number:.7g}" for number in numbers)])
            self.rows += 1

    def finish(self) -> None:
        self.file.close()


class ParquetWriter:
    """Columns ``row``, ``smiles``, ``error`` and ``embedding``, a list of D float32."""

    def __init__(self, path: Path, width: int):
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise InputError("Parquet needs pyarrow: pip install pyarrow, or write .npz or .csv") from None
        self.pyarrow = pyarrow
        self.schema = pyarrow.schema(
            {
                "row": pyarrow.int64(),
                "smiles": pyarrow.string(),
                "error": pyarrow.string(),
                "embedding": pyarrow.list_(pyarrow.float32(), width),
            }
        )
        self.writer = pyarrow.parquet.ParquetWriter(path, self.schema)
        self.rows = 0

    def add(self, smiles: list[str], errors: list[str], values: np.ndarray) -> None:
        embedding = self.pyarrow.FixedSizeListArray.from_arrays(values.reshape(-1), values.shape[1])
        row = range(self.rows, self.rows + len(smiles))
        text = [smile.encode(errors="replace").decode() for smile in smiles]
        table = self.pyarrow.table([list(row), text, errors, embedding], schema=self.schema)
        self.writer.write_table(table)
        self.rows += len(smiles)

    def finish(self) -> None:
        self.writer.close()


WRITERS: dict[str, Callable[[Path, int], Writer]] = {".npz": NpzWriter, ".parquet": ParquetWriter, ".csv": CsvWriter}


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
    width = embedder.model.config.width
    partial = out.with_name(f"{out.name}.partial")
    rows = unreadable = 0
    with open_table(source, smiles_column, delimiter) as table:
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            writer = WRITERS[out.suffix.lower()](partial, width)
            with tqdm(unit=" molecules", disable=None) as bar:
                for chunk, embeddings in compute_chunks(embedder, table.chunks(CHUNK), smiles_of_rows):
                    errors = [row.error or error for row, error in zip(chunk, embeddings.errors, strict=True)]
                    writer.add([row.smiles for row in chunk], errors, embeddings.values)
                    rows += len(chunk)
                    unreadable += sum(map(bool, errors))
                    bar.update(len(chunk))
            writer.finish()
            os.replace(partial, out)
        except OSError as error:
            raise InputError(f"cannot write {out}: {error.strerror}") from None
        finally:
            partial.unlink(missing_ok=True)
    return {"rows": rows, "unreadable": unreadable, "width": width, "output": str(out)}

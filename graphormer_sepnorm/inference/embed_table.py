"""Writes the embeddings of whole tables: NumPy's .npz, Parquet or CSV.

For each row of the input, in order, every format holds the reason why it could not be read (``error``) and its
embedding, which is NaN or empty in that case. CSV and Parquet keep all columns of the input and are written in bounded
memory; .npz holds only the SMILES and needs memory for everything at the end.
"""

import io
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference.predict import Embedder, Embeddings, load_embedder
from graphormer_sepnorm.inference.resumable_writer import Layout, as_csv, write_table
from graphormer_sepnorm.inference.teachers import TEACHERS, MiniMol
from graphormer_sepnorm.tables.formats import Row, smiles_of_rows, with_free_names

COMPLETED = ".completed"


class EmbeddingLines:
    """A CSV: the columns of the input, ``error`` and ``e0``, ``e1``, ... ."""

    def __init__(self, width: int, columns: list[str]):
        self.width = width
        self.columns = columns

    def header(self) -> bytes:
        added = ["error", *(f"e{place}" for place in range(self.width))]
        return as_csv([[*self.columns, *with_free_names(added, self.columns)]])

    def encode(self, rows: list[Row], errors: list[str], embeddings: Embeddings) -> bytes:
        return as_csv(
            [*row.fields, error, *("" if error else f"{number:.7g}" for number in numbers)]
            for row, error, numbers in zip(rows, errors, embeddings.values.tolist(), strict=True)
        )

    def complete(self, grown: Path) -> Path:
        return grown


class EmbeddingArrays:
    """An .npz: arrays ``embeddings`` float32 [M, D], ``row`` int64 [M] from 0, ``smiles`` and ``error`` text [M].

    The partial file is a sequence of parts in NumPy's .npy format: embeddings, SMILES and errors of some rows.
    """

    def __init__(self, width: int, columns: list[str]):
        self.width = width

    def header(self) -> bytes:
        return as_npy(np.empty((0, self.width), np.float32), [], [])

    def encode(self, rows: list[Row], errors: list[str], embeddings: Embeddings) -> bytes:
        return as_npy(embeddings.values, smiles_of_rows(rows), errors)

    def complete(self, grown: Path) -> Path:
        completed = grown.with_suffix(COMPLETED)
        parts = npy_arrays(grown)
        values, smiles, errors = map(np.concatenate, zip(*zip(parts, parts, parts, strict=True), strict=True))
        with open(completed, "wb") as file:
            np.savez_compressed(file, embeddings=values, row=np.arange(len(smiles)), smiles=smiles, error=errors)
        return completed


def as_npy(values: np.ndarray, *texts: list[str]) -> bytes:
    """Numbers and lists of texts in NumPy's .npy format, one after another."""
    content = io.BytesIO()
    for array in (values, *(np.array(text, np.str_) for text in texts)):
        np.save(content, array, allow_pickle=False)
    return content.getvalue()


def npy_arrays(path: Path) -> Iterator[np.ndarray]:
    """All arrays in a file."""
    with open(path, "rb") as file:
        end = path.stat().st_size
        while file.tell() < end:
            yield np.load(file, allow_pickle=False)


class EmbeddingParquet:
    """The columns of the input as text, ``error``, and ``embedding``, a list of D float32.

    The partial file is an Arrow stream: a schema, then one batch for some rows at a time.
    """

    def __init__(self, width: int, columns: list[str]):
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise InputError("Parquet needs pyarrow: pip install pyarrow, or write .npz or .csv") from None
        if twice := [name for name, count in Counter(columns).items() if count > 1]:
            raise InputError(
                f"the input has several columns {twice[0]!r}, and Parquet needs unique names: rename them, or write "
                ".npz or .csv"
            )
        self.pyarrow = pyarrow
        *texts, embedding = [*columns, *with_free_names(["error", "embedding"], columns)]
        numbers = pyarrow.list_(pyarrow.float32(), width)
        self.schema = pyarrow.schema([*((name, pyarrow.string()) for name in texts), (embedding, numbers)])

    def header(self) -> bytes:
        return self.schema.serialize().to_pybytes()

    def encode(self, rows: list[Row], errors: list[str], embeddings: Embeddings) -> bytes:
        columns = zip(*(row.fields for row in rows), strict=True)
        texts = [[text.encode(errors="replace").decode() for text in column] for column in columns]
        values = embeddings.values
        numbers = self.pyarrow.FixedSizeListArray.from_arrays(values.reshape(-1), values.shape[1])
        return self.pyarrow.record_batch([*texts, errors, numbers], schema=self.schema).serialize().to_pybytes()

    def complete(self, grown: Path) -> Path:
        completed = grown.with_suffix(COMPLETED)
        with (
            self.pyarrow.ipc.open_stream(grown) as batches,
            self.pyarrow.parquet.ParquetWriter(completed, self.schema) as writer,
        ):
            for batch in batches:
                writer.write_batch(batch)
        return completed


LAYOUTS: dict[str, Callable[[int, list[str]], Layout[Embeddings]]] = {
    ".npz": EmbeddingArrays,
    ".parquet": EmbeddingParquet,
    ".csv": EmbeddingLines,
}


def find_embedder(name: str) -> Embedder | MiniMol:
    """A model loaded by ``load_embedder``, or one of ``TEACHERS``; raises InputError as these do."""
    if name in TEACHERS and not Path(name).exists():
        return TEACHERS[name]()
    return load_embedder(name)


def embed_table(
    embedder: Embedder | MiniMol,
    source: str,
    out: Path,
    smiles_column: str | None = None,
    delimiter: str | None = None,
    resume: bool = False,
) -> dict:
    """Writes the embeddings of the molecules of a table.

    Args:
        embedder: the model that computes the embeddings.
        out: file to write; its suffix, one of ``LAYOUTS``, selects the format.
        source, smiles_column, delimiter, resume: as ``write_table``.

    Returns, Raises: as ``write_table``, and ``width``; InputError also for another suffix.
    """
    if out.suffix.lower() not in LAYOUTS:
        raise InputError(f"embeddings are written as {', '.join(LAYOUTS)}, not as {out.suffix or out.name!r}")
    layout = partial(LAYOUTS[out.suffix.lower()], embedder.width)
    result = write_table(
        embedder, layout, source, out, smiles_column, delimiter, resume=resume, options=embedder.settings
    )
    return {**result, "width": embedder.width}

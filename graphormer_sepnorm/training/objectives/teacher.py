"""Pretraining on embeddings of another model, to distill it (Hinton et al., 2015; Romero et al., ICLR 2015)."""

import zipfile
from pathlib import Path

import numpy as np

from graphormer_sepnorm.config import TEACHER
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.training.objectives.base import Corpus, Pretraining

CLIP = 6.0  # standard deviations
FEWEST = 3


class Teacher(Pretraining):
    """Predicts the embeddings in an .npz from the command ``embed``, in standard deviations."""

    def __init__(self, path: Path):
        self.path = path
        self.title = f"the embeddings in {path.name}"
        try:
            with np.load(path) as arrays:
                self.values, smiles = arrays["embeddings"], arrays["smiles"].tolist()
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror or error}") from None
        except (ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile):
            raise InputError(f"{path} holds no embeddings: name an .npz that the command embed wrote") from None
        if self.values.ndim != 2 or len(self.values) != len(smiles):
            raise InputError(f"{path} holds no embedding for each of its molecules: write it with the command embed")
        finite = np.isfinite(self.values).all(axis=1)
        self.row = {text: row for row, text in enumerate(smiles) if finite[row]}

    def corpus(self, smiles: list[str]) -> Corpus:
        """The molecules whose SMILES, exactly as in the tables, have an embedding; labels are its columns that vary."""
        embedded = [text for text in smiles if text in self.row]
        if len(embedded) < FEWEST:
            raise InputError(
                f"{self.path} has embeddings of {len(embedded)} of the {len(smiles)} molecules: write it with the "
                "command embed from the same tables"
            )
        values = self.values[[self.row[text] for text in embedded]].astype(np.float32)
        mean, std = values.mean(axis=0, dtype=np.float64), values.std(axis=0, dtype=np.float64)
        told = np.flatnonzero(std > 1e-6 * (1 + np.abs(mean)))
        if not len(told):
            raise InputError("all molecules have the same embedding: there is nothing to learn")
        scaled = ((values[:, told] - mean[told]) / std[told]).clip(-CLIP, CLIP)
        return Corpus(embedded, tuple(f"{TEACHER}{place}" for place in told), scaled.astype(np.float32))

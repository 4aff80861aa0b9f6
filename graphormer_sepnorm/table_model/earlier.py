"""Table runs of earlier versions: networks, with an optional weighted forest and trust file.

Axis letters: M molecules, T targets.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from graphormer_sepnorm.chem.features import Molecules
from graphormer_sepnorm.chem.smiles import Molecule
from graphormer_sepnorm.config import Config
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference.predict import Predictions, Predictor, load_predictor
from graphormer_sepnorm.inference.trust import Trust, calibrated, load_trust, trust_arrays
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.runs.arrays import array_digest
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.table_model.forest import Forest, forest_arrays, forest_features, load_forest


class EarlierModel(Predictor):
    """Networks whose mean is averaged with a forest and calibrated.

    Args:
        models: as ``Predictor``.
        forest: a forest with its weight in the average.
        trust: calibrates probabilities, computes intervals, and warns about molecules outside the training domain.

    Raises:
        InputError: as ``Predictor``, or the forest or the trust file does not match the models.
    """

    def __init__(self, models: list[tuple[Network, Config]], forest: Forest | None = None, trust: Trust | None = None):
        super().__init__(models)
        self.forest, self.trust = forest, trust
        shape = models[0][0].config
        if (forest and forest.targets != shape.num_tasks) or (trust and not trust.fits(shape.num_tasks, shape.width)):
            raise InputError("the forest or the trust file in the run folder does not match the shape of its models")

    @property
    def digest(self) -> str:
        forest = {} if self.forest is None else forest_arrays(self.forest)
        trust = {} if self.trust is None else trust_arrays(self.trust)
        return array_digest(forest | trust, {"weight": self.forest.weight if self.forest else 0})

    def predictions(self, molecules: Molecules, outputs: list[np.ndarray]) -> Predictions:
        found = super().predictions(molecules, outputs)
        warnings = self.trust.domain.warnings_on(molecules) if self.trust else found.warnings
        return replace(found, values=self.finished(found.values, molecules.mols), warnings=warnings)

    def finished(self, values: np.ndarray, molecules: Sequence[Molecule]) -> np.ndarray:
        """The final predictions float32 [M, T] from the networks' mean [M, T]."""
        if self.forest is not None and self.forest.weight > 0:
            theirs = self.forest.predict(forest_features(molecules))
            blend = values + self.forest.weight * (theirs - values)
            values = np.where(np.isnan(theirs), values, blend).astype(np.float32)
        return calibrated(values, self.trust)


def load_earlier(place: Path) -> Predictor:
    """Loads the networks at a path, with the forest and the trust file of their folder if there are any.

    Raises:
        InputError: as ``load_predictor`` and ``EarlierModel``, or one of the files is damaged.
    """
    networks, run = load_predictor([str(place)]), RunFolder(place)
    forest = load_forest(run.forest) if run.forest.exists() else None
    trust = load_trust(run.trust) if run.trust.exists() else None
    return EarlierModel(networks.models, forest, trust) if forest or trust else networks

"""Descriptions of molecules that need no model: structural alerts and basic properties.

Axis letters: M molecules, P properties.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from rdkit import Chem

from graphormer_sepnorm.chem.alerts import find_alerts
from graphormer_sepnorm.chem.basic_properties import PROPERTIES, basic_properties
from graphormer_sepnorm.chem.features import Molecules
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference.predict import MoleculeModel, Predictions

Found = TypeVar("Found")


class Describer:
    """A reader that adds descriptions of the molecules to its predictions.

    Args:
        reader: reader that predicts.
        alerts, properties: whether to add structural alerts and basic properties.
    """

    def __init__(self, reader: MoleculeModel[Predictions], alerts: bool, properties: bool):
        self.reader, self.alerts, self.properties = reader, alerts, properties
        self.models, self.featurizer, self.device = reader.models, reader.featurizer, reader.device
        self.asked_conditions = reader.asked_conditions

    def compute(self, molecules: Molecules) -> Predictions:
        found = self.reader.compute(molecules)
        alerts = alerts_of(molecules.mols) if self.alerts else None
        return replace(found, alerts=alerts, properties=properties_of(molecules.mols) if self.properties else None)


def alerts_of(mols: Sequence[Chem.Mol | None]) -> list[str]:
    """The alerts of each of M molecules as one text; "" if there are none or the molecule could not be read."""
    return ["; ".join(attempt(find_alerts, mol) or []) for mol in mols]


def properties_of(mols: Sequence[Chem.Mol | None]) -> np.ndarray:
    """The ``PROPERTIES`` of molecules: float64 [M, P]; NaN for molecules that could not be read."""
    nothing = np.full(len(PROPERTIES), np.nan)
    found = [attempt(basic_properties, mol) for mol in mols]
    return np.array([nothing if row is None else row for row in found]).reshape(-1, len(PROPERTIES))


def attempt(describe: Callable[[Chem.Mol], Found], mol: Chem.Mol | None) -> Found | None:
    """The description of a molecule; None if there is no molecule or RDKit fails on it."""
    try:
        return None if mol is None else describe(mol)
    except InputError:
        return None

"""How far predictions of M molecules and T targets can be trusted, kept as arrays."""

from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from graphormer_sepnorm.chem.fingerprints import SIZE
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.classes import Calibration, ClassSets
from graphormer_sepnorm.predict.domain import Domain
from graphormer_sepnorm.predict.intervals import Intervals
from graphormer_sepnorm.predict.training_rows import TrainingRows
from graphormer_sepnorm.runs.arrays import part_arrays, read_part

PREFIX = "trust."  # begins the names of its arrays in a file
KINDS = (Domain, Intervals, Calibration, TrainingRows, ClassSets)  # of the fields of ``Trust``


@dataclass(frozen=True)
class Trust:
    """The domain of a model, and intervals of a regression or the calibration of a classification."""

    domain: Domain
    intervals: Intervals | None = None
    calibration: Calibration | None = None
    rows: TrainingRows | None = None  # of the training molecules
    class_sets: ClassSets | None = None

    def fits(self, num_tasks: int, width: int) -> bool:
        """Whether it can be that of models of so many targets, the first of which has embeddings of this width."""
        return (
            self.domain.embeddings.shape[1] in (0, width)
            and (self.intervals is None or len(self.intervals.offset) == num_tasks)
            and (self.calibration is None or len(self.calibration.slope) == num_tasks)
            and (self.rows is None or self.rows.labels.shape[1] == num_tasks)
            and (self.class_sets is None or self.class_sets.fits(num_tasks))
        )

    def of_rows(self, rows: np.ndarray) -> "Trust":
        """The same with some of the training molecules, by their numbers, where their labels are known."""
        if self.rows is None or not len(rows):
            return self
        return replace(self, domain=self.domain.of_rows(rows), rows=self.rows.of_rows(rows))


def calibrated(values: np.ndarray, trust: Trust | None) -> np.ndarray:
    """Calibrated probabilities [M, tasks]; unchanged if there is no calibration."""
    if trust is None or trust.calibration is None:
        return values
    return trust.calibration(values).astype(np.float32)


def trust_arrays(trust: Trust) -> dict[str, np.ndarray]:
    """All that is kept, by the names in a file."""
    kept = {name: part for name, part in vars(trust).items() if part is not None}
    return {key: array for name in kept for key, array in part_arrays(PREFIX + name, kept[name]).items()}


def read_trust(arrays: dict[str, np.ndarray], path: Path) -> Trust | None:
    """Reads the arrays of a file, which may hold none of it; raises InputError if they are damaged."""
    names = [field.name for field in fields(Trust)]
    parts = [read_part(kind, PREFIX + name, arrays, path) for name, kind in zip(names, KINDS, strict=True)]
    if not any(parts):
        return None
    if (trust := Trust(*parts)).domain is None or not fits_together(trust):
        raise InputError(f"{path} is damaged: its arrays do not fit together")
    return trust


def fits_together(trust: Trust) -> bool:
    domain, intervals, calibration = trust.domain, trust.intervals, trust.calibration
    return bool(
        domain.bits.shape == (len(domain.smiles), SIZE // 8)
        and len(domain.bits)
        and domain.kinds.shape[1] == 2
        and domain.atoms.shape == domain.charges.shape == (2,)
        and len(domain.embeddings) in (0, len(domain.bits))
        and (trust.rows is None or trust.rows.fits(len(domain.bits)))
        and (intervals is None or (len(intervals.scores) and intervals.scores.shape[1:] == intervals.offset.shape))
        and (intervals is None or intervals.correlation.shape in ((0, 0), 2 * intervals.offset.shape))
        and (calibration is None or calibration.slope.shape == calibration.intercept.shape)
    )

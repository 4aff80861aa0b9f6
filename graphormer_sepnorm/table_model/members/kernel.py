"""A support vector machine on how similar molecules are, by counts of what occurs in them and by the foundation.

scikit-learn fits it; what it learnt is kept as arrays, with the body that embeds.

Axis letters: M molecules, N training molecules, D width of embeddings, T targets.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, vstack
from scipy.special import expit

from graphormer_sepnorm.chem.count_fingerprints import KINDS, count_fingerprints
from graphormer_sepnorm.chem.fingerprints import SIZE
from graphormer_sepnorm.config import Config
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference.predict import Embedder, Output, compute_chunks, load_embedder
from graphormer_sepnorm.inference.trust import Calibration, evenly, fit_calibration
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.runs.arrays import checked_array, load_arrays, save_arrays
from graphormer_sepnorm.runs.checkpoint import save_model
from graphormer_sepnorm.system.workers import in_chunks, map_chunks
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.labels import Folds, Labels, Target
from graphormer_sepnorm.table_model.members.base import Fitted, Setting
from graphormer_sepnorm.table_model.similarity import gaussian, minmax

BODY = "foundation"
KERNEL = "kernel.safetensors"
BODY_FILE = "body.safetensors"
FORMAT = 1
MOST_ROWS = 10_000
MOST_MEASURED = 2_000  # molecules whose distances give the width of the Gaussian
COST = 5.0  # C of the support vector machine
MARGIN = 0.1  # its epsilon, in standard deviations of the labels
ROUNDS = 3  # in which labels of which only bounds are known follow the prediction


def counts(molecules: MoleculeFeatures) -> csr_array:
    """``count_fingerprints`` of molecules, of many in several processes: uint16 [M, KINDS x SIZE]."""
    found = [part for _, part in map_chunks(count_fingerprints, in_chunks(molecules.molecules), list)]
    return csr_array(vstack(found, format="csr")) if found else count_fingerprints([])


@dataclass(frozen=True)
class Body:
    """A pre-trained network as a source of embeddings."""

    embedder: Embedder

    def __hash__(self) -> int:
        return id(self.embedder.model)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Body) and other.embedder.model is self.embedder.model

    def __call__(self, molecules: MoleculeFeatures) -> np.ndarray:
        """Embeddings of molecules, of many in several processes: float32 [M, D]."""
        found = [part.values for _, part in compute_chunks(self.embedder, in_chunks(molecules.molecules), list)]
        return np.concatenate([np.empty((0, self.embedder.width), np.float32), *found])


@cache
def shipped_body() -> Body:
    return Body(load_embedder(BODY))


@dataclass(frozen=True, eq=False)
class Reference:
    """The training molecules, as others are compared with them.

    Attributes:
        body: that embeds.
        counts: uint16 [N, KINDS x SIZE].
        embeddings: float32 [N, D], less ``mean`` and over ``scale``.
        mean, scale: float32 [D], of the embeddings of the training molecules.
        width: of the Gaussian, the median distance between these.
    """

    body: Body
    counts: csr_array
    embeddings: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    width: float

    @classmethod
    def of(cls, molecules: MoleculeFeatures) -> "Reference":
        """The training molecules as the shipped body sees them."""
        body = shipped_body()
        raw = molecules.of(body)
        mean, scale = raw.mean(axis=0), raw.std(axis=0) + np.float32(1e-6)
        scaled = (raw - mean) / scale
        return cls(body, molecules.of(counts), scaled, mean, scale, median_distance(scaled))

    def similarity(self, molecules: MoleculeFeatures) -> np.ndarray:
        """The mean of the similarities by each kind of counts and by embeddings: float64 [M, N], from 0 to 1."""
        theirs = molecules.of(counts)
        total = gaussian((molecules.of(self.body) - self.mean) / self.scale, self.embeddings, self.width)
        for kind in range(len(KINDS)):
            places = slice(kind * SIZE, (kind + 1) * SIZE)
            total += minmax(csr_array(theirs[:, places]), csr_array(self.counts[:, places]))
        return total.astype(np.float64) / (len(KINDS) + 1)

    def arrays(self) -> dict[str, np.ndarray]:
        return {
            "start": self.counts.indptr.astype(np.int64),
            "place": self.counts.indices.astype(np.uint16),
            "count": self.counts.data,
            "embeddings": self.embeddings,
            "mean": self.mean,
            "scale": self.scale,
        }


def median_distance(points: np.ndarray) -> float:
    """The median Euclidean distance between points [N, D] that differ; 1 where none do."""
    from sklearn.metrics import pairwise_distances  # its import takes seconds

    distances = pairwise_distances(points[evenly(len(points), MOST_MEASURED)])
    return float(np.median(distances[distances > 0])) if (distances > 0).any() else 1.0


@dataclass(frozen=True)
class KernelMember:
    """The support vector machines of all targets.

    Attributes:
        reference: the training molecules.
        coefficients: float64 [N, T], on the scale of the labels; 0 for a molecule that is no support vector.
        intercept: float64 [T].
        calibration: from decisions to probabilities, of a classification.
    """

    reference: Reference
    coefficients: np.ndarray
    intercept: np.ndarray
    calibration: Calibration | None = None

    @classmethod
    def fit(cls, molecules: MoleculeFeatures, labels: Labels, folds: Folds, setting: Setting) -> Fitted:
        """As ``Member.fit``; raises InputError for more than ``MOST_ROWS`` molecules."""
        if len(molecules) > MOST_ROWS:
            raise InputError(f"the kernel compares all molecules with each other: {MOST_ROWS:,} at most")
        reference = Reference.of(molecules)
        similarity = molecules.of(reference.similarity)
        decisions = np.empty_like(labels.y)
        for learnt, predicted in folds.parts():
            coefficients, intercept = solve(similarity[np.ix_(learnt, learnt)], labels.take(learnt))
            decisions[predicted] = similarity[np.ix_(predicted, learnt)] @ coefficients + intercept
        calibration = fit_calibration(labels.y, expit(decisions)) if labels.is_classification else None
        member = cls(reference, *solve(similarity, labels), calibration)
        return Fitted(member, member.finished(decisions))

    def predict(self, molecules: MoleculeFeatures) -> np.ndarray:
        return self.finished(molecules.of(self.reference.similarity) @ self.coefficients + self.intercept)

    def finished(self, decisions: np.ndarray) -> np.ndarray:
        """Decisions [M, T] as values or probabilities."""
        return decisions if self.calibration is None else self.calibration(expit(decisions))

    @property
    def models(self) -> list[tuple[Network, Config]]:
        return self.reference.body.embedder.models

    @property
    def outputs(self) -> list[Output]:
        return [self.reference.body.embedder.output]

    def computed(self, outputs: list[np.ndarray]) -> dict[Callable, np.ndarray]:
        return {self.reference.body: outputs[0]}

    def arrays(self) -> dict[str, np.ndarray]:
        found = self.reference.arrays() | {"coefficients": self.coefficients, "intercept": self.intercept}
        if self.calibration is not None:
            found |= {"slope": self.calibration.slope, "shift": self.calibration.intercept}
        return found

    def save(self, folder: Path) -> None:
        save_model(folder / BODY_FILE, *self.models[0], {})
        save_arrays(folder / KERNEL, self.arrays(), {"format": FORMAT, "width": self.reference.width})

    @classmethod
    def load(cls, folder: Path) -> "KernelMember":
        path = folder / KERNEL
        arrays, facts = load_arrays(path)
        if facts.get("format") != FORMAT:
            raise InputError(f"{path} has format {facts.get('format')!r}; this release reads format {FORMAT}")

        def read(name: str, dtype: type, ndim: int) -> np.ndarray:
            return checked_array(arrays, name, dtype, ndim, path)

        reference = Reference(
            Body(load_embedder(str(folder / BODY_FILE))),
            read_counts(read("start", np.int64, 1), read("place", np.uint16, 1), read("count", np.uint16, 1), path),
            read("embeddings", np.float32, 2),
            read("mean", np.float32, 1),
            read("scale", np.float32, 1),
            facts.get("width", 0.0),
        )
        calibration = None
        if "slope" in arrays:
            calibration = Calibration(read("slope", np.float64, 1), read("shift", np.float64, 1))
        member = cls(reference, read("coefficients", np.float64, 2), read("intercept", np.float64, 1), calibration)
        if not member.fits_together():
            raise InputError(f"{path} is damaged: its arrays do not fit together")
        return member

    def fits_together(self) -> bool:
        """Whether the shapes are those of the attributes."""
        kept, width = self.reference, self.reference.body.embedder.width
        molecules, targets = self.coefficients.shape
        return (
            kept.counts.shape[0] == molecules
            and kept.embeddings.shape == (molecules, width)
            and kept.mean.shape == kept.scale.shape == (width,)
            and isinstance(kept.width, float)
            and kept.width > 0
            and self.intercept.shape == (targets,)
            and (
                self.calibration is None
                or self.calibration.slope.shape == self.calibration.intercept.shape == (targets,)
            )
        )


def read_counts(start: np.ndarray, place: np.ndarray, count: np.ndarray, path: Path) -> csr_array:
    """Counts from the arrays of a file; raises InputError if they are not those of sparse rows."""
    width = len(KINDS) * SIZE
    if not (len(start) and start[0] == 0 and start[-1] == len(place) == len(count) and (np.diff(start) >= 0).all()):
        raise InputError(f"{path} is damaged: its counts are not rows")
    if place.max(initial=0) >= width:
        raise InputError(f"{path} is damaged: its counts have places beyond {width}")
    return csr_array((count, place.astype(np.int32), start.astype(np.int32)), shape=(len(start) - 1, width))


def solve(similarity: np.ndarray, labels: Labels) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients [N, T] and intercepts [T] of labelled molecules with similarities [N, N]."""
    fit = solve_classes if labels.is_classification else solve_numbers
    coefficients, intercept = np.zeros_like(labels.y), np.zeros(labels.y.shape[1])
    for place in range(labels.y.shape[1]):
        target = labels.target(place)
        rows = target.known
        if len(rows):
            among = similarity[np.ix_(rows, rows)]
            coefficients[rows, place], intercept[place] = fit(among, target.take(rows), labels.task.balance)
    return coefficients, intercept


def solve_numbers(similarity: np.ndarray, target: Target, balance: bool) -> tuple[np.ndarray, float]:
    """Coefficients [N] and the intercept of a regression; labels known by bounds follow the prediction in rounds."""
    from sklearn.svm import SVR  # its import takes seconds

    exact = ~np.isnan(target.y)
    prediction: np.ndarray | float = target.y[exact].mean() if exact.any() else 0.0
    for _ in range(1 if exact.all() else ROUNDS):
        y = target.filled(prediction)
        mean, deviation = y.mean(), y.std() or 1.0
        machine = SVR(kernel="precomputed", C=COST, epsilon=MARGIN)
        machine.fit(similarity, (y - mean) / deviation, sample_weight=target.weight)
        coefficients = np.zeros(len(y))
        coefficients[machine.support_] = machine.dual_coef_[0] * deviation
        intercept = machine.intercept_[0] * deviation + mean
        prediction = similarity @ coefficients + intercept
    return coefficients, intercept


def solve_classes(similarity: np.ndarray, target: Target, balance: bool) -> tuple[np.ndarray, float]:
    """Coefficients [N] and the intercept of a decision, above 0 for class 1; 1 or -1 where there is one class."""
    from sklearn.svm import SVC  # its import takes seconds

    coefficients = np.zeros(len(target.y))
    if len(np.unique(target.y)) < 2:
        return coefficients, 2 * target.y[0] - 1
    machine = SVC(kernel="precomputed", C=COST, class_weight="balanced" if balance else None)
    machine.fit(similarity, target.y, sample_weight=target.weight)
    coefficients[machine.support_] = machine.dual_coef_[0]
    return coefficients, machine.intercept_[0]

"""From M SMILES to predictions and embeddings of width D; one that cannot be read affects only its own row."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Protocol, Self, TypeVar

import numpy as np
import torch

from graphormer_sepnorm.chem.features import Molecules, read_molecules, without_salts
from graphormer_sepnorm.config import Config, Limit, Scale
from graphormer_sepnorm.datasets.store import in_memory
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import Graphs
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.predict.classes import ClassSets
from graphormer_sepnorm.predict.forward import Output, batches_for, embedding_of, prediction_of, rows_of_molecules
from graphormer_sepnorm.predict.intervals import Intervals, spread_of_models
from graphormer_sepnorm.predict.trust import Trust
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.runs.arrays import check_has_weights
from graphormer_sepnorm.runs.zoo import AssayLimit, resolve_model
from graphormer_sepnorm.system.device import Compute, computing, current
from graphormer_sepnorm.system.workers import CHUNK, Chunk, Smiles, in_chunks, joined_results, map_chunks
from graphormer_sepnorm.tables.rows import NO_CONDITIONS, AskedConditions
from graphormer_sepnorm.tasks import TASKS, make_task
from graphormer_sepnorm.tasks.scales import limited

PAIRS_PER_PIECE = 8_000_000
CHUNK_OF_A_CORE = 250  # a fraction of a second, so that a small table keeps all cores busy until its end


class Results(Protocol):
    """Results of a reader for some SMILES."""

    @property
    def errors(self) -> list[str]:
        """One text per SMILES: the reason why it could not be read, or ""."""


Result = TypeVar("Result", bound=Results, covariant=True)


@dataclass(frozen=True)
class Predictions:
    """Predictions for M SMILES; what is None was not requested.

    ``values`` [M, tasks] are on the targets' own scale or probabilities, float64 where labels have an ``offset``.
    ``spread`` [M, tasks] is the standard deviation over the models, or the expected one of the error. Both are NaN
    where the SMILES could not be read, and ``errors`` says why. ``warnings`` are about features that no training
    molecule has, and, with the nearness, that none is similar.
    """

    values: np.ndarray
    spread: np.ndarray
    errors: list[str]
    warnings: list[str]
    nearness: "Nearness | None" = None
    limit_words: Mapping[str, list[str]] | None = None  # by target whose assay has a limit; "" far from it
    alerts: list[str] | None = None
    properties: np.ndarray | None = None  # float64 [M, P]
    parts: "tuple[Predictions, ...]" = ()  # those of each of several models side by side


@dataclass(frozen=True)
class Nearness:
    """Similarities of M molecules to the training molecules; NaN or "" for what could not be read or was not kept."""

    similarity: np.ndarray  # the largest Tanimoto similarity
    molecule: list[str]  # SMILES of the training molecule that has it
    distance: np.ndarray  # the smallest one between embeddings of the CLS by the first model
    row: np.ndarray | None = None  # the number of that training molecule, -1 if unreadable; None: not known


@dataclass(frozen=True)
class Embeddings:
    """Embeddings of the CLS: ``values`` float32 [M, D], NaN where the SMILES could not be read, ``errors`` says why."""

    values: np.ndarray
    errors: list[str]


class MoleculeModel(Protocol[Result]):
    """Turns molecules into results: ``Predictor`` or ``Embedder``."""

    @property
    def featurizer(self) -> str: ...
    @property
    def asked_conditions(self) -> AskedConditions: ...  # what it reads in addition to molecules
    @property
    def models(self) -> list[tuple[Network, Config]]: ...
    @property
    def device(self) -> torch.device: ...
    def compute(self, molecules: Molecules) -> Result: ...


class MovableModel(MoleculeModel[Result], Protocol):
    """A model that can be moved to another device."""

    def to(self, device: torch.device) -> "MovableModel[Result]": ...


class Reader(MoleculeModel[Predictions], Protocol):
    """A model that computes its predictions, or a ``Describer`` of it."""

    @property
    def outputs(self) -> "list[Output]": ...  # that the networks compute for each molecule
    def ready(self, molecules: Molecules) -> Molecules:
        """The molecules as the networks read them; raises InputError if required conditions are missing."""

    def predictions(self, molecules: Molecules, outputs: list[np.ndarray]) -> Predictions:
        """Predictions from the ``outputs`` [M, width] of the networks."""


class PredictingModel(Reader, Protocol):
    """Interface of predicting models for commands, page and library; ``scales`` to ``classes`` as in ``TaskConfig``."""

    targets: tuple[str, ...]
    scales: tuple[Scale, ...]
    limits: tuple[tuple[Limit, Limit], ...]
    offset: tuple[float, ...]
    classes: tuple[tuple[str, ...], ...]
    assay_limits: Mapping[str, AssayLimit]  # by target whose assay has one
    descriptions: Mapping[str, str]  # what is measured and its unit, by target that a card describes
    trust: Trust | None

    @property
    def kind(self) -> str: ...
    @property
    def gives_spread(self) -> bool: ...
    @property
    def digest(self) -> str: ...  # of all state except the networks
    @property
    def embedder(self) -> "Embedder": ...  # whose embeddings measure distances to the training molecules
    def to(self, device: torch.device) -> "PredictingModel": ...
    def under(self, conditions: Mapping[str, object]) -> "PredictingModel":
        """The model under conditions that are the same for all molecules; raises InputError for unknown ones."""


class Predictor:
    """Networks on one device that predict the same targets from the same features; their predictions are averaged."""

    asked_conditions = NO_CONDITIONS
    offset: tuple[float, ...] = ()
    assay_limits: Mapping[str, AssayLimit] = {}
    descriptions: Mapping[str, str] = {}
    trust: Trust | None = None
    digest = ""

    def __init__(self, models: list[tuple[Network, Config]]):
        faces = {face_of(config) for _, config in models}
        if len(faces) > 1:
            kinds = sorted(f"{kind} of {', '.join(names)} ({features})" for kind, names, features in faces)
            raise InputError(
                f"the models cannot be averaged, they differ in targets or features: {' and '.join(kinds)}"
            )
        self.models = models
        self.kind, self.targets, self.featurizer = faces.pop()
        task = models[0][1].task
        self.scales, self.limits, self.classes = task.scales, task.limits, task.classes
        self.device = models[0][0].cls.device

    @property
    def gives_spread(self) -> bool:
        return len(self.models) > 1

    @property
    def embedder(self) -> "Embedder":
        return Embedder(*self.models[0])

    def to(self, device: torch.device) -> Self:
        for model, _ in self.models:
            model.to(device)
        self.device = self.models[0][0].cls.device
        return self

    def under(self, conditions: Mapping[str, object]) -> Self:
        if conditions:
            raise InputError(f"{next(iter(conditions))} is not a condition of the model, which reads none")
        return self

    def predict(self, smiles: Smiles) -> Predictions:
        """Predictions as in the command ``predict``; a SMILES that cannot be read affects only its own row."""
        return self.compute(read_molecules(self.featurizer, smiles))

    def compute(self, molecules: Molecules) -> Predictions:
        return self.predictions(molecules, computed(molecules, self.outputs))

    def ready(self, molecules: Molecules) -> Molecules:
        return molecules

    @property
    def outputs(self) -> list["Output"]:
        return [prediction_of(model, make_task(config.task, model.cls.device)) for model, config in self.models]

    def predictions(self, molecules: Molecules, outputs: list[np.ndarray]) -> Predictions:
        by_model = np.stack(outputs)
        spread = spread_of_models(by_model).astype(np.float32)
        values = limited(by_model.mean(axis=0), self.limits)
        return Predictions(values, spread, molecules.errors, [""] * len(molecules.errors))


def face_of(config: Config) -> tuple[str, tuple[str, ...], str]:
    """Kind, targets and featurizer, which networks that are averaged have in common."""
    return config.task.kind, config.task.targets, config.featurizer


class Embedder:
    """A model in evaluation mode as a source of embeddings."""

    settings: tuple[str, ...] = ()  # that they depend on, other than the model
    asked_conditions = NO_CONDITIONS

    def __init__(self, model: Network, config: Config):
        self.model = model
        self.width = model.config.width
        self.models = [(model, config)]
        self.featurizer = config.featurizer

    @property
    def device(self) -> torch.device:
        return self.model.cls.device

    def to(self, device: torch.device) -> Self:
        self.model.to(device)
        return self

    @property
    def output(self) -> "Output":
        return embedding_of(self.model)

    def compute(self, molecules: Molecules) -> Embeddings:
        (values,) = computed(molecules, [self.output])
        return Embeddings(values, molecules.errors)


def known_trust(model: PredictingModel) -> Trust:
    """The knowledge of a model about its errors and training molecules; raises InputError if it knows nothing."""
    if model.trust is None:
        raise InputError(
            "the model has no information on its training molecules, so it has no intervals and compares nothing with "
            "them: name adme or the run folder of a model that was trained on a table"
        )
    return model.trust


def known_intervals(model: PredictingModel) -> Intervals:
    """The intervals of a model; raises InputError if it has none."""
    if TASKS[model.kind].predicts_probabilities:
        raise InputError("this model predicts classes, which have prediction sets in place of intervals")
    if (intervals := known_trust(model).intervals) is None:
        raise InputError("the model has no intervals, because a target had no labels in its validation split")
    return intervals


def interval_ends(
    model: PredictingModel, confidence: float, values: np.ndarray, spread: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The ends of intervals around predictions, within the limits of the targets: float64 [M, T] each."""
    return known_intervals(model).ends(confidence, values, spread, model.limits)


def known_sets(model: PredictingModel) -> ClassSets:
    """The prediction sets of a classification; raises InputError if it has none."""
    if (sets := known_trust(model).class_sets) is None:
        raise InputError("the model is of an earlier version without prediction sets: train it again")
    return sets


def stripping_salts(reader: MoleculeModel) -> None:
    """Makes a reader read each SMILES without counter-ions and solvents."""
    reader.featurizer = without_salts(reader.featurizer)  # type: ignore[misc]


def computed(molecules: Molecules, outputs: Sequence[Output]) -> list[np.ndarray]:
    """Each output, float32 [M, width], NaN for molecules that could not be read; prepared once for equal encodings."""
    rows = [np.full((len(molecules.errors), output.width), np.nan, np.float32) for output in outputs]
    alike = {output.model.config.encodings for output in outputs}
    for piece in pieces(molecules.graphs):
        for encodings in alike:
            chosen = [place for place, output in enumerate(outputs) if output.model.config.encodings == encodings]
            wanted = [outputs[place] for place in chosen]
            data = in_memory(molecules.graphs.take(piece), encodings)
            by_row = rows_of_molecules(wanted, data, batches_for(wanted[0].model, data))
            for place, values in zip(chosen, by_row, strict=True):
                rows[place][molecules.rows[piece]] = values
    return rows


def pieces(graphs: Graphs) -> list[np.ndarray]:
    """Indices of the molecules, in lists of about ``PAIRS_PER_PIECE`` atom pairs that can be prepared at once."""
    if len(graphs) == 0:
        return []
    piece_of = graphs.pair_ptr[1:] // PAIRS_PER_PIECE
    return np.split(np.arange(len(graphs)), np.flatnonzero(np.diff(piece_of)) + 1)


def molecules_at_once(device: torch.device) -> int:
    """The number of molecules in a chunk; a GPU takes more to be busy."""
    return CHUNK_OF_A_CORE if device.type == "cpu" else CHUNK


def compute_chunks(
    reader: MoleculeModel[Result], chunks: Iterable[Chunk], smiles_of: Callable[[Chunk], Smiles]
) -> Iterator[tuple[Chunk, Result]]:
    """Results of chunks of SMILES in order, the same for any number of cores, as each chunk has one thread.

    On the CPU, copies of the reader in worker processes do all of the work; elsewhere, workers only read the molecules.
    """
    if reader.device.type == "cpu":
        work, chunks = partial(read_and_compute, reader, current()), iter(chunks)
        first = list(islice(chunks, 1))
        yield from map_chunks(work, chain(first, chunks), smiles_of, prepare=lambda: work(smiles_of(first[0])[:1]))
    else:
        for chunk, molecules in map_chunks(partial(read_molecules, reader.featurizer), chunks, smiles_of):
            yield chunk, reader.compute(molecules)


def compute_all(reader: MoleculeModel[Result], smiles: Smiles) -> Result:
    """The results of all molecules, computed in chunks as ``compute_chunks``."""
    chunks = list(in_chunks(smiles, molecules_at_once(reader.device))) or [[]]
    return joined_results([result for _, result in compute_chunks(reader, chunks, list)])


def read_and_compute(reader: MoleculeModel[Result], compute: Compute, smiles: Smiles) -> Result:
    """Results of a chunk, with the device and precision of the main process."""
    with computing(compute):
        return reader.compute(read_molecules(reader.featurizer, smiles))


def load_networks(names: Iterable[str | Path]) -> list[tuple[Network, Config]]:
    """Loads run folders, weights files or shipped weights as ``checkpoint.load_model``, onto ``device.current``."""
    loaded = map(checkpoint.load_model, map(resolve_model, names))
    return [(model.to(current().device), config) for model, config, _ in loaded]


def load_embedder(name: str) -> Embedder:
    """Loads one model as ``load_networks`` does, for its embeddings; raises InputError also for a table model."""
    check_has_weights(resolve_model(name), name, predict=f"graphormer-sepnorm predict {shlex.quote(name)}")
    return Embedder(*load_networks([name])[0])

"""Networks trained on a table, one per fold on the others, to the last epoch; their predictions are averaged.

Axis letters: R networks, M molecules, T targets."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from graphormer_sepnorm.chem.features import Molecules, as_written
from graphormer_sepnorm.config import Config
from graphormer_sepnorm.datasets.store import MoleculeDataset, prepare
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import Graphs
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.predict.forward import Output, compute_dataset, embedding_and_prediction_of
from graphormer_sepnorm.predict.predictors import computed
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.runs.folder import Parts, RunFolder
from graphormer_sepnorm.system import distributed
from graphormer_sepnorm.system.device import Compute, autocast, computing, current
from graphormer_sepnorm.system.workers import in_processes
from graphormer_sepnorm.table_model.features import GraphsOf, MoleculeFeatures, condition_values
from graphormer_sepnorm.table_model.labels import CannotLearn, Labels
from graphormer_sepnorm.table_model.members.base import Fitted, Member, ToFit
from graphormer_sepnorm.tasks import TASKS, make_task
from graphormer_sepnorm.training.run_writer import RunWriter, refuse_other, training_alone
from graphormer_sepnorm.training.trainer import Trainer, fitted_epochs


@dataclass(frozen=True, eq=False)
class NetworksMember(Member):
    share: ClassVar = 0.3
    described: ClassVar = "the mean of the graph transformers that were trained on the table"

    networks: list[tuple[Network, Config, dict]]  # with the facts of their training

    @classmethod
    def fit(cls, table: ToFit) -> Fitted:
        molecules, look, count = table.molecules, table.look, len(table.folds)
        out_of_fold = np.full_like(table.labels.y, np.nan)
        with tempfile.TemporaryDirectory() as elsewhere:
            whole = RunFolder(table.folder or Path(elsewhere))
            if distributed.rank() == 0:
                whole.begin_parts(Parts("model", count))
            graphs, weight = molecules.of(GraphsOf(as_written(table.config.featurizer))), table.labels.weight
            weight = None if weight is None else weight.astype(np.float32)
            graphs = replace(graphs, weight=weight, conditions=molecules.of(condition_values))
            data = prepare(labelled_graphs(graphs, table.labels), table.config.model.encodings)
            own = replace(table, molecules=MoleculeFeatures([]), look=None)  # what the processes need
            work = partial(fit_fold, whole, data, own, current())
            rows: list[np.ndarray] = []
            for part in (slice(1), slice(1, None)) if look else (slice(None),):
                for each in in_processes(work, count, part):
                    if isinstance(each, InputError):
                        raise each
                    rows.append(each)
                if look and 1 == len(rows) < count and (reason := look(table, rows[0])):
                    minutes = (count - 1) * sum(line["seconds"] for line in whole.member(0).read_metrics()) / 60
                    others = f"the other {count - 1} would take about {minutes:.2g} minutes of computing"
                    raise CannotLearn(f"{reason}; {others}; --ensemble {count} trains them")
            trained = [load_network(whole.member(number)) for number in range(count)]
            member = cls([(network, without_offset(config, table.config), facts) for network, config, facts in trained])
        molecules.computed |= member.computed(rows)
        for number, (_, predicted) in enumerate(table.folds.parts()):
            out_of_fold[predicted] = molecules.of(member.by_network)[predicted, number]
        return Fitted(member, out_of_fold)

    @property
    def models(self) -> list[tuple[Network, Config]]:
        return [(network, config) for network, config, _ in self.networks]

    @property
    def outputs(self) -> list[Output]:
        return [
            embedding_and_prediction_of(network, make_task(config.task.differences, network.cls.device))
            for network, config in self.models
        ]

    def computed(self, outputs: list[np.ndarray]) -> dict[Callable, np.ndarray]:
        rows, width = np.stack(outputs, axis=1), self.networks[0][0].config.width
        return {self.by_network: rows[:, :, width:], self.embeddings: rows[:, :, :width]}

    def by_network(self, molecules: MoleculeFeatures) -> np.ndarray:
        """The predictions of each network: float32 [M, R, T]."""
        return self.answers(molecules)[self.by_network]

    def embeddings(self, molecules: MoleculeFeatures) -> np.ndarray:
        """The embeddings of each network: float32 [M, R, D]."""
        return self.answers(molecules)[self.embeddings]

    def answers(self, molecules: MoleculeFeatures) -> dict[Callable, np.ndarray]:
        graphs = molecules.of(GraphsOf(as_written(self.networks[0][1].featurizer)))
        graphs = replace(graphs, conditions=molecules.of(condition_values))
        molecules.computed |= (columns := self.computed(computed(Molecules.of_graphs(graphs), self.outputs)))
        return columns

    def predict(self, molecules: MoleculeFeatures) -> np.ndarray:
        return molecules.of(self.by_network).mean(axis=1, dtype=np.float64)

    @classmethod
    def files(cls, folder: Path) -> list[Path]:
        return [RunFolder(folder).record, *(member.weights for member in RunFolder(folder).members())]

    def save(self, folder: Path) -> None:
        RunFolder(folder).begin_parts(Parts("model", len(self.networks)))
        for number, (network, config, facts) in enumerate(self.networks):
            checkpoint.save_model(RunFolder(folder).member(number).weights, network, config, facts)

    @classmethod
    def load(cls, folder: Path, members: dict[str, Member]) -> "NetworksMember":
        return cls([load_network(run) for run in RunFolder(folder).members()])


def fit_fold(whole: RunFolder, data: Graphs, table: ToFit, compute: Compute, number: int) -> np.ndarray | InputError:
    """Trains the network of a fold; returns embeddings and predictions of all molecules [M, D + T], or the error."""
    learnt, predicted = table.folds.parts()[number]
    run, config = whole.member(number), of_fold(table, number)
    parts = labelled_graphs(data.take(learnt), table.known(number).take(learnt)), data.take(predicted)
    label = f"network {number + 1} of {len(table.folds)}, "
    try:
        with computing(compute):
            train_network(run, config, parts, label, table.resume, table.verbose)
            network, config, _ = load_network(run)
            with autocast(config.train.precision, network.cls.device):
                output = embedding_and_prediction_of(network, make_task(config.task, network.cls.device))
                return compute_dataset(output, MoleculeDataset([data]))
    except InputError as error:
        return error


def labelled_graphs(graphs: Graphs, labels: Labels) -> Graphs:
    bounds = None if labels.bounds is None else labels.bounds.astype(np.float32)
    return graphs.with_targets(labels.y.astype(np.float32), bounds)


def of_fold(table: ToFit, number: int) -> Config:
    """The config of the network of a fold, whose validation molecules do not select an epoch."""
    config, task = table.config, table.labels.task
    train = replace(config.train, seed=config.train.seed + number, patience=0, keep="last")
    return replace(config, task=replace(task, metric=TASKS[task.kind].curve_metric), train=train)


def without_offset(config: Config, whole: Config) -> Config:
    """The config of a network that learnt differences from an offset, so that it predicts the labels by itself."""
    task = whole.task
    return replace(config, task=replace(config.task, mean=task.mean, offset=task.offset)) if task.offset else config


def check_resumable(whole: RunFolder, table: ToFit) -> None:
    """Raises InputError if the networks of a run folder were begun with another model or training."""
    for number, (learnt, _) in enumerate(table.folds.parts()):
        state = whole.member(number).state
        if state.exists():
            before, now = checkpoint.load_tensors(state)[1], of_fold(table, number)
            now = replace(now, task=before.task, train=fitted_epochs(now.train, len(learnt)))
            refuse_other(before, now, state)


def train_network(
    run: RunFolder, config: Config, data: Sequence[Graphs], label: str, resume: bool, verbose: bool = True
) -> None:
    """Trains on the first data to the last epoch; curves show the score on the second, if it can be scored."""
    task, (learnt, val) = make_task(config.task), (MoleculeDataset([each]) for each in data)
    try:
        task.check_learnable(learnt.y)
    except InputError as error:
        raise CannotLearn(str(error)) from None
    try:
        task.check_scorable(val.y, "validation")
    except InputError:
        val = learnt
    with training_alone(run, resume):
        RunWriter(Trainer(config, learnt, val), run, verbose, label).train(resume)


def load_network(run: RunFolder) -> tuple[Network, Config, dict]:
    network, config, facts = checkpoint.load_model(run.path)
    return network.to(current().device), config, facts

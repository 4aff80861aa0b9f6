"""Trains a run from a config, and scores runs."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from graphormer_sepnorm.config import Config, TaskConfig
from graphormer_sepnorm.dataset import SPLITS
from graphormer_sepnorm.datasets.benchmarks import find_dataset, load_split
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.forward import predict_together
from graphormer_sepnorm.predict.intervals import spread_of_models
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.runs.folder import RunFolder, weights_file
from graphormer_sepnorm.runs.plots import plot_predictions
from graphormer_sepnorm.system import distributed
from graphormer_sepnorm.system.device import current
from graphormer_sepnorm.system.files import write_atomically
from graphormer_sepnorm.system.signals import advising
from graphormer_sepnorm.tables.prepared_table import NAME, TABLE, rows_of_split
from graphormer_sepnorm.tables.writers.base import DIGITS
from graphormer_sepnorm.tasks import METRICS, TASKS, make_task
from graphormer_sepnorm.training.optimizers import find_optimizer
from graphormer_sepnorm.training.run_writer import RunWriter, training_alone
from graphormer_sepnorm.training.trainer import Trainer


def train_run(
    config: Config, out: Path, root: str | os.PathLike | None = None, resume: bool = False, command: str = ""
) -> dict:
    """Trains on a named dataset, or on the table in the run folder, and scores the best checkpoint on the test split.

    Args:
        config: the run.
        out: run folder; must be new unless ``resume``.
        root: folder of the downloaded datasets.
        resume: continue from the last saved epoch of ``out``.
        command: the options of the command as JSON, to keep in the run folder; "": none.

    Returns:
        The result of ``evaluate_run`` on the test split, which is also written to ``test.json``.

    Raises:
        InputError: bad input of any kind, then nothing is written; or a training that diverges, which keeps its epochs.
    """
    run = RunFolder(out)
    run.check_free(resume)
    find_optimizer(config.train.optimizer)
    dataset = run.dataset(config)
    if config.featurizer != (expected := find_dataset(dataset).featurizer):
        raise InputError(f"the model reads {config.featurizer!r} features, {config.dataset} has {expected!r} ones")

    def advice() -> str:
        if not run.state.exists():
            return f"no epoch was completed, so {out} keeps nothing: begin again with the same command and --resume"
        return f"{out} keeps the last completed epoch: continue with the same command and --resume"

    with advising(advice):
        train, val, test = (load_split(dataset, split, config.model.encodings, root) for split in SPLITS)
        make_task(config.task).check_scorable(test.y, "test")
        distributed.wait_for_all()
        trainer = Trainer(config, train, val, verbose=True)
        with training_alone(run, resume):
            if command and distributed.rank() == 0:
                write_atomically(run.command, command.encode())
            if (averaging := config.train.averaging) and distributed.rank() == 0:
                print(f"evaluated and saved: moving averages of the weights (averaging {averaging})", file=sys.stderr)
            RunWriter(trainer, run).train(resume)
            scores = score_runs([out], "test", root)
            if distributed.rank() == 0:
                scores.write(run)
            distributed.wait_for_all()
    return scores.result


@dataclass(frozen=True)
class Scores:
    """Scores of a run on a split, or of the mean prediction of several runs."""

    result: dict
    task: TaskConfig
    y: np.ndarray  # [M, tasks], NaN where missing
    prediction: np.ndarray  # [M, tasks]
    by_network: np.ndarray  # [models, M, tasks]
    table: Path | None = None  # that contains the molecules, for a run on a user's table
    bounds: np.ndarray | None = None  # [M, tasks, 2] of censored labels

    @property
    def spread(self) -> np.ndarray:
        """[M, tasks] standard deviation over the networks, which scales the intervals."""
        return spread_of_models(self.by_network)

    def write(self, run: RunFolder, lines: list[list] | None = None) -> None:
        """Writes the predictions as a table and a plot, and then ``test.json``, with which the run is finished."""
        run.write_predictions(self.lines() if lines is None else lines)
        plot_predictions(self.task, self.y, self.prediction, run.path, self.bounds)
        run.write_test(self.result)

    def lines(self) -> list[list]:
        """A header, then a line per molecule; rows of a named dataset are numbered from 1, without SMILES."""
        split, targets = self.result["split"], self.task.targets
        if self.table is not None:
            return prediction_lines(self.task, self.prediction, *rows_of_split(self.table, split, targets))
        texts = np.where(np.isnan(self.y), "", self.y.astype(str)).tolist()
        return prediction_lines(self.task, self.prediction, [[row, "", split, *y] for row, y in enumerate(texts, 1)])


def prediction_lines(task: TaskConfig, prediction: np.ndarray, rows: list[list], names: Sequence[str] = ()) -> list:
    """A header, then a line per molecule: row, SMILES, split, labels, predictions, and its name if there are names.

    The predictions are [M, T], or [M, 3 T] with the ends of their intervals behind them; NaN is unknown."""
    header, digits = ["row", "smiles", "split", *task.targets], DIGITS["precise" if task.offset else "number"]
    numbers = ([f"{value:.{digits}g}".replace("nan", "") for value in values] for values in prediction.tolist())
    columns = [f"{name}_predicted" for name in task.targets]
    columns += [f"{name}_{end}" for name in task.targets for end in ("low", "high")]
    header += columns[: prediction.shape[1]]
    lines = [header, *([*row, *predicted] for row, predicted in zip(rows, numbers, strict=True))]
    return [[*line, name] for line, name in zip(lines, [NAME, *names], strict=True)] if names else lines


def score_runs(runs: list[Path], split: str, root: str | os.PathLike | None = None) -> Scores:
    """Scores the mean prediction of the best checkpoints of runs on one dataset."""
    predictions, parameters = [], 0
    for run in runs:
        model, config, facts = checkpoint.load_model(run)
        dataset = RunFolder.around(run).dataset(config)
        data = load_split(dataset, split, config.model.encodings, root)
        make_task(config.task).check_scorable(data.y, split)
        model.to(current().device)
        predictions.append(predict_together(model, data, make_task(config.task, model.cls.device)))
        parameters += sum(p.numel() for p in model.parameters())
    by_network = np.stack(predictions)
    prediction = by_network.mean(axis=0)
    benchmark = find_dataset(dataset)
    official = benchmark.evaluate if config.task.metric == benchmark.task.metric else None
    result = {
        "dataset": config.dataset,
        "split": split,
        "metric": config.task.metric,
        "value": (official or METRICS[config.task.metric])(data.y, prediction),
        "scores": TASKS[config.task.kind].scores(data.y, prediction),
        "n": len(data),
        "parameters": parameters,
        "seed": config.train.seed,
        "epoch": facts.get("epoch"),
    }
    if missing := make_task(config.task).left_out(data.y):
        result["left_out"] = missing
    if data.bounds is not None:
        censored = np.isfinite(data.bounds).any(axis=2).sum(axis=0).tolist()
        result["censored"] = dict(zip(config.task.targets, censored, strict=True))
    table = Path(dataset) if config.dataset == TABLE else None
    return Scores(result, config.task, data.y, prediction, by_network, table, data.bounds)


def evaluate_run(run: Path, split: str = "test", root: str | os.PathLike | None = None) -> dict:
    """The scores of a run's best checkpoint on a split; raises InputError if they cannot be computed."""
    return score_runs([run], split, root).result


def evaluate_together(runs: list[Path], split: str = "test", root: str | os.PathLike | None = None) -> dict:
    datasets = [checkpoint.load_tensors(weights_file(run))[1].dataset for run in runs]
    for run, dataset in zip(runs, datasets, strict=True):
        if dataset == TABLE:
            raise InputError(f"{run} was trained on a table of its own: score it separately")
        if dataset != datasets[0]:
            raise InputError(f"{run} was trained on {dataset}, {runs[0]} on {datasets[0]}: score them separately")
    return score_runs(runs, split, root).result

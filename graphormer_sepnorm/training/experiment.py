"""Whole runs: from a config and a data folder to a run folder, and from a run folder to a score."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from graphormer_sepnorm.config import Config, TaskConfig
from graphormer_sepnorm.data.dataset import SPLITS
from graphormer_sepnorm.data.load import find_dataset, load_split
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference.forward import predict_together
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.runs.folder import RunFolder, member_paths
from graphormer_sepnorm.runs.plots import plot_predictions
from graphormer_sepnorm.system import distributed
from graphormer_sepnorm.system.device import autocast, current
from graphormer_sepnorm.system.replicas import run_together
from graphormer_sepnorm.system.signals import advising
from graphormer_sepnorm.tasks import METRICS, Task, all_scores, check_scorable
from graphormer_sepnorm.training.optimizers import find_optimizer
from graphormer_sepnorm.training.recorder import Recorder, training_alone
from graphormer_sepnorm.training.schedule import smallest_batch_size
from graphormer_sepnorm.training.trainer import Trainer


def train_run(
    config: Config,
    out: Path,
    root: str | os.PathLike | None = None,
    resume: bool = False,
    processes: int | None = 1,
) -> dict:
    """Trains on a named dataset, or on the table in the run folder, and scores the best checkpoint on the test split.

    Args:
        config: the run.
        out: run folder; must be new unless ``resume``.
        root: folder of the downloaded datasets.
        resume: go on from the last completed epoch of ``out``.
        processes: number of replicas of this process that train together, each on one thread; None: as many as serve.

    Returns:
        the result of ``evaluate_run`` on the test split, which is also written to ``test.json``.

    Raises:
        InputError: bad input of any kind; nothing is written then.
    """
    run = RunFolder(out)
    run.check_free(resume)
    distributed.check_replicas(processes)
    find_optimizer(config.train.optimizer)
    dataset = run.dataset(config)
    if config.featurizer != find_dataset(dataset).featurizer:
        raise InputError(
            f"the model reads {config.featurizer!r} features, {config.dataset} has "
            f"{find_dataset(dataset).featurizer!r} ones"
        )
    with advising(f"{out} keeps the last completed epoch: go on with the same command and --resume"):
        train, val, test = (load_split(dataset, split, config.model.encodings, root) for split in SPLITS)
        check_scorable(config.task, test.y, "test")
        distributed.wait_for_all()

        def train_and_score() -> dict:
            recorder = Recorder(Trainer(config, train, val, verbose=True), run)
            with training_alone(run, resume):
                if resume:
                    recorder.resume()
                recorder.train()
                scores = score_runs([out], "test", root)
                if distributed.rank() == 0:
                    scores.write(run)
            return scores.result

        smallest_batch = smallest_batch_size(len(train), config.train.batch_size)
        return run_together(distributed.num_replicas(processes, smallest_batch), train_and_score)


@dataclass(frozen=True)
class Scores:
    """How well one run does on a split, or the mean prediction of several.

    Attributes:
        result: what ``evaluate_run`` returns.
        task: of the first run.
        y: [M, tasks] labels, NaN where missing.
        prediction: [M, tasks].
    """

    result: dict
    task: TaskConfig
    y: np.ndarray
    prediction: np.ndarray

    def write(self, run: RunFolder) -> None:
        """Writes ``test.json`` and the picture of the predictions."""
        run.write_test(self.result)
        plot_predictions(self.task, self.y, self.prediction, run.predictions_picture(self.task.kind))


def score_runs(runs: list[Path], split: str, root: str | os.PathLike | None = None) -> Scores:
    """Scores the best checkpoints of runs on one dataset by their mean prediction; raises as ``evaluate_run``."""
    predictions, parameters = [], 0
    for run in runs:
        model, config, facts = checkpoint.load_model(run)
        data = load_split(RunFolder.around(run).dataset(config), split, config.model.encodings, root)
        check_scorable(config.task, data.y, split)
        model.to(current().device)
        with autocast(config.train.precision, model.cls.device):
            predictions.append(predict_together(model, data, Task(config.task)))
        parameters += sum(p.numel() for p in model.parameters())
    prediction = np.mean(predictions, axis=0)
    result = {
        "dataset": config.dataset,
        "split": split,
        "metric": config.task.metric,
        "value": METRICS[config.task.metric](data.y, prediction),
        "scores": all_scores(config.task.kind, data.y, prediction),
        "n": len(data),
        "parameters": parameters,
        "seed": config.train.seed,
        "epoch": facts.get("epoch"),
    }
    return Scores(result, config.task, data.y, prediction)


def evaluate_run(run: Path, split: str = "test", root: str | os.PathLike | None = None) -> dict:
    """Scores a run's best checkpoint, or an ensemble, on a split of its dataset.

    Returns:
        ``dataset, split, metric, value, scores, n, parameters, seed, epoch``; ``scores`` has all the metrics that are
        usual for the task, and seed and epoch are those of the last model of an ensemble.

    Raises:
        InputError: not a run folder or weights file, or a split that cannot be loaded or scored.
    """
    return score_runs(member_paths(run), split, root).result

"""Whole runs: from a config and a data folder to a run folder, and from a run folder to a score."""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout

from graphormer_sepnorm.config import Config, TaskConfig, read_config
from graphormer_sepnorm.data.dataset import SPLITS
from graphormer_sepnorm.data.load import find_dataset, load_split
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference.forward import predict_together
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.runs.folder import CONFIG, STATE, TEST, dataset_of, member_paths
from graphormer_sepnorm.runs.plots import plot_predictions
from graphormer_sepnorm.system import distributed
from graphormer_sepnorm.system.device import current
from graphormer_sepnorm.system.files import write_atomically
from graphormer_sepnorm.system.signals import advising
from graphormer_sepnorm.tasks import METRICS, Task, all_scores, check_scorable
from graphormer_sepnorm.training.trainer import Trainer

LOCK = "run.lock"


def train_run(config: Config, out: Path, root: str | os.PathLike | None = None, resume: bool = False) -> dict:
    """Trains on a named dataset, or on the table in the run folder, and scores the best checkpoint on the test split.

    Args:
        config: the run.
        out: run folder; must be new unless ``resume``.
        root: folder of the downloaded datasets.
        resume: go on from the last completed epoch of ``out``.

    Returns:
        the result of ``evaluate_run`` on the test split, which is also written to ``test.json``.

    Raises:
        InputError: bad input of any kind; nothing is written then.
    """
    check_free(out, resume)
    dataset = dataset_of(config, out)
    if config.featurizer != find_dataset(dataset).featurizer:
        raise InputError(
            f"the model reads {config.featurizer!r} features, {config.dataset} has "
            f"{find_dataset(dataset).featurizer!r} ones"
        )
    with advising(f"{out} keeps the last completed epoch: go on with the same command and --resume"):
        train, val, test = (load_split(dataset, split, config.model.encodings, root) for split in SPLITS)
        check_scorable(config.task, test.y, "test")
        distributed.wait_for_all()
        trainer = Trainer(config, train, val, out)
        with training_alone(out, resume):
            if resume:
                trainer.resume()
            trainer.run()
            scores = score_runs([out], "test", root)
            if distributed.rank() == 0:
                scores.write(out)
        return scores.result


def check_free(out: Path, resume: bool) -> None:
    """Raises InputError if training may not write to ``out``: it holds a run that is not resumed, or another's file."""
    path = out / CONFIG
    if not path.exists():
        return
    if not resume:
        raise InputError(f"{out} already holds a run: continue it with --resume, or choose another --out")
    if not (out / STATE).exists():
        try:
            read_config(path)
        except InputError as error:
            raise InputError(f"{path} is not that of a run, choose another --out ({error})") from None


@contextlib.contextmanager
def training_alone(out: Path, resume: bool) -> Iterator[None]:
    """Within it, no other run trains in the folder ``out``; of several processes of one run, the first sees to that.

    The operating system frees the lock of a process that is killed.

    Raises:
        InputError: as ``check_free``, another run trains there, or the folder cannot be written.
    """
    if distributed.rank() != 0:
        yield
        return
    path = out / LOCK
    lock = FileLock(path, blocking=False)
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise InputError(f"another process is training in {out}: wait for it, or choose another --out") from None
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    try:
        check_free(out, resume)
        yield
    finally:
        path.unlink(missing_ok=True)
        lock.release()


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

    def write(self, folder: Path) -> None:
        """Writes ``test.json`` and the picture of the predictions."""
        write_atomically(folder / TEST, (json.dumps(self.result) + "\n").encode())
        plot_predictions(self.task, self.y, self.prediction, folder)


def score_runs(runs: list[Path], split: str, root: str | os.PathLike | None = None) -> Scores:
    """Scores the best checkpoints of runs on one dataset by their mean prediction; raises as ``evaluate_run``."""
    predictions, parameters = [], 0
    for run in runs:
        model, config, facts = checkpoint.load_model(run)
        data = load_split(dataset_of(config, run), split, config.model.encodings, root)
        check_scorable(config.task, data.y, split)
        predictions.append(predict_together(model.to(current().device), data, Task(config.task)))
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

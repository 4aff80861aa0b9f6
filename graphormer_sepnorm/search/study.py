"""The study of a search: its space, folder, storage and files; each trial is a process, whose crash costs only this."""

import contextlib
import json
import multiprocessing
import signal
import sqlite3
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

import optuna
import torch
from optuna import Study, TrialPruned
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.exceptions import ExperimentalWarning, StorageInternalError
from optuna.trial import FrozenTrial, Trial, TrialState
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import QueuePool

from graphormer_sepnorm.config import Config, TrainConfig, config_to_json
from graphormer_sepnorm.datasets.benchmarks import load_split
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.plots import save_png
from graphormer_sepnorm.system.device import Compute, computing
from graphormer_sepnorm.system.files import write_atomically
from graphormer_sepnorm.tables.prepared_table import TABLE
from graphormer_sepnorm.tables.writers.base import as_csv
from graphormer_sepnorm.tasks import METRICS
from graphormer_sepnorm.training.settings import with_settings
from graphormer_sepnorm.training.trainer import Trainer

ENDED = TrialState.COMPLETE, TrialState.PRUNED
# PyTorch has no exception of its own for lack of memory on the CPU and in cuBLAS.
LACK_OF_MEMORY = ("can't allocate memory", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
PROBLEM = "problem"  # user attribute of a trial that describes what went wrong


class StudyFolder:
    def __init__(self, path: Path):
        self.path = path
        self.study = path / "study.db"  # Optuna's own storage
        self.definition = path / "study.json"
        self.trials = path / "trials.csv"  # a line per trial, for people
        self.best = path / "best.json"  # the config of the best trial so far, a recipe
        self.history = path / "history.png"
        self.importance = path / "importance.png"
        self.best_run = RunFolder(path / "best")  # scored on the test split,
        self.recipe_run = RunFolder(path / "recipe")  # and compared with this one

    def check_free(self, resume: bool) -> None:
        """Raises InputError if the folder cannot be used: it holds a run, or a search that is not resumed."""
        if RunFolder(self.path).holds_run:
            raise InputError(f"{self.path} holds a run: choose another --out")
        if self.definition.exists() and not resume:
            raise InputError(f"{self.path} already holds a search: continue it with --resume, or choose another --out")

    def begin(self, definition: dict) -> None:
        """Saves the definition of the search; raises InputError if the folder holds a search with another one."""
        content = (json.dumps(definition, indent=2) + "\n").encode()
        if self.definition.exists() and self.definition.read_bytes() != content:
            problem = f"{self.path} holds a search with other options"
            raise InputError(f"{problem}: resume with the same, or choose another --out")
        write_atomically(self.definition, content)


@contextlib.contextmanager
def storage_problems(path: Path) -> Iterator[None]:
    try:
        yield
    except (StorageInternalError, SQLAlchemyError) as error:
        cause: BaseException = error
        while cause.__cause__ is not None and not isinstance(cause, sqlite3.Error):
            cause = cause.__cause__
        raise InputError(f"cannot read or write {path}: {str(cause).splitlines()[0]}") from None


def open_study(path: Path, config: Config) -> Study:
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # failed trials, which it would report, are reported here
    # By path, which may contain characters that a URL must not.
    connect = partial(sqlite3.connect, path, timeout=60, check_same_thread=False)
    try:
        storage = optuna.storages.RDBStorage("sqlite://", {"creator": connect, "poolclass": QueuePool})
    except RuntimeError as error:
        raise InputError(f"{path}: {error}") from None
    way: Literal["maximize", "minimize"] = "maximize" if METRICS[config.task.metric].higher_is_better else "minimize"
    pruner = optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=config.train.epochs // 5)
    return optuna.create_study(storage=storage, pruner=pruner, study_name="tune", direction=way, load_if_exists=True)


def give_up_running(study: Study) -> None:
    """Marks trials of an interrupted search as failed; their values will be tried again."""
    for trial in trials_in(study, TrialState.RUNNING):
        study.tell(trial.number, state=TrialState.FAIL)


def trials_in(study: Study, *states: TrialState) -> list[FrozenTrial]:
    return study.get_trials(deepcopy=False, states=states)


def best_of(trial: FrozenTrial, config: Config) -> float | None:
    """The validation metric of the epoch of a trial that training would keep."""
    if config.train.keep == "last" and trial.intermediate_values:
        return trial.intermediate_values[max(trial.intermediate_values)]
    choose = max if METRICS[config.task.metric].higher_is_better else min
    return choose(trial.intermediate_values.values(), default=None)


def write_trials(study: Study, folder: StudyFolder, config: Config) -> None:
    if trials_in(study, TrialState.COMPLETE):
        write_atomically(folder.best, config_to_json(with_values(config, study.best_params)).encode())
    trials = study.get_trials(deepcopy=False)
    names = sorted({name for trial in trials for name in trial.params})
    header = ["trial", "state", f"validation {config.task.metric}", "epochs", "seconds", *names, PROBLEM]
    lines = []
    for trial in trials:
        value = trial.value if trial.state == TrialState.COMPLETE else best_of(trial, config)
        seconds = None if trial.duration is None else round(trial.duration.total_seconds(), 1)
        searched = [*map(trial.params.get, names), trial.user_attrs.get(PROBLEM)]
        lines.append([trial.number, trial.state.name.lower(), value, trial.last_step, seconds, *searched])
    write_atomically(folder.trials, as_csv([header, *lines]))


def summary_of_study(study: Study, folder: StudyFolder, config: Config) -> dict:
    trials, ended = trials_in(study, TrialState.COMPLETE), trials_in(study, *ENDED)
    if not trials:
        problems = [trial.user_attrs[PROBLEM] for trial in ended if PROBLEM in trial.user_attrs]
        reason = f"; the first of {len(problems)} problems: {problems[0]}" if problems else ""
        advice = "continue with --resume and more --trials or --time-limit, or choose another --out with fewer --epochs"
        raise InputError(f"no trial was complete{reason}: {advice}")
    counts = {"trials": len(ended), "complete": len(trials), "pruned": len(ended) - len(trials)}
    best = {"metric": config.task.metric, "validation": study.best_value, "parameters": study.best_params}
    return {"out": str(folder.path), **counts, **best}


def draw_study(study: Study, folder: StudyFolder, config: Config) -> None:
    import matplotlib
    from matplotlib import pyplot
    from optuna.visualization import matplotlib as pictures

    pyplot.switch_backend("agg")
    name = f"validation {METRICS[config.task.metric].title}"
    with warnings.catch_warnings(), matplotlib.rc_context():
        warnings.simplefilter("ignore", ExperimentalWarning)
        axes = {folder.history: pictures.plot_optimization_history(study, target_name=name)}
        if len({trial.value for trial in trials_in(study, TrialState.COMPLETE)}) > 1:
            axes[folder.importance] = pictures.plot_param_importances(study, target_name=name)
        for path, axis in axes.items():
            figure = axis.get_figure(root=True)
            assert figure is not None
            figure.set_layout_engine("constrained")
            save_png(figure, path)
            pyplot.close(figure)


# By fields of ``TrainConfig`` and ``ModelConfig``; the width is a multiple of the heads.
SPACE: dict[str, BaseDistribution] = {
    "lr": FloatDistribution(2e-4, 5e-3, log=True),
    "batch_size": IntDistribution(16, 128, log=True),
    "warmup": FloatDistribution(0.0, 0.3),
    "weight_decay": FloatDistribution(0.0, 0.3),
    "optimizer": CategoricalDistribution(("adamw", "muon")),
    "layers": IntDistribution(3, 12),
    "width": IntDistribution(48, 128),
    "norm": CategoricalDistribution(("sepnorm", "sepnorm-layernorm", "sepnorm-layernorm-batchnorm", "sharenorm")),
    "messages": CategoricalDistribution((False, True)),
    "dropout": FloatDistribution(0.0, 0.4),
    "attention_dropout": FloatDistribution(0.0, 0.5),
    "embedding_std": FloatDistribution(0.02, 0.3, log=True),
}
PARTS = {name: "train" if name in TrainConfig.__dataclass_fields__ else "model" for name in SPACE}  # of a config


def fixed_by(settings: Sequence[str]) -> frozenset[str]:
    """The names in ``SPACE`` that ``settings``, as for ``with_settings``, set."""
    paths = {setting.partition("=")[0] for setting in settings}
    return frozenset(name for name, part in PARTS.items() if {f"{part}.{name}", part} & paths)


def searched(config: Config, fixed: frozenset[str]) -> dict[str, BaseDistribution]:
    """The fields to search, each with its range extended to include the value of the config."""
    places = {name: place for name, place in SPACE.items() if name not in fixed}
    if "messages" in places and (config.model.attention_layers is not None or config.model.message_gates):
        places["messages"] = CategoricalDistribution((True,))  # blocks without attention and gates need them
    if isinstance(warmup := places.get("warmup"), FloatDistribution) and config.train.schedule == "trapezoid":
        places["warmup"] = FloatDistribution(0.0, min(warmup.high, 1 - config.train.cooldown))
    return {name: including(place, name, config) for name, place in places.items()}


def including(place: Any, name: str, config: Config) -> BaseDistribution:
    value: Any = values_of(config)[name]
    if isinstance(place, CategoricalDistribution):
        return place if value in place.choices else CategoricalDistribution((*place.choices, value))
    low, high = min(place.low, value), max(place.high, value)
    if isinstance(place, FloatDistribution):
        return FloatDistribution(low, high, log=place.log)
    step = config.model.heads if name == "width" else 1
    return IntDistribution(-(-low // step) * step, high // step * step, log=place.log, step=step)


def values_of(config: Config) -> dict[str, Any]:
    return {name: getattr(getattr(config, part), name) for name, part in PARTS.items()}


def with_values(config: Config, values: Mapping[str, Any]) -> Config:
    """The config with other values for fields of ``SPACE``; the FFN stays proportional to the width."""
    changed = {f"{PARTS[name]}.{name}": value for name, value in values.items()}
    if "width" in values:
        changed["model.ffn_width"] = max(1, round(config.model.ffn_width * values["width"] / config.model.width))
    return with_settings(config, [f"{path}={json.dumps(value)}" for path, value in changed.items()])


class TrialKilled(Exception):
    """The process of a trial was killed; the message names the signal."""


class TrialProcess:
    """A process that runs ``train_trial``; its ``connection`` is readable when the trial has ended."""

    def __init__(self, *arguments: object):
        # Forked from a server that has imported PyTorch once, if supported.
        method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
        context: Any = multiprocessing.get_context(method)
        if method == "forkserver":
            context.set_forkserver_preload([__name__])
        self.connection, theirs = context.Pipe(duplex=False)
        self.process = context.Process(target=train_apart, args=(theirs, *arguments), daemon=True)
        with sigint_blocked():
            self.process.start()
        theirs.close()

    def outcome(self) -> Exception | None:
        """None if the trial was completed, or the TrialPruned, InputError or TrialKilled; others are a RuntimeError."""
        try:
            outcome = self.connection.recv()
            self.process.join(timeout=10)  # Python warns of the semaphores of a process that is killed
            return outcome
        except (EOFError, ConnectionResetError):
            self.process.join()
        code = self.process.exitcode or 0
        if code >= 0:
            raise RuntimeError(f"a trial ended with exit code {code}")
        return TrialKilled(f"killed by {signal.Signals(-code).name}")

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def train_apart(connection: Connection, *arguments: Any) -> None:
    """Runs ``train_trial`` in a process that ignores Ctrl-C, which a terminal sends to all; the parent handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    outcome: Exception | None = None
    try:
        train_trial(*arguments)
    except (TrialPruned, InputError) as error:
        outcome = error
    if not is_orphan():
        connection.send(outcome)


def train_trial(trial: Trial, folder: StudyFolder, config: Config, compute: Compute, threads: int) -> None:
    """Trains and reports every epoch; raises TrialPruned if the trial is worse, or for a ``PROBLEM``."""
    torch.set_num_threads(threads)
    with computing(compute), storage_problems(folder.study):
        train, val = (load_split(str(folder.path / TABLE), split, config.model.encodings) for split in ("train", "val"))
        trainer = None
        try:
            trainer = Trainer(config, train, val)
            for epoch in trainer.epochs():
                if is_orphan():
                    return
                trial.report(epoch.val_metric, epoch.epoch)
                if epoch.epoch < trainer.config.train.epochs and trial.should_prune():
                    raise TrialPruned
        except (InputError, MemoryError, RuntimeError) as error:
            diverges = isinstance(error, InputError) and trainer is not None
            if not diverges and not is_lack_of_memory(error):
                raise
            trial.set_user_attr(PROBLEM, str(error) if diverges else "out of memory")
            raise TrialPruned from None


def is_orphan() -> bool:
    parent = multiprocessing.parent_process()
    return parent is not None and not parent.is_alive()


def is_lack_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(map(str(error).__contains__, LACK_OF_MEMORY))


@contextlib.contextmanager
def sigint_blocked() -> Iterator[None]:
    """A process server that is started within it never receives SIGINT, not even while it imports."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # unblocks SIGINT when it starts, otherwise with the first process
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

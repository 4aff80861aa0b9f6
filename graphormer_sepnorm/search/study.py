"""The study of a search: its folder, Optuna's storage, and the files written from it."""

import contextlib
import json
import sqlite3
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import optuna
from optuna import Study
from optuna.exceptions import ExperimentalWarning, StorageInternalError
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import QueuePool

from graphormer_sepnorm.config import Config
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.plots import save_png
from graphormer_sepnorm.system.files import write_atomically
from graphormer_sepnorm.tables.writers.base import as_csv
from graphormer_sepnorm.tasks import METRICS

STARTUP_TRIALS = 5  # never pruned, because there is no median yet
ENDED = TrialState.COMPLETE, TrialState.PRUNED
PROBLEM = "problem"  # user attribute of a trial that describes what went wrong


class StudyFolder:
    """The files of a search."""

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

    def __str__(self) -> str:
        return str(self.path)

    def check_free(self, resume: bool) -> None:
        """Raises InputError if the folder cannot be used: it holds a run, or a search that is not resumed."""
        if RunFolder(self.path).holds_run:
            raise InputError(f"{self} holds a run: choose another --out")
        if self.definition.exists() and not resume:
            raise InputError(f"{self} already holds a search: continue it with --resume, or choose another --out")

    def begin(self, definition: dict) -> None:
        """Saves the definition of the search; raises InputError if the folder holds a search with another one."""
        content = (json.dumps(definition, indent=2) + "\n").encode()
        if self.definition.exists() and self.definition.read_bytes() != content:
            raise InputError(f"{self} holds a search with other options: resume with the same, or choose another --out")
        write_atomically(self.definition, content)


@contextlib.contextmanager
def storage_problems(path: Path) -> Iterator[None]:
    """Errors of a study's file become one sentence."""
    try:
        yield
    except (StorageInternalError, SQLAlchemyError) as error:
        cause: BaseException = error
        while cause.__cause__ is not None and not isinstance(cause, sqlite3.Error):
            cause = cause.__cause__
        raise InputError(f"cannot read or write {path}: {str(cause).splitlines()[0]}") from None


def open_study(path: Path, config: Config) -> Study:
    """The study in a SQLite file, created if it does not exist."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # failed trials, which it would report, are reported here
    # By path, which may contain characters that a URL must not.
    connect = partial(sqlite3.connect, path, timeout=60, check_same_thread=False)
    try:
        storage = optuna.storages.RDBStorage("sqlite://", {"creator": connect, "poolclass": QueuePool})
    except RuntimeError as error:
        raise InputError(f"{path}: {error}") from None
    return optuna.create_study(
        storage=storage,
        study_name="tune",
        direction="maximize" if METRICS[config.task.metric].higher_is_better else "minimize",
        load_if_exists=True,
        pruner=optuna.pruners.MedianPruner(STARTUP_TRIALS, n_warmup_steps=config.train.epochs // 5),
    )


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
    trials = study.get_trials(deepcopy=False)
    names = sorted({name for trial in trials for name in trial.params})
    header = ["trial", "state", f"validation {config.task.metric}", "epochs", "seconds", *names, PROBLEM]
    lines = [
        [
            trial.number,
            trial.state.name.lower(),
            trial.value if trial.state == TrialState.COMPLETE else best_of(trial, config),
            trial.last_step,
            None if trial.duration is None else round(trial.duration.total_seconds(), 1),
            *(trial.params.get(name) for name in names),
            trial.user_attrs.get(PROBLEM),
        ]
        for trial in trials
    ]
    write_atomically(folder.trials, as_csv([header, *lines]))


def summary(study: Study, folder: StudyFolder, config: Config) -> dict:
    """Results of the trials; raises InputError if none was completed."""
    trials, ended = trials_in(study, TrialState.COMPLETE), trials_in(study, *ENDED)
    if not trials:
        problems = [trial.user_attrs[PROBLEM] for trial in ended if PROBLEM in trial.user_attrs]
        reason = f"; the first of {len(problems)} problems: {problems[0]}" if problems else ""
        raise InputError(
            f"no trial was complete{reason}: continue with --resume and more --trials or --time-limit, or choose "
            "another --out with fewer --epochs"
        )
    return {
        "out": str(folder),
        "trials": len(ended),
        "complete": len(trials),
        "pruned": len(ended) - len(trials),
        "metric": config.task.metric,
        "validation": study.best_value,
        "parameters": study.best_params,
    }


def draw(study: Study, folder: StudyFolder, config: Config) -> None:
    """Plots the history of the search and the importance of each field, with Optuna."""
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

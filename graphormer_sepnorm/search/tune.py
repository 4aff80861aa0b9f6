"""A search for a recipe that suits a table of one's own, by Optuna.

One process asks and tells: it alone writes the study, a SQLite file, whose writes are complete or not there at all.
Each trial is trained in a process of its own, sees the training and the validation split, and leaves behind its
validation metrics. The test split is touched once, when the search is over.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from tqdm import tqdm

from graphormer_sepnorm.config import ADAPTER, Config
from graphormer_sepnorm.datasets.load import load_split
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.search.search_space import SearchSpace, distributions, searched, values_of, with_values
from graphormer_sepnorm.search.study import (
    PROBLEM,
    StudyFolder,
    check_optuna,
    draw,
    ended,
    give_up_running,
    open_study,
    storage_problems,
    summary,
    trials_in,
    write_best,
    write_trials,
)
from graphormer_sepnorm.search.trial import Ended, Reached, Refused, TrialProcess
from graphormer_sepnorm.system.device import current
from graphormer_sepnorm.system.signals import advising
from graphormer_sepnorm.system.torchrun import num_processes
from graphormer_sepnorm.tables.formats import WholeTable
from graphormer_sepnorm.tables.labels import LabelledTable, TableOptions, check_splits, read_labelled
from graphormer_sepnorm.tables.prepared_table import TABLE, write_labelled
from graphormer_sepnorm.tasks import METRICS
from graphormer_sepnorm.training.experiment import train_run
from graphormer_sepnorm.training.optimizers import find_optimizer

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.study import Study
    from optuna.trial import FrozenTrial, Trial

MAX_KILLED = 3
WAKE_SECONDS = 0.5  # to look at the clock
NOT_OF_SEARCH = {"path", "folds"}  # where a table lies does not matter, and a search divides it once


@dataclass(frozen=True)
class Limits:
    """How far a search goes.

    Attributes:
        trials: that end, by themselves or pruned.
        processes: trials at the same time.
        seconds: after which trials that run are given up; None: no limit.

    Raises:
        InputError: a limit that is not a number.
    """

    trials: int
    processes: int = 1
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.seconds is not None and not self.seconds >= 0:
            raise InputError(f"--time-limit {self.seconds} is not a number of minutes")


def tune(
    options: TableOptions,
    config: Config,
    out: Path,
    limits: Limits,
    space: SearchSpace | None = None,
    fixed: frozenset[str] = frozenset(),
    resume: bool = False,
    compare: bool = True,
    content: WholeTable | None = None,
) -> dict:
    """Searches for a better recipe than ``config`` on a table; its first trial is ``config`` itself.

    Args:
        options: how to read the table.
        config: what the search starts from, with the task of ``table_task`` and the dataset ``TABLE``.
        out: folder of the search.
        limits: how far it goes.
        space: where the fields that it varies may lie.
        fixed: names of fields of ``space`` that keep the value of ``config``.
        resume: go on with the search in ``out``; trials that were cut off are begun anew.
        compare: at the end, train with the best recipe and with ``config``, and score both on the test split. A search
            that was compared is over: to go on would be to choose by the test split.
        content: of the table, if it was read before.

    Returns:
        ``out, trials, complete, pruned, metric``, the ``validation`` metric and the ``parameters`` of the best trial,
        and, when compared, ``test`` with the scores of ``best`` and ``recipe``, and ``better``, whether the first is.

    Raises:
        InputError: bad input, then nothing is written; no trial was complete; or the study cannot be read or written.
    """
    check_optuna()
    if num_processes() > 1:
        raise InputError("a search has processes of its own: start it without torchrun, with --processes")
    folder = StudyFolder(out)
    folder.check_free(resume)
    find_optimizer(config.train.optimizer)
    places = searched(space or SearchSpace(), config, fixed)
    if not places:
        raise InputError("there is nothing to search: every field of the search space is set")
    labelled = read_labelled(options, config.featurizer, content)
    check_splits(options, config.task, labelled)
    facts = {
        "config": ADAPTER.dump_python(config, mode="json"),
        "table": {name: value for name, value in asdict(options).items() if name not in NOT_OF_SEARCH},
        "search": {name: asdict(place) if not isinstance(place, tuple) else place for name, place in places.items()},
    }
    advice = f"{folder} keeps the finished trials: go on with the same command and --resume"
    with advising(advice), RunFolder(out).locked():
        folder.check_free(resume)
        folder.begin(facts)
        write_labelled(out, labelled, config, options)
        for split in ("train", "val"):
            load_split(str(out / TABLE), split, config.model.encodings)  # into the cache, once for all trials
        with storage_problems(folder.study):
            study = open_study(folder.study, config)
            if not compared(folder):
                Search(study, folder, config, distributions(places, config.model.heads), limits).run()
            elif len(ended(study)) < limits.trials:
                raise InputError(
                    f"{folder} was compared on the test split after {len(ended(study))} trials: more trials would be "
                    "chosen by it; begin another --out, with --no-compare to leave the test split for later"
                )
            result = summary(study, folder, config)
            draw(study, folder, config)
        if compare:
            result |= comparison(folder, labelled, options, config, with_values(config, study.best_params))
        return result


def compared(folder: StudyFolder) -> bool:
    """Whether the comparison on the test split was begun."""
    return folder.best_run.path.exists()


@dataclass
class Running:
    """A trial in its process."""

    trial: "Trial"
    process: TrialProcess
    best: float | None = None
    epochs: int = 0
    pruned: bool = False


class Search:
    """The trials of a study, several at a time.

    Args:
        study: of Optuna.
        folder: of the study, with its table.
        config: what the search starts from.
        places: what it draws from, by the names of fields.
        limits: how far it goes.
    """

    def __init__(
        self,
        study: "Study",
        folder: StudyFolder,
        config: Config,
        places: Mapping[str, "BaseDistribution"],
        limits: Limits,
    ):
        self.study, self.folder, self.config, self.places, self.limits = study, folder, config, dict(places), limits
        self.metric = METRICS[config.task.metric]
        self.threads = max(1, torch.get_num_threads() // limits.processes)
        self.end = math.inf if limits.seconds is None else time.monotonic() + limits.seconds
        self.running: dict[Connection, Running] = {}
        self.killed = 0
        self.bar = tqdm(total=limits.trials, unit=" trials", disable=None)

    def run(self) -> None:
        """Trains until the limits are reached; raises InputError as ``listen``."""
        self.bar.update(len(ended(self.study)))
        with self.bar:
            try:
                while self.start_trials() and not self.late():
                    ready = wait(list(self.running), WAKE_SECONDS)
                    for running in [self.running[connection] for connection in self.running if connection in ready]:
                        self.listen(running)
            finally:
                for running in self.running.values():
                    running.process.kill()
        give_up_running(self.study)

    def late(self) -> bool:
        return time.monotonic() >= self.end

    def start_trials(self) -> bool:
        """Fills the free processes with trials as long as some are to begin; returns whether any is running."""
        wanted = self.limits.trials - len(ended(self.study))
        while len(self.running) < min(wanted, self.limits.processes) and not self.late():
            trial = self.ask()
            config = with_values(self.config, trial.params)
            process = TrialProcess(str(self.folder.path / TABLE), config, current(), self.threads)
            self.running[process.connection] = Running(trial, process)
        return bool(self.running)

    def ask(self) -> "Trial":
        """A new trial: the recipe itself if it was not tried, otherwise what the ended ones suggest.

        Each draws from random numbers of its own, so that one that is begun anew has the same values, and a search that
        goes on, one trial at a time, is the same as one that was never stopped.
        """
        import optuna

        number = len(ended(self.study)) + len(self.running)
        seed = np.random.SeedSequence((self.config.train.seed, number)).generate_state(1)
        self.study.sampler = optuna.samplers.TPESampler(seed=int(seed[0]))
        own = {name: value for name, value in values_of(self.config).items() if name in self.places}
        if not any(trial.params == own for trial in self.tried()) and not trials_in(self.study, "WAITING"):
            self.study.enqueue_trial(own)
        return self.study.ask(self.places)

    def tried(self) -> list["FrozenTrial"]:
        """The trials that have ended or are running."""
        return [*ended(self.study), *trials_in(self.study, "RUNNING")]

    def listen(self, running: Running) -> None:
        """Takes in what a trial says.

        Raises:
            InputError: no trial can begin, or several were killed one after the other.
        """
        message = running.process.receive()
        if isinstance(message, Reached):
            self.report(running, message)
        elif isinstance(message, Refused):
            raise InputError(message.problem)
        else:
            self.finish(running, message)

    def report(self, running: Running, reached: Reached) -> None:
        running.trial.report(reached.val_metric, reached.epoch)
        running.epochs = reached.epoch
        if self.metric.improves(reached.val_metric, running.best):
            running.best = reached.val_metric
        running.pruned = reached.epoch < self.config.train.epochs and running.trial.should_prune()
        running.process.answer(not running.pruned)

    def finish(self, running: Running, end: Ended) -> None:
        """Writes down how a trial ended; what diverged or ran out of memory counts as pruned, for others to avoid."""
        from optuna.trial import TrialState

        trial = running.trial
        if end.problem:
            trial.set_user_attr(PROBLEM, end.problem)
        if end.problem or running.pruned:
            self.study.tell(trial, state=TrialState.PRUNED)
        else:
            self.study.tell(trial, running.best)
        del self.running[running.process.connection]
        running.process.kill()
        write_best(self.study, self.folder, self.config)
        write_trials(self.study, self.folder, self.config)
        self.bar.update()
        metric = "" if running.best is None else f", validation {self.config.task.metric} {running.best:.4f}"
        how = end.problem or ("pruned" if running.pruned else "complete")
        with tqdm.external_write_mode():
            print(f"trial {trial.number}: {how} after {running.epochs} epochs{metric}", flush=True)
        self.killed = self.killed + 1 if end.by_signal else 0
        if self.killed == MAX_KILLED:
            raise InputError(
                f"{MAX_KILLED} trials in a row were {end.problem}: the machine may have too little memory for "
                f"{self.limits.processes} processes; {self.folder} keeps the finished trials, go on with --resume"
            )


def comparison(
    folder: StudyFolder, labelled: LabelledTable, options: TableOptions, config: Config, best: Config
) -> dict:
    """Trains with the best recipe and with the one that the search started from, and scores both on the test split."""
    scores: dict[str, float] = {}
    runs = {"best": (folder.best_run, best), "recipe": (folder.recipe_run, config)}
    for name, (run, own) in runs.items():
        score = run.saved_score()
        if score is None:
            write_labelled(run.path, labelled, own, options)
            score = train_run(own, run.path, resume=True)["value"]
        scores[name] = score
    return {"test": scores, "better": METRICS[config.task.metric].improves(scores["best"], scores["recipe"])}


def verdict(result: dict, recipe: str) -> str:
    """The comparison for people, in one sentence.

    Args:
        result: of ``tune``, compared.
        recipe: what the search started from.
    """
    best, own = (result["test"][name] for name in ("best", "recipe"))
    scores = f"test {result['metric']} {best:.4f} with best.json, {own:.4f} with {recipe}"
    if result["better"]:
        return f"the search found a better recipe: {scores}"
    return f"the search found nothing better than {recipe}, keep that: {scores}"

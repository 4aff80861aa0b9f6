"""Hyperparameter search for a user's table, with Optuna: trials use no test molecules, only the comparison does."""

import json
import math
import sys
import time
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path

import numpy as np
import torch
from optuna import Study
from optuna.distributions import BaseDistribution, distribution_to_json
from optuna.samplers import TPESampler
from optuna.trial import Trial, TrialState
from tqdm import tqdm

from graphormer_sepnorm.config import ADAPTER, Config
from graphormer_sepnorm.datasets.benchmarks import load_split
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.numbers import shown_together
from graphormer_sepnorm.search import study as saved
from graphormer_sepnorm.search.study import TrialKilled, TrialProcess, searched, values_of, with_values
from graphormer_sepnorm.system.device import current
from graphormer_sepnorm.system.signals import advising, num_processes
from graphormer_sepnorm.table_run import say_once
from graphormer_sepnorm.tables.formats.table import WholeTable
from graphormer_sepnorm.tables.labels import LabelledTable, TableOptions, check_splits, read_labelled
from graphormer_sepnorm.tables.prepared_table import TABLE, write_labelled
from graphormer_sepnorm.tables.remarks import remarks
from graphormer_sepnorm.tasks import METRICS
from graphormer_sepnorm.training.experiment import train_run
from graphormer_sepnorm.training.optimizers import find_optimizer

MAX_KILLED = 3
Places = dict[str, BaseDistribution]


@dataclass(frozen=True)
class SearchLimits:
    """The number of completed or pruned trials and of parallel ones; and when running ones are stopped, None: never."""

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
    limits: SearchLimits,
    fixed: frozenset[str] = frozenset(),
    resume: bool = False,
    compare: bool = True,
    content: WholeTable | None = None,
) -> dict:
    """Searches for a better recipe than ``config``, the first trial; fields in ``fixed`` keep its values."""
    if num_processes() > 1:
        raise InputError("a search has processes of its own: start it without torchrun, with --processes")
    if options.weight_column or options.feature_columns:
        raise InputError("a search trains networks without weights and conditions: leave their columns out")
    folder = saved.StudyFolder(out)
    folder.check_free(resume)
    find_optimizer(config.train.optimizer)
    if config.train.start_from is not None:
        problem = f"the trials of a search start from random weights, and the recipe from {config.train.start_from}"
        raise InputError(f"{problem}: choose another recipe, or leave train.start_from out")
    places = searched(config, fixed)
    if not places:
        raise InputError("there is nothing to search: every field of the search space is set")
    labelled = read_labelled(options, config.featurizer, content)
    check_splits(options, config.task, labelled)
    say_once(remarks(options, labelled))
    advice = f"{out} keeps the finished trials: continue with the same command and --resume"
    with advising(advice), RunFolder(out).locked():
        folder.check_free(resume)
        # The path of a table does not matter, and a search splits it once.
        table = {name: value for name, value in asdict(options).items() if name not in ("path", "folds")}
        space = {name: json.loads(distribution_to_json(place)) for name, place in places.items()}
        folder.begin({"config": ADAPTER.dump_python(config, mode="json"), "table": table, "search": space})
        write_labelled(out, labelled, config, options)
        for split in ("train", "val"):
            load_split(str(out / TABLE), split, config.model.encodings)  # fills the cache once for all trials
        with saved.storage_problems(folder.study):
            study = saved.open_study(folder.study, config)
            count = len(saved.trials_in(study, *saved.ENDED))
            if folder.best_run.path.exists() and count < limits.trials:
                problem = f"{out} was compared on the test split after {count} trials: more would be chosen by it"
                advice = "choose another --out, with --no-compare to leave the test split for later"
                raise InputError(f"{problem}; {advice}")
            Search(study, folder, config, places, limits).run()
            result = saved.summary_of_study(study, folder, config)
            saved.draw_study(study, folder, config)
        if compare:
            result |= comparison(folder, labelled, options, config, with_values(config, study.best_params))
        return result


class Search:
    """Trials in processes: Optuna's own ``optimize`` uses threads, which outlive Ctrl-C and lose exceptions."""

    def __init__(self, study: Study, folder: saved.StudyFolder, config: Config, places: Places, limits: SearchLimits):
        self.study, self.folder, self.config, self.places, self.limits = study, folder, config, places, limits
        self.threads = max(1, torch.get_num_threads() // limits.processes)
        self.running: dict[Connection, tuple[Trial, TrialProcess]] = {}
        self.killed = 0

    def run(self) -> None:
        saved.give_up_running(self.study)
        if self.ended():  # it may have been killed before it wrote about its last trial
            saved.write_trials(self.study, self.folder, self.config)
        end = math.inf if self.limits.seconds is None else time.monotonic() + self.limits.seconds
        bar = tqdm(total=self.limits.trials, initial=self.ended(), unit=" trials", disable=None)
        try:
            while (left := end - time.monotonic()) > 0 and self.start_trials():
                ready = wait(list(self.running), min(left, 86_400))  # a longer wait is repeated
                for connection in [connection for connection in self.running if connection in ready]:
                    self.finish(*self.running.pop(connection))
                    bar.update()
        finally:
            bar.close()
            for _, process in self.running.values():
                process.kill()
        saved.give_up_running(self.study)

    def ended(self) -> int:
        return len(saved.trials_in(self.study, *saved.ENDED))

    def start_trials(self) -> bool:
        while len(self.running) < min(self.limits.trials - self.ended(), self.limits.processes):
            trial, config = self.ask()
            process = TrialProcess(trial, self.folder, config, current(), self.threads)
            self.running[process.connection] = trial, process
        return bool(self.running)

    def ask(self) -> tuple[Trial, Config]:
        """The recipe itself if it was not tried yet, otherwise a suggestion, by a seed per trial for equal resumes."""
        recipe = {name: value for name, value in values_of(self.config).items() if name in self.places}
        tried = saved.trials_in(self.study, *saved.ENDED, TrialState.RUNNING)
        if not any(trial.params == recipe for trial in tried) and not saved.trials_in(self.study, TrialState.WAITING):
            self.study.enqueue_trial(recipe)
        seed = np.random.SeedSequence((self.config.train.seed, self.ended() + len(self.running))).generate_state(1)
        self.study.sampler = TPESampler(seed=int(seed[0]))
        trial = self.study.ask(self.places)
        return trial, with_values(self.config, {name: trial.params[name] for name in self.places})

    def finish(self, trial: Trial, process: TrialProcess) -> None:
        """Reports the outcome of a trial; killed ones count as pruned, so that later ones avoid their values."""
        outcome = process.outcome()
        process.kill()
        if isinstance(outcome, InputError):
            raise outcome
        is_killed = isinstance(outcome, TrialKilled)
        if is_killed:
            trial.set_user_attr(saved.PROBLEM, str(outcome))
        best = saved.best_of(self.study.trials[trial.number], self.config)
        self.study.tell(trial, None if outcome else best, TrialState.PRUNED if outcome else TrialState.COMPLETE)
        saved.write_trials(self.study, self.folder, self.config)
        told = self.study.trials[trial.number]
        how = told.user_attrs.get(saved.PROBLEM) or told.state.name.lower()
        metric = "" if best is None else f", validation {METRICS[self.config.task.metric].title} {best:.4f}"
        with tqdm.external_write_mode():
            print(f"trial {told.number}: {how} after {told.last_step or 0} epochs{metric}", file=sys.stderr)
        self.killed = self.killed + 1 if is_killed else 0
        if self.killed == MAX_KILLED:
            cause = f"the machine may have too little memory for {self.limits.processes} processes"
            advice = f"{self.folder.path} keeps the finished trials, continue with --resume"
            raise InputError(f"{MAX_KILLED} trials in a row were {outcome}: {cause}; {advice}")


def comparison(
    folder: saved.StudyFolder, labelled: LabelledTable, options: TableOptions, config: Config, best: Config
) -> dict:
    """Trains with the best recipe and, if it is another one, with the initial one; scores both on the test split."""

    def score(run: RunFolder, own: Config) -> float:
        if (saved := run.saved_test().get("value")) is not None:
            return saved
        write_labelled(run.path, labelled, own, options)
        return train_run(own, run.path, resume=True)["value"]

    of_best = score(folder.best_run, best)
    of_recipe = of_best if best == config else score(folder.recipe_run, config)
    better = METRICS[config.task.metric].improves(of_best, of_recipe)
    return {"test": {"best": of_best, "recipe": of_recipe}, "better": better}


def verdict(result: dict, recipe: str) -> str:
    """The comparison in the result of ``tune``, with the recipe it started from, in one sentence."""
    best, own = shown_together([result["test"][name] for name in ("best", "recipe")])
    scores = f"test {METRICS[result['metric']].title} {best} with best.json, {own} with {recipe}"
    if result["better"]:
        return f"the search found a better recipe: {scores}"
    return f"the search found nothing better than {recipe}, keep that: {scores}"

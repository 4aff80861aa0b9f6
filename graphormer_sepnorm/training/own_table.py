"""A run, or an ensemble of runs, on a table of one's own."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np

from graphormer_sepnorm.config import Config, TaskConfig
from graphormer_sepnorm.data.dataset import cache_root
from graphormer_sepnorm.data.labels import LabelledTable, TableOptions, check_splits, read_labelled
from graphormer_sepnorm.data.prepared_table import write_labelled
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.system import distributed
from graphormer_sepnorm.system.signals import advising
from graphormer_sepnorm.tasks import all_scores
from graphormer_sepnorm.training.baseline import fit_forest, table_features
from graphormer_sepnorm.training.experiment import score_runs, train_run
from graphormer_sepnorm.training.finishing import finish_table
from graphormer_sepnorm.training.optimizers import find_optimizer
from graphormer_sepnorm.training.recorder import training_alone


def train_table(
    options: TableOptions,
    config: Config,
    out: Path,
    members: int = 1,
    resume: bool = False,
    baseline: bool = True,
    processes: int | None = 1,
) -> dict:
    """Trains one model on a table, or an ensemble of models that differ in their seed.

    Args:
        options: how to read the table.
        config: of the first run, with the task of ``table_task`` and the dataset ``TABLE``.
        out: run folder of one model; of an ensemble, the folder of the run folders ``model-0``, ``model-1``, ...
        members: number of models.
        resume: go on from the last completed epoch.
        baseline: whether a random forest is fitted to the same training molecules; its test scores are under
            ``baseline``.
        processes: as ``train_run``.

    Returns:
        the test scores, those of the mean prediction for an ensemble, which ``test.json`` holds too, and the numbers of
        rows that were used and skipped, of molecules that stand in several rows, and of those of them whose labels
        contradict each other.

    Raises:
        InputError: as ``read_labelled`` and ``train_run``; nothing is written if the table cannot be used.
    """
    whole = RunFolder(out)
    runs = [whole] if members == 1 else [whole.member(number) for number in range(members)]
    for run in runs:
        run.check_free(resume)
    distributed.check_replicas(processes)
    find_optimizer(config.train.optimizer)
    labelled = read_labelled(options, config.featurizer)
    check_splits(options, config.task, labelled)
    for number, run in enumerate(runs):
        own = replace(config, train=replace(config.train, seed=config.train.seed + number))
        with training_alone(run, resume):
            if distributed.rank() == 0:
                write_labelled(run.path, labelled, config, options)
            distributed.wait_for_all()
            result = train_run(own, run.path, resume=resume, alone=nullcontext(), processes=processes)
    if members > 1:
        scores = score_runs([run.path for run in runs], "test")
        scores.write(whole)
        result = scores.result
    if baseline and distributed.rank() == 0:
        with advising(f"{out} has the scores of the model: the same command and --resume adds those of the forest"):
            result = {**result, "baseline": {"random_forest": forest_scores(labelled, config.task, config.train.seed)}}
        whole.write_test(result)
    result = finish_table(whole, result)
    return {
        **result,
        "rows": len(labelled.rows),
        "skipped": len(labelled.skipped),
        "duplicates": len(labelled.duplicates),
        "conflicting": sum(bool(duplicate.conflicts) for duplicate in labelled.duplicates),
    }


def forest_scores(labelled: LabelledTable, task: TaskConfig, seed: int) -> dict[str, float | None]:
    """The test scores of random forests that are fitted to the training split, as ``all_scores``.

    A molecule that has no descriptors gets the means of the training labels.
    """
    train, test = (labelled.of_split(split) for split in ("train", "test"))
    features = table_features([row.smiles for row in train + test], cache_root() / "descriptors")
    known, y = (np.array([row.labels for row in rows]) for rows in (train, test))
    forest = fit_forest(
        features[: len(train)], known, "regression" if task.kind == "regression" else "classification", seed
    )
    prediction = forest.predict(features[len(train) :])
    prediction = np.where(np.isnan(prediction), np.nanmean(known, axis=0), prediction)
    return all_scores(task.kind, y, prediction)

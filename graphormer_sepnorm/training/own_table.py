"""A run, or an ensemble of runs, on a table of one's own."""

from dataclasses import replace
from pathlib import Path

from graphormer_sepnorm.config import Config
from graphormer_sepnorm.data.labels import TableOptions, check_splits, read_labelled
from graphormer_sepnorm.data.prepared_table import write_labelled
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.folder import CONFIG
from graphormer_sepnorm.training.experiment import score_runs, train_run


def train_table(options: TableOptions, config: Config, out: Path, members: int = 1, resume: bool = False) -> dict:
    """Trains one model on a table, or an ensemble of models that differ in their seed.

    Args:
        options: how to read the table.
        config: of the first run, with the task of ``table_task`` and the dataset ``TABLE``.
        out: run folder of one model; of an ensemble, the folder of the run folders ``model-0``, ``model-1``, ...
        members: number of models.
        resume: go on from the last completed epoch.

    Returns:
        the test scores, those of the mean prediction for an ensemble, which ``test.json`` holds too, and the numbers of
        rows that were used and skipped.

    Raises:
        InputError: as ``read_labelled`` and ``train_run``; nothing is written if the table cannot be used.
    """
    folders = [out] if members == 1 else [out / f"model-{member}" for member in range(members)]
    for folder in folders:
        if (folder / CONFIG).exists() and not resume:
            raise InputError(f"{folder} already holds a run: continue it with --resume, or choose another --out")
    labelled = read_labelled(options, config.featurizer)
    check_splits(options, config.task, labelled)
    for member, folder in enumerate(folders):
        write_labelled(folder, labelled, config, options)
        own = replace(config, train=replace(config.train, seed=config.train.seed + member))
        result = train_run(own, folder, resume=resume)
    if members > 1:
        scores = score_runs(folders, "test")
        scores.write(out)
        result = scores.result
    return {**result, "rows": len(labelled.rows), "skipped": len(labelled.skipped)}

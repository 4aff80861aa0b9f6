"""Trains several seeds of a configuration and summarizes them in the rows that a leaderboard requires."""

import itertools
import os
import platform
import re
import statistics
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from graphormer_sepnorm.config import Config, read_config
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.recipes import Recipe, dataset_config
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.runs.folder import RunFolder, weights_file
from graphormer_sepnorm.system.device import current
from graphormer_sepnorm.system.signals import advising
from graphormer_sepnorm.training.experiment import score_runs, train_run
from graphormer_sepnorm.training.finetune import check_start
from graphormer_sepnorm.training.settings import with_settings
from graphormer_sepnorm.training.trainer import with_epochs


def sweep(
    datasets: Sequence[str],
    norms: Sequence[str],
    seeds: Sequence[int],
    recipe: Recipe,
    out: Path,
    root: str | os.PathLike | None = None,
    settings: Sequence[str] = (),
) -> list[dict]:
    """Trains every dataset with every norm and seed, unless already finished, and summarizes the scores.

    Args:
        datasets, norms: names in ``DATASETS`` and ``NORMS``.
        seeds: seeds of the runs of each dataset and norm.
        recipe: the recipe; its seed is ignored.
        out: folder of the run folders, named DATASET-NORM-SEED.
        root: folder of the downloaded datasets.
        settings: as ``with_settings``, for every run.

    Returns:
        A ``leaderboard`` row for each dataset and norm. Rows after the first of a dataset have a ``difference`` from
        it, as ``paired_by_seed``.

    Raises:
        InputError: a setting of the seed or the norm; a folder that holds a run of another config, then nothing is
            trained; or as ``dataset_config``, ``with_settings`` and ``train_run``.
    """
    groups = [
        {out / f"{dataset}-{norm}-{seed}": swept_config(dataset, norm, seed, recipe, settings) for seed in seeds}
        for dataset, norm in itertools.product(datasets, norms)
    ]
    configs = {folder: config for of_group in groups for folder, config in of_group.items()}
    begun = [folder for folder in configs if RunFolder(folder).holds_run]
    for folder in begun:
        check_config(folder, configs[folder])
    with advising("finished runs are kept: continue with the same command"):
        for folder, config in configs.items():
            if RunFolder(folder).saved_test().get("value") is None:
                print(f"training {folder.name}", file=sys.stderr)
                train_run(config, folder, root, resume=folder in begun)
    rows = [leaderboard(list(of_group), root) for of_group in groups]
    for row in rows:
        first = next(other for other in rows if other["dataset"] == row["dataset"])
        if row is not first:
            row["difference"] = paired_by_seed(row, first)
    return rows


def swept_config(dataset: str, norm: str, seed: int, recipe: Recipe, settings: Sequence[str]) -> Config:
    train = replace(recipe.train, seed=seed)
    config = with_settings(dataset_config(dataset, train, norm, recipe.architecture), settings)
    if (config.model.norm, config.train.seed) != (norm, seed):
        raise InputError("a sweep has its norms from --norm and its seeds from --seeds: leave them out of --set")
    check_start(config)
    return config


def check_config(folder: Path, config: Config) -> None:
    """Raises InputError unless the run folder belongs to ``config``, apart from what training fits to the molecules."""
    saved = read_config(RunFolder(folder).config)
    epochs = max(config.train.epochs, saved.train.epochs) if config.train.min_updates else config.train.epochs
    if replace(saved, task=config.task) != replace(config, train=with_epochs(config.train, epochs)):
        raise InputError(f"{folder} holds a run of another recipe or with other options: choose another --out")


def leaderboard(runs: list[Path], root: str | os.PathLike | None = None) -> dict:
    """The numbers required for an OGB submission, over runs that differ only in their seed; deviations use n - 1."""
    first = checkpoint.load_tensors(weights_file(runs[0]))[1]
    scores: list[tuple[float, float]] = []
    seeds: list[int] = []
    for run in runs:
        model, config, facts = checkpoint.load_model(run)
        if replace(config, train=replace(config.train, seed=first.train.seed)) != first:
            raise InputError(f"{run} differs from the first run in more than its seed")
        if "val_metric" not in facts:
            raise InputError(f"{run} has no validation score: only runs that were trained here can be summarized")
        saved = RunFolder(run).saved_test().get("value")
        test = score_runs([run], "test", root).result["value"] if saved is None else saved
        scores.append((test, facts["val_metric"]))
        seeds.append(config.train.seed)
    if len(set(seeds)) < len(seeds):
        raise InputError(f"a seed is there twice: {', '.join(map(str, seeds))}")
    (tests, validations), device = zip(*scores, strict=True), current().device
    return {
        "dataset": first.dataset,
        "norm": first.model.norm,
        "metric": first.task.metric,
        "test_mean": statistics.mean(tests),
        "test_std": spread(tests),
        "test": list(tests),
        "val_mean": statistics.mean(validations),
        "val_std": spread(validations),
        "runs": len(runs),
        "seeds": seeds,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "hardware": torch.cuda.get_device_name(device) if device.type == "cuda" else cpu_name(),
    }


def paired_by_seed(row: dict, other: dict) -> dict:
    """Of the test scores of two leaderboard rows, paired by seed, with the 95 % interval of Student's t."""
    from scipy import stats  # its import takes seconds

    differences = [a - b for a, b in zip(row["test"], other["test"], strict=True)]
    low = high = None
    if len(differences) > 1:
        low, high = map(float, stats.ttest_1samp(differences, 0).confidence_interval(0.95))
    return {"norm": row["norm"], "minus": other["norm"], "mean": statistics.mean(differences), "low": low, "high": high}


def spread(values: Sequence[float]) -> float | None:
    return statistics.stdev(values) if len(values) > 1 else None


def cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    model = re.search(r"^model name\s*:\s*(.*?)\s*$", info.read_text() if info.exists() else "", re.M)
    return f"{model[1] if model else platform.processor()}, {torch.get_num_threads()} threads"

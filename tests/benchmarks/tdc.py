"""The table model on the 22 tables of the ADMET group of the Therapeutics Data Commons, with ranks among listed models.

    python tests/benchmarks/tdc.py FOLDER OUT.csv [--quick] [--tables herg ...] [--seeds 1 2 3 4 5]

FOLDER holds ``leaderboard.csv`` and, for each table, a folder
with ``train_val.csv.gz`` and ``test.csv.gz``. The model is fitted to train_val, and the test rows are scored by the
metric of the leaderboard; repeated molecules stay rows of their own. OUT.csv gets a row for each table, seed and
embedding; rows that it has are not computed again, so an interrupted run is continued by the same command.

The embedding of "foundation" was distilled from MiniMol, whose pre-training has assays in common with some test rows.
Only the model "without" it compares with the leaderboard: its kernel embeds molecules by an untrained network, which
the seed determines, and its other member is the forest. Labels are modelled by their logarithms if all labels of
train_val are positive and the logarithms are less skewed. Nothing is chosen by test rows.
"""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from graphormer_sepnorm.config import Config, TaskConfig
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.runs.checkpoint import load_model, save_model
from graphormer_sepnorm.runs.zoo import resolve_model
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.fit import foundation_config
from graphormer_sepnorm.table_model.labels import Labels
from graphormer_sepnorm.table_model.members import MEMBERS
from graphormer_sepnorm.table_model.reference import BODY
from graphormer_sepnorm.tasks import METRICS
from graphormer_sepnorm.training.finetune import starting_from
from tests.benchmarks.tables import fit

LISTED = {"AUROC": "rocauc", "AUPRC": "prauc", "MAE": "mae", "Spearman": "spearman"}
REPEATED = "bioavailability_ma"  # the listed scores are those of pgp_broccatelli
MEMBERS_OF = {"foundation": tuple(MEMBERS), "without": ("kernel", "forest")}
KEY = ["table", "embedding", "members", "seed"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the folder with leaderboard.csv")
    parser.add_argument("out", type=Path)
    parser.add_argument("--quick", action="store_true", help="fit the kernel only, as train --quick")
    parser.add_argument("--tables", nargs="+", help="names of folders; by default all")
    parser.add_argument("--embeddings", nargs="+", default=list(MEMBERS_OF), choices=list(MEMBERS_OF))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3, 4, 5])
    options = parser.parse_args()
    listed = pd.read_csv(options.folder / "leaderboard.csv")
    metrics = listed.groupby("dataset").metric.first().map(LISTED)
    known = set(map(tuple, pd.read_csv(options.out)[KEY].to_numpy())) if options.out.exists() else set()
    for seed in options.seeds:
        for table in options.tables or metrics.index:
            for embedding in options.embeddings:
                members = MEMBERS_OF[embedding][: 1 if options.quick else None]
                row = dict(zip(KEY, (table, embedding, " ".join(members), seed), strict=True))
                if tuple(row.values()) not in known:
                    score = measure(options.folder / table, metrics[table], embedding, members, seed)
                    line = pd.DataFrame([row | {"metric": metrics[table], "score": score}])
                    line.to_csv(options.out, mode="a", header=not options.out.exists(), index=False)
    for line in summary(ranked(pd.read_csv(options.out), listed)):
        print(json.dumps(line, default=float))


def measure(folder: Path, metric: str, embedding: str, members: tuple[str, ...], seed: int) -> float:
    """The score on the test rows of a model that is fitted to train_val."""
    learnt, test = (pd.read_csv(folder / f"{split}.csv.gz") for split in ("train_val", "test"))
    y = learnt.Y.to_numpy(float)
    task = TaskConfig("classification" if set(y) <= {0, 1} else "regression", metric, ("Y",))
    logarithm = task.kind == "regression" and is_less_skewed(y)
    with tempfile.TemporaryDirectory() as place:
        config = foundation_config(task, seed)
        if embedding == "without":
            config = untrained(config, Path(place) / "untrained.safetensors", seed)
        labels = Labels(task, (np.log10(y) if logarithm else y)[:, None])
        fitted = fit(learnt.Drug.tolist(), labels, config, members, "scaffold", seed)
    values = fitted.model.stacked(MoleculeFeatures(test.Drug.tolist())).values[:, 0]
    return METRICS[metric].score(test.Y.to_numpy(float), 10**values if logarithm else values)


def is_less_skewed(y: np.ndarray) -> bool:
    """Whether all labels are positive, and their logarithms are less skewed than they are."""
    return bool(y.min() > 0) and abs(pd.Series(np.log10(y)).skew()) < abs(pd.Series(y).skew())


def untrained(config: Config, path: Path, seed: int) -> Config:
    """The config, starting from a file of the foundation's network with random weights, which is written."""
    model, start, _ = load_model(resolve_model(BODY))
    torch.manual_seed(seed)
    save_model(path, Network(model.config), start, {})
    return starting_from(config, str(path))


def ranked(rows: pd.DataFrame, listed: pd.DataFrame) -> pd.DataFrame:
    """For each table and model, the mean score, its deviation over seeds, and one more than the number of better ones.

    The rank is NaN for the table whose listed scores are those of another.
    """
    found = rows.groupby(["table", "embedding", "members", "metric"]).score.agg(["mean", "std", "count"]).reset_index()
    ranks = []
    for row in found.itertuples():
        scores = listed[listed.dataset == row.table]["mean"]
        better = scores > row.mean if METRICS[row.metric].higher_is_better else scores < row.mean
        ranks.append(np.nan if row.table == REPEATED else 1 + better.sum())
    return found.assign(rank=ranks)


def summary(ranks: pd.DataFrame) -> list[dict]:
    """Tables, then the mean and the largest rank and first places, for each embedding and members."""
    found = [row.dropna().to_dict() for _, row in ranks.iterrows()]
    for (embedding, members), group in ranks.dropna(subset="rank").groupby(["embedding", "members"]):
        total = {"tables": len(group), "mean rank": group["rank"].mean(), "worst": group["rank"].max()}
        found.append({"embedding": embedding, "members": members, **total, "first": int((group["rank"] == 1).sum())})
    return found


if __name__ == "__main__":
    main()

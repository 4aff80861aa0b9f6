"""The script that scores the table model on the ADMET group, tried on a few molecules."""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.tasks import METRICS
from tests.benchmarks.tdc import is_less_skewed, ranked, summary
from tests.robustness import processes

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "tdc.py"
LISTED = [("a", "MAE", 0.2), ("a", "MAE", 0.4), ("b", "AUROC", 0.9), ("bioavailability_ma", "AUROC", 0.9)]


def listed(rows: list[tuple] = LISTED) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["dataset", "metric", "mean"])


def test_ranks_count_the_better_models_and_leave_out_repeated_scores():
    scores = [("a", "mae", 0.1), ("a", "mae", 0.5), ("b", "rocauc", 0.95), ("bioavailability_ma", "rocauc", 0.7)]
    rows = [{"table": t, "embedding": "without", "members": "kernel", "metric": m, "score": s} for t, m, s in scores]
    found = ranked(pd.DataFrame(rows), listed())
    assert found["mean"].tolist() == pytest.approx([0.3, 0.95, 0.7])
    assert found["rank"].tolist()[:2] == [2, 1] and found["rank"].isna().tolist() == [False, False, True]
    *tables, total = summary(found)
    assert len(tables) == 3 and "rank" not in tables[2]
    assert total == {
        "embedding": "without", "members": "kernel", "tables": 2, "mean rank": 1.5, "worst": 2, "first": 1
    }  # fmt: skip


@pytest.mark.parametrize(("y", "expected"), [([1, 10, 100, 1000], True), ([0, 10, 100], False), ([1, 2, 3], False)])
def test_logarithms_are_for_positive_labels_that_they_make_less_skewed(y, expected):
    assert is_less_skewed(pd.Series(y, dtype=float).to_numpy()) == expected


@pytest.mark.slow
def test_rows_are_added_once(tmp_path):
    table = sample_table()[:60]
    (tmp_path / "a").mkdir()
    rows = pd.DataFrame({"Drug": table.smiles, "Y": table.penalized_logp})
    rows[:40].to_csv(tmp_path / "a" / "train_val.csv.gz", index=False)
    rows[40:].to_csv(tmp_path / "a" / "test.csv.gz", index=False)
    listed(LISTED[:2]).to_csv(tmp_path / "leaderboard.csv", index=False)

    def run(*seeds: int) -> tuple[pd.DataFrame, list[dict]]:
        command = [sys.executable, SCRIPT, tmp_path, tmp_path / "out.csv", "--quick", "--seeds", *map(str, seeds)]
        done = subprocess.run(command, env=processes.surroundings()["env"], check=True, capture_output=True, text=True)
        return pd.read_csv(tmp_path / "out.csv"), [json.loads(line) for line in done.stdout.splitlines()]

    first, lines = run(1)
    assert first.embedding.tolist() == ["foundation", "without"] and first.score.nunique() == 2
    assert [line["mean"] for line in lines[:2]] == first.score.tolist() and set(first.metric) <= set(METRICS)
    second, _ = run(1, 2)
    assert second[:2].equals(first) and second.seed.tolist() == [1, 1, 2, 2]

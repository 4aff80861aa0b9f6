"""Scripts of measurements, tried on a few molecules: of the table model on the ADMET group, of training on a GPU."""

import json

import pandas as pd
import pytest

from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.tasks import METRICS
from tests.benchmarks.tdc import is_less_skewed, ranked, summary
from tests.robustness import processes

LISTED = [("a", "MAE", 0.2), ("a", "MAE", 0.4), ("b", "AUROC", 0.9), ("bioavailability_ma", "AUROC", 0.9)]


def run(script: str, *arguments: object) -> list[dict]:
    """The lines that a script prints."""
    done = processes.command(f"tests/benchmarks/{script}.py", *arguments)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


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

    arguments = [tmp_path, tmp_path / "out.csv", "--quick", "--seeds", 1]
    lines, first = run("tdc", *arguments), pd.read_csv(tmp_path / "out.csv")
    assert first.embedding.tolist() == ["foundation", "without"] and first.score.nunique() == 2
    assert [line["mean"] for line in lines[:2]] == first.score.tolist() and set(first.metric) <= set(METRICS)
    run("tdc", *arguments, 2)
    second = pd.read_csv(tmp_path / "out.csv")
    assert second[:2].equals(first) and second.seed.tolist() == [1, 1, 2, 2]


@pytest.mark.slow
def test_every_figure_of_the_gpu_is_a_line_of_the_file(tmp_path):
    """Of two batch sizes; compiling is left out by the limit, which is up before it begins."""
    sample_table()[:40].to_csv(tmp_path / "few.csv", index=False)
    packed, out = tmp_path / "few.safetensors", tmp_path / "results.jsonl"
    run("gpu", "pack", tmp_path / "few.csv", packed, "--count", 40)
    options = ["--device", "cpu", "--models", "slim", "--batch-sizes", 4, 8, "--seconds", 0.01, "--warmup", 1]
    run("gpu", "measure", packed, out, *options, "--limit", 0)
    assert out.read_text() == ""
    run("gpu", "measure", packed, out, *options, "--rows", 2)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    expected = [("slim", 4, False), ("slim", 8, False)]
    assert [(line["model"], line["batch"], line["compiled"]) for line in lines] == expected
    assert all(line["molecules_per_s"] > 0 and line["busy"] is None for line in lines)

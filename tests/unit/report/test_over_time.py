"""Errors over time, and alarms by hand-computed chances."""

from math import comb

import numpy as np
import pandas as pd
import pytest

from graphormer_sepnorm.report.over_time import LEVEL, Checked, alarms, level_of, over_time, section
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.table_run import Plan, train_table
from graphormer_sepnorm.tables.options import TableOptions
from tests.table_models import Trained


def checked(period: str, errors: list[float], width: float = 1.0) -> list[Checked]:
    return [Checked("a", period, 2.0, 2.0 + each, 2.0 + each - width, 2.0 + each + width, 0.5) for each in errors]


def test_a_period_has_error_bias_and_the_binomial_chance_of_its_coverage():
    (period,) = over_time(checked("2026-01", [0.5] * 12 + [-3.0] * 8), {}).itertuples()
    assert (period.n, period.intervals, period.held, period.similarity) == (20, 20, 12, 0.5)
    assert (period.error, period.bias) == (pytest.approx(1.5), pytest.approx(-0.9))
    by_hand = sum(comb(20, k) * 0.9**k * 0.1 ** (20 - k) for k in range(13))
    assert period.chance_of_coverage == pytest.approx(by_hand) and np.isnan(period.chance_of_error)


def test_the_chance_of_errors_is_that_of_their_order():
    found = over_time(
        checked("a", [3.0, 4.0, 5.0]) + checked("b", [0.05, 0.06, 0.07]), {"a": np.array([0.1, np.nan, 1.0, 2.0])}
    )
    larger, smaller = found["chance_of_error"]
    assert (larger, smaller) == (pytest.approx(1 / comb(6, 3)), 1.0)


@pytest.mark.parametrize(("held", "is_alarm"), [(20, False), (17, False), (12, True), (0, True)])
def test_an_alarm_is_given_where_chance_does_not_explain_the_coverage(held, is_alarm):
    found = over_time(checked("2026-01", [0.0] * held + [9.0] * (20 - held)), {})
    said = alarms(found, "others")
    assert bool(said) is is_alarm and level_of(found) == LEVEL
    part = section(found, {}, "others", "error", 0.9)
    assert len(part.words) - len(said) == 2 and len(part.grids) == 1 and part.charts == ()


@pytest.mark.slow
@pytest.mark.parametrize("labels", [20, 100])
def test_false_alarms_are_rare_for_intervals_that_few_labels_were_calibrated_on(labels):
    rng, count, of_binomial = np.random.default_rng(0), 0, 0
    for _ in range(200):
        scores = np.sort(np.abs(rng.normal(size=labels)))
        month = checked("1", rng.normal(size=300).tolist(), scores[int(np.ceil((labels + 1) * 0.9)) - 1])
        count += bool(alarms(over_time(month, {}, calibrated={"a": labels}), "others"))
        of_binomial += bool(alarms(over_time(month, {}), "others"))
    assert count <= 0.05 * 200 + 3 * np.sqrt(200 * 0.05 * 0.95) < of_binomial


@pytest.mark.slow
def test_a_split_by_time_is_reported_by_month(trained: Trained, smiles, logp, tmp_path):
    days = pd.date_range("2026-01-01", periods=60, freq="4D").strftime("%d.%m.%Y")
    pd.DataFrame({"smiles": smiles[:60], "a": logp[:60, 0], "day": days}).to_csv(tmp_path / "in.csv", index=False)
    options = TableOptions(str(tmp_path / "in.csv"), ("a",), split="time", split_column="day")
    train_table(options, trained.config, tmp_path / "run", Plan(3, quick=True))
    report = RunFolder(tmp_path / "run").report.read_text()
    assert "Error over time" in report and "2026-08" in report and "2026-01" not in report.split("Error over time")[-1]
    assert "Error over time" not in trained.run.report.read_text()

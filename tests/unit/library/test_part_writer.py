import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.library import part_writer
from graphormer_sepnorm.library.part_writer import (
    Assignment,
    PartOptions,
    Selection,
    best_rows,
    read_report,
    write_part,
)
from graphormer_sepnorm.output.predict_table import predict_table
from graphormer_sepnorm.predict.answers import Answers
from graphormer_sepnorm.predict.domain import fit_domain
from graphormer_sepnorm.predict.intervals import fit_intervals
from graphormer_sepnorm.predict.predictors import Predictor, read_and_compute
from graphormer_sepnorm.predict.trust import Trust
from graphormer_sepnorm.system.device import Compute
from tests.tiny import Trusting, tiny_model

CPU = Compute(torch.device("cpu"))
SMILES = ["CCO", "C(", "c1ccccc1", "CCN", "CCCC"]


@pytest.fixture(scope="module")
def predictor():
    return Predictor([tiny_model()])


@pytest.fixture
def assignment(tmp_path):
    (tmp_path / "in.csv").write_text("smiles,logp\n" + "".join(f"{text},mine\n" for text in SMILES))
    return Assignment(str(tmp_path / "in.csv"), str(tmp_path / "out.parquet"), "job", "content")


def predicted(predictor):
    return read_and_compute(predictor, CPU, SMILES).values[:, 0]


def test_all_rows_with_their_errors_and_the_footer(predictor, assignment, tmp_path):
    report = write_part(predictor, CPU, PartOptions(Selection("logp")), assignment)
    table = pq.read_table(assignment.part)
    assert table.column_names == ["smiles", "logp", "logp_predicted", "error"]
    assert table["smiles"].to_pylist() == SMILES
    np.testing.assert_array_equal(table["logp_predicted"].to_numpy(), predicted(predictor))
    assert table["logp_predicted"].null_count == 1
    assert [bool(error) for error in table["error"].to_pylist()] == [False, True, False, False, False]
    assert (report.rows, report.unreadable, report.kept, report.compared) == (5, 1, 5, "logp_predicted")
    assert report.memory_mib > 50 and read_report(tmp_path / "out.parquet") == report


def test_several_models_have_a_spread(assignment):
    predictor = Predictor([tiny_model(seed=seed) for seed in (0, 1)])
    write_part(predictor, CPU, PartOptions(Selection("logp"), columns=()), assignment)
    table = pq.read_table(assignment.part)
    assert table.column_names == ["logp", "logp_std", "error"]
    both = read_and_compute(predictor, CPU, SMILES)
    np.testing.assert_array_equal(table["logp_std"].to_numpy(), both.spread[:, 0])


def test_intervals_and_neighbours_are_those_of_a_table(assignment, tmp_path):
    errors, zeros = np.arange(1, 10)[:, None] / 20, np.zeros((9, 1))
    trust = Trust(fit_domain(["CCO", "CCN"]), fit_intervals(errors, zeros, zeros))
    predictor = Trusting([tiny_model()], trust=trust)
    write_part(predictor, CPU, PartOptions(Selection("logp"), answers=Answers(0.5, True)), assignment)
    part = pq.read_table(assignment.part)
    predict_table(predictor, assignment.source, tmp_path / "table.parquet", answers=Answers(0.5, True))
    pd.testing.assert_frame_equal(part.to_pandas(), pq.read_table(tmp_path / "table.parquet").to_pandas(), rtol=1e-4)
    assert part["nearest"].to_pylist()[::3] == ["CCO", "CCN"]


@pytest.mark.parametrize("lowest", [False, True])
def test_the_best_rows_come_first_with_their_numbers(predictor, assignment, lowest):
    options = PartOptions(Selection("logp", keep_top=2, lowest=lowest), columns=("smiles",))
    report = write_part(predictor, CPU, options, assignment)
    values = predicted(predictor)
    expected = np.argsort(values if lowest else -values)[:2]
    table = pq.read_table(assignment.part)
    assert table.column_names == ["smiles", "logp", "row"] and report.kept == 2
    assert table["row"].to_pylist() == expected.tolist()
    assert table["smiles"].to_pylist() == [SMILES[row] for row in expected]


def test_rows_that_reach_the_threshold(predictor, assignment):
    values = predicted(predictor)
    threshold = float(np.sort(values[~np.isnan(values)])[1])
    for lowest in (False, True):
        write_part(predictor, CPU, PartOptions(Selection("logp", threshold=threshold, lowest=lowest)), assignment)
        kept = np.flatnonzero(values <= threshold if lowest else values >= threshold)
        assert pq.read_table(assignment.part)["row"].to_pylist() == kept.tolist()
        assert len(kept) == (2 if lowest else 3)


def test_best_rows_by_hand(monkeypatch):
    """Ties in input order, no rows without a value, for any division of the rows."""
    monkeypatch.setattr(part_writer, "GROUP", 1)
    values = [1.0, 3.0, None, 2.0, 3.0, 1.0]
    table = pa.table({"x": pa.array(values, pa.float32()), "row": range(6)})
    for size in (1, 4, 6):
        tables = [table[start : start + size] for start in range(0, 6, size)]
        for lowest, count, expected in ((False, 3, [1, 4, 3]), (True, 2, [0, 5]), (False, 9, [1, 4, 3, 0, 5])):
            assert best_rows(tables, "x", count, lowest, table.schema)["row"].to_pylist() == expected


def test_a_failed_part_leaves_no_file(predictor, assignment, tmp_path):
    with pytest.raises(InputError, match=r"row 2 cannot be read"):
        write_part(predictor, CPU, PartOptions(Selection("logp"), strict=True), assignment)
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


@pytest.mark.parametrize("content", [None, b"", b"PAR1", "cut", "foreign", "other footer"])
def test_an_incomplete_part_has_no_report(predictor, assignment, tmp_path, content):
    part = tmp_path / "out.parquet"
    report = write_part(predictor, CPU, PartOptions(Selection("logp")), assignment)
    if content is None:
        part.unlink()
    elif content == "cut":
        part.write_bytes(part.read_bytes()[:-1])
    elif content == "foreign":
        pq.write_table(pa.table({"a": [1]}), part)
    elif content == "other footer":
        footer = json.dumps(asdict(report) | {"rows": -1})
        pq.write_table(pa.table({"a": [1]}).replace_schema_metadata({part_writer.FOOTER: footer}), part)
    else:
        part.write_bytes(content)
    assert read_report(part) is None

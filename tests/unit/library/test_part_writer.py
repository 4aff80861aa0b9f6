import json
from dataclasses import asdict
from itertools import chain

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
    open_partition,
    read_report,
    write_part,
)
from graphormer_sepnorm.options import Answers
from graphormer_sepnorm.output.predict_table import predict_table
from graphormer_sepnorm.predict.domain import fit_domain
from graphormer_sepnorm.predict.intervals import fit_intervals
from graphormer_sepnorm.predict.predictors import Predictor, read_and_compute
from graphormer_sepnorm.predict.trust import Trust
from graphormer_sepnorm.system.device import Compute
from graphormer_sepnorm.tables.rows import NO_CONDITIONS
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


def test_intervals_and_neighbours_are_those_of_a_table(assignment, tmp_path):
    errors, zeros = np.arange(1, 10)[:, None] / 20, np.zeros((9, 1))
    trust = Trust(fit_domain(["CCO", "CCN"]), fit_intervals(errors, zeros, zeros))
    predictor = Trusting([tiny_model()], trust=trust)
    write_part(predictor, CPU, PartOptions(Selection("logp"), answers=Answers(0.5, True)), assignment)
    part = pq.read_table(assignment.part)
    predict_table(predictor, assignment.source, tmp_path / "table.parquet", answers=Answers(0.5, True))
    pd.testing.assert_frame_equal(part.to_pandas(), pq.read_table(tmp_path / "table.parquet").to_pandas(), rtol=1e-4)
    assert part["nearest"].to_pylist()[::3] == ["CCO", "CCN"]


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


@pytest.mark.parametrize("content", [None, b"", "cut", "foreign", "other footer"])
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


TABLE = {"id": [1, 2, 3], "smiles": ["CCO", None, "C"], "weight": [0.5, None, 2.0]}


@pytest.fixture
def parquet(tmp_path):
    pd.DataFrame(TABLE).to_parquet(tmp_path / "in.parquet")
    return str(tmp_path / "in.parquet")


def rows(path, **options):
    with open_partition(str(path), PartOptions(Selection("y"), **options), NO_CONDITIONS) as (schema, opened, read):
        tables, chunks = zip(*opened, strict=True)
    assert all(table.schema == schema for table in tables)
    return pa.concat_tables(tables), [*chain(*map(read, chunks))], [row.error for row in chain(*chunks)]


def test_parquet_keeps_its_types_and_a_missing_smiles_is_an_empty_one(parquet, monkeypatch):
    monkeypatch.setattr(part_writer, "CHUNK", 2)
    table, smiles, errors = rows(parquet)
    assert table.to_pydict() == TABLE
    assert table.schema.field("id").type == pa.int64()
    assert smiles == ["CCO", "", "C"] and errors == ["", "", ""]
    assert rows(parquet, columns=("weight", "id"))[0].column_names == ["weight", "id"]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_smiles_are_read_from_every_type_of_text(tmp_path, kind):
    pq.write_table(pa.table({"smiles": pa.array(["C", "CC", "C"]).cast(kind)}), tmp_path / "in.parquet")
    assert rows(tmp_path / "in.parquet")[1] == ["C", "CC", "C"]


def test_a_table_is_read_as_text_with_its_broken_rows(tmp_path):
    (tmp_path / "in.csv").write_bytes(b"smiles,note\nCCO,caf\xe9\nC,1,2\n")
    table, smiles, errors = rows(tmp_path / "in.csv", columns=("note",))
    assert table.to_pydict() == {"note": ["café", "1"]} and smiles == ["CCO", ""]
    assert errors == ["", "the row has 3 fields, the header has 2"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ("id", "mass")}, "has no column 'mass': name those to keep with --columns"),
        ({"smiles_column": "mol"}, "has no column 'mol'"),
        ({"smiles_column": "id"}, r"the column 'id' of .*in.parquet is int64, not text"),
    ],
)
def test_missing_columns_are_reported(parquet, options, message):
    with pytest.raises(InputError, match=message):
        rows(parquet, **options)


@pytest.mark.parametrize("place", [2, 0.5, -4])
def test_a_damaged_file_is_reported(tmp_path, place):
    """Damaged in its first bytes, in a page of data, and in its length at the end."""
    path = tmp_path / "in.parquet"
    texts = np.random.default_rng(0).integers(0, 10**9, 2000).astype(str)
    pq.write_table(pa.table({"smiles": texts}), path, write_page_checksum=True, use_dictionary=False)
    content = bytearray(path.read_bytes())
    start = int(len(content) * place) if place == 0.5 else place % len(content)
    content[start : start + 4] = b"\0\0\0\0"
    path.write_bytes(content if place != 2 else content[: len(content) // 2])
    with pytest.raises(InputError, match=r"cannot read .*in\.parquet: ."):
        rows(path)

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.library import partitions
from graphormer_sepnorm.library.partitions import open_partition

TABLE = pd.DataFrame({"id": [1, 2, 3], "smiles": ["CCO", None, "C"], "weight": [0.5, None, 2.0]})


@pytest.fixture
def parquet(tmp_path):
    TABLE.to_parquet(tmp_path / "in.parquet")
    return str(tmp_path / "in.parquet")


def rows(path, **options):
    with open_partition(str(path), **options) as (schema, opened):
        batches = list(opened)
        assert all(batch.columns.schema == schema for batch in batches)
    table = pa.concat_tables([batch.columns for batch in batches])
    smiles = [text for batch in batches for text in batch.molecules]
    return table, smiles, [error for batch in batches for error in batch.errors]


def test_parquet_keeps_its_types_and_a_missing_smiles_is_an_empty_one(parquet, monkeypatch):
    monkeypatch.setattr(partitions, "CHUNK", 2)
    table, smiles, errors = rows(parquet)
    assert table.to_pydict() == {"id": [1, 2, 3], "smiles": ["CCO", None, "C"], "weight": [0.5, None, 2.0]}
    assert table.schema.field("id").type == pa.int64()
    assert smiles == ["CCO", "", "C"] and errors == ["", "", ""]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_smiles_are_read_from_every_type_of_text(tmp_path, kind):
    pq.write_table(pa.table({"smiles": pa.array(["C", "CC", "C"]).cast(kind)}), tmp_path / "in.parquet")
    assert rows(tmp_path / "in.parquet")[1] == ["C", "CC", "C"]


def test_a_table_is_read_as_text_with_its_broken_rows(tmp_path):
    (tmp_path / "in.csv").write_bytes(b"smiles,note\nCCO,caf\xe9\nC,1,2\n")
    table, smiles, errors = rows(tmp_path / "in.csv", columns=("note",))
    assert table.to_pydict() == {"note": ["caf?", "1"]} and smiles == ["CCO", ""]
    assert errors == ["", "the row has 3 fields, the header has 2"]


def test_chosen_columns_in_their_order(parquet):
    assert rows(parquet, columns=("weight", "id"))[0].column_names == ["weight", "id"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"columns": ("id", "mass")},
            r"has no column 'mass': name those to keep with --columns. Its columns: id, smiles, weight",
        ),
        ({"smiles_column": "mol"}, r"has no column 'mol': name one. Its columns: id, smiles"),
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

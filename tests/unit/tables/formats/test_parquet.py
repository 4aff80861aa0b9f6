"""Reading Parquet as text."""

from datetime import date, datetime

import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.formats import open_table
from graphormer_sepnorm.tables.formats import parquet as module

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def test_cells_are_texts_as_in_a_csv(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 2)
    columns = {
        "Smiles": ["CCO", None, "C"],
        "n": [1, None, 3],
        "y": pa.array([0.1, float("nan"), 2], pa.float32()),
        "day": [datetime(2024, 5, 31), datetime(2024, 5, 31, 12, 30), None],
        "date": [date(2024, 5, 31), None, None],
        "said": pa.array(["a", "b", "a"]).dictionary_encode(),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with open_table(tmp_path / "a.parquet") as table:
        assert table.columns == list(columns)
        rows = list(table.rows)
    assert [row.fields for row in rows] == [
        ["CCO", "1", "0.10000000149011612", "2024-05-31", "2024-05-31", "a"],
        ["", "", "", "2024-05-31 12:30:00", "", "b"],
        ["C", "3", "2.0", "", "", "a"],
    ]
    assert [row.smiles for row in rows] == ["CCO", "", "C"]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\0" * 20 + b"PAR1", b"smiles\nC\n"])
def test_what_is_no_parquet_is_named(tmp_path, content):
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(InputError, match=r"^cannot read .*a\.parquet: "), open_table(tmp_path / "a.parquet"):
        pass


def test_a_page_that_was_damaged_is_named(tmp_path):
    path = tmp_path / "a.parquet"
    table = pa.table({"smiles": ["CCO", "C" * 50]})
    pq.write_table(
        table, path, write_page_checksum=True, write_statistics=False, compression="none", use_dictionary=False
    )
    path.write_bytes(path.read_bytes().replace(b"C" * 50, b"N" * 50))
    with pytest.raises(InputError, match="cannot read"), open_table(path) as table:
        list(table.rows)

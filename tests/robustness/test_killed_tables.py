"""Predictions and embeddings that are killed at any moment go on to the same bytes."""

import signal
from itertools import count
from pathlib import Path

import pytest
from openpyxl import load_workbook

from graphormer_sepnorm.errors import InputError
from tests.robustness import processes, tiny_table


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "name"),
    [("predict", "out.csv"), ("predict", "out.parquet"), ("predict", "out.xlsx"), ("embed", "out.npz")],
)
def test_a_table_killed_at_every_write_goes_on_to_the_same_bytes(tmp_path, command, name):
    """Before each file that is opened, renamed or removed, from the first record to the last."""
    source = tmp_path / "in.csv"
    source.write_text(tiny_table.TABLE)
    tiny_table.write(command, source, tmp_path / name)
    expected = content(tmp_path / name)
    unrecorded = 0
    for operation in count(1):
        out = tmp_path / str(operation) / name
        record = out.with_name(f"{name}.partial.json")
        exitcode = processes.finish(tiny_table.write_until_killed, operation, command, source, out)
        if exitcode == 0:
            break
        assert exitcode == -signal.SIGKILL
        if record.exists() or not out.exists():
            unrecorded += not record.exists()
            tiny_table.write(command, source, out, resume=record.exists())
        assert content(out) == expected
        assert [path.name for path in out.parent.iterdir() if path.name.startswith(name)] == [name]
    assert operation > 15 and unrecorded < 5  # the lock, the record and its name


def content(path: Path) -> object:
    """The bytes of a file; of a workbook, which has the time in it, the cells."""
    if path.suffix != ".xlsx":
        return path.read_bytes()
    return list(load_workbook(path).active.iter_rows(values_only=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["out.csv", "out.npz", "out.parquet"])
def test_embeddings_begun_with_another_model_or_file_are_not_gone_on_with(tmp_path, name, monkeypatch):
    source = tmp_path / "in.csv"
    source.write_text(tiny_table.TABLE)
    out = tmp_path / name
    processes.finish(tiny_table.write_until_killed, 14, "embed", source, out)
    assert out.with_name(f"{name}.partial").exists()
    source.write_text(tiny_table.TABLE + "C,d\n")
    with pytest.raises(InputError, match="begun with another model"):
        tiny_table.write("embed", source, out, resume=True)

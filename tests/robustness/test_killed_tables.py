"""Predictions and embeddings that are killed at any moment go on to the same bytes."""

import signal
from itertools import count

import pytest

from tests.robustness import processes, tiny_table


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "name"),
    [("predict", "out.csv"), ("predict", "out.parquet"), ("predict", "out.sdf"), ("embed", "out.npz")],
)
def test_a_table_killed_at_every_write_goes_on_to_the_same_bytes(tmp_path, command, name):
    """Before each file that is opened, renamed or removed, from the first record to the last."""
    source = tmp_path / "in.csv"
    source.write_text(tiny_table.TABLE)
    tiny_table.write(command, source, tmp_path / name)
    expected = (tmp_path / name).read_bytes()
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
        assert out.read_bytes() == expected
        assert [path.name for path in out.parent.iterdir() if path.name.startswith(name)] == [name]
    assert operation > 15 and unrecorded < 5  # the lock, the record and its name

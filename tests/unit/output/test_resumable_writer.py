import json

import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.output.resumable_writer import PartialFile


def test_the_record_is_there_before_the_first_byte_and_nothing_is_left_at_the_end(tmp_path):
    out = tmp_path / "out.csv"
    partial = PartialFile(out, "job", resume=False)
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv.partial.json"]
    partial.append(b"header\n")
    partial.append(b"1\n2\n", rows=2, unreadable=1)
    record = json.loads((tmp_path / "out.csv.partial.json").read_text())
    assert record == {"job": "job", "rows": 2, "unreadable": 1, "bytes": 11, "complete": False, "counts": {}}
    assert not out.exists()
    partial.finish(lambda grown: grown)
    assert out.read_bytes() == b"header\n1\n2\n" and [path.name for path in tmp_path.iterdir()] == ["out.csv"]


def test_bytes_behind_the_record_are_overwritten(tmp_path):
    out = tmp_path / "out.csv"
    first = PartialFile(out, "job", resume=False)
    first.append(b"header\n")
    with open(first.path, "ab") as file:
        file.write(b"half a li")  # killed here
    again = PartialFile(out, "job", resume=True)
    again.append(b"1\n", rows=1)
    again.finish(lambda grown: grown)
    assert out.read_bytes() == b"header\n1\n"


def test_a_job_that_was_stopped_before_its_first_record_begins(tmp_path):
    out = tmp_path / "out.csv"
    out.write_bytes(b"of an earlier job\n")
    partial = PartialFile(out, "job", resume=True)
    assert partial.record.exists() and out.read_bytes() == b"of an earlier job\n"
    partial.append(b"header\n")
    partial.finish(lambda grown: grown)
    assert out.read_bytes() == b"header\n" and [path.name for path in tmp_path.iterdir()] == ["out.csv"]


def test_only_the_same_job_goes_on(tmp_path):
    out = tmp_path / "out.csv"
    partial = PartialFile(out, "job", resume=False)
    partial.append(b"header\n")
    with pytest.raises(InputError, match="was begun with another model"):
        PartialFile(out, "another job", resume=True)
    partial.path.write_bytes(b"head")
    with pytest.raises(InputError, match="was begun with another model"):
        PartialFile(out, "job", resume=True)
    partial.record.write_text("{")
    with pytest.raises(InputError, match="is damaged: start again without --resume"):
        PartialFile(out, "job", resume=True)

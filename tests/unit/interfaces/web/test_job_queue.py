"""The queue: turns, limits, what a bad molecule costs, and the CSV."""

import csv
import io
import os
import threading
import time

import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.web import job_queue as desks
from graphormer_sepnorm.interfaces.web.job_queue import Busy, Desk, Limits, Shelf, Table, csv_lines, harmless
from graphormer_sepnorm.interfaces.web.schemas import Answer, Record
from graphormer_sepnorm.interfaces.web.worker import Worker
from tests.page import InThisProcess, Pretended, open_desk


def until(condition) -> None:
    """Waits for it, for a minute at most."""
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("it did not come")


def submit(desk: Desk, *smiles: str) -> Table:
    return desk.submit(io.BytesIO("\n".join(["smiles", *smiles]).encode()), ".csv", "the list")


def submit_together(desk: Desk, *tables: list[str]) -> list[Table]:
    """Puts tables into the queue before the desk looks at the first of them."""
    with desk.changed:
        return [submit(desk, *smiles) for smiles in tables]


class Held(Pretended):
    """Predicts when it is let; notes how many molecules it was asked for, and of which table."""

    def __init__(self):
        self.free, self.seen = threading.Event(), []

    def predict(self, smiles):
        self.free.wait(60)
        self.seen.append(smiles[0][0])
        return super().predict(smiles)

    def structure(self, smiles):
        self.seen.append("picture")
        return super().structure(smiles)


@pytest.fixture
def held(tmp_path):
    models = Held()
    with open_desk(InThisProcess(models), tmp_path / "shelf", Limits(waiting=3, kept=2, rows=1000)) as desk:
        desk.models = models
        yield desk
        models.free.set()


def test_tables_take_turns_so_that_a_small_one_does_not_wait_for_a_large_one(held):
    large, small = submit_together(held, ["A"] * 500, ["B"] * 10)
    until(lambda: small.rows)
    held.models.free.set()
    until(lambda: large.is_over and small.is_over)
    assert len(large.answers) == 500 and len(small.answers) == 10
    assert "B" in held.models.seen[:2]


def test_a_picture_goes_before_the_next_chunk(held):
    table = submit(held, *["A"] * 500)
    until(lambda: table.rows)
    picture = held.ask("structure", "CC")
    held.models.free.set()
    picture.result(60)
    assert "picture" in held.models.seen[:2]


def test_more_than_may_wait_is_refused(held):
    tables = submit_together(held, ["A"], ["A"], ["A"])
    until(lambda: all(table.rows for table in tables) and len(held.queue) == 2)
    submit(held, "A")  # one of the three is with the worker
    with pytest.raises(Busy):
        submit(held, "A")


def test_a_cancelled_table_keeps_what_is_done(held):
    table, other = submit_together(held, ["A"] * 500, ["B"])
    until(lambda: table.rows and other.rows)
    held.cancel(table)
    held.cancel(other)
    held.models.free.set()
    until(lambda: table.is_over and other.is_over)
    assert table.state == other.state == "cancelled"
    assert len(table.answers) in (0, desks.CHUNK) and len(other.answers) in (0, 1)


def test_memory_is_bounded_and_the_shelf_has_the_rest(held):
    held.models.free.set()
    tables = []
    for _ in range(4):
        tables.append(submit(held, "A"))
        until(lambda: tables[-1].is_over)
    assert list(held.tables) == [table.number for table in tables[2:]]
    until(lambda: held.shelf.find(tables[0].number))


def test_a_table_with_too_many_rows_fails_with_a_sentence(held):
    table = submit(held, *["A"] * 1001)
    until(lambda: table.is_over)
    assert (table.state, table.problem) == ("failed", "the list has more than 1000 molecules")


@pytest.mark.parametrize("suffix", ["", ".exe", ".gz", ".csv/../../x", ".parquet"])
def test_other_files_are_refused_before_they_are_written(held, suffix):
    with pytest.raises(InputError, match="give one of"):
        held.submit(io.BytesIO(b"smiles\nC"), suffix, "it")


@pytest.mark.slow
def test_a_bad_molecule_costs_its_own_row(tmp_path):
    """One that takes too long, one that crashes the process and one that meets a bug, among good ones."""
    smiles = ["C", "CC", "SLEEP", "CCC", "CRASH", "BUG", "X", "CCCC"]
    with open_desk(Worker(Pretended), tmp_path, Limits(step_seconds=3)) as desk:
        table = submit(desk, *smiles)
        until(lambda: table.is_over)
    assert table.state == "done"
    errors = [answer.error for answer in table.answers]
    assert [bool(error) for error in errors] == [False, False, True, False, True, True, True, False]
    assert "more than 3 seconds" in errors[2] and "crashed" in errors[4] and "KeyError" in errors[5]
    assert [answer.predictions["length"].value for answer in table.answers if not answer.error] == [1, 2, 3, 4]


def test_the_time_of_a_table_is_limited(tmp_path):
    with open_desk(InThisProcess(Pretended()), tmp_path, Limits(seconds=0)) as desk:
        table = submit(desk, "C")
        until(lambda: table.is_over)
    assert table.state == "failed" and "minutes of computing" in table.problem


def test_closing_keeps_what_is_done_and_leaves_no_upload(held, tmp_path):
    done = submit(held, "A")
    held.models.free.set()
    until(lambda: done.is_over)
    held.models.free.clear()
    running = submit(held, *["A"] * 500)
    until(lambda: running.rows)
    folder = held.uploads.name
    threading.Timer(0.3, held.models.free.set).start()
    held.close()
    assert running.state == "cancelled" and held.shelf.find(done.number).read_bytes().startswith(b'"smiles"')
    assert not os.path.exists(folder)
    with pytest.raises(Busy):
        submit(held, "A")


def test_the_shelf_gives_its_own_files_alone(tmp_path):
    (tmp_path / "secret.csv").write_text("x")
    shelf = Shelf(tmp_path / "shelf")
    shelf.put("0" * 32, b"a")
    assert shelf.find("0" * 32).read_bytes() == b"a"
    for number in ("../secret", "1" * 32, "0" * 31, "", ".", "0" * 32 + "\n", "A" * 32):
        assert shelf.find(number) is None
    assert (tmp_path / "shelf").stat().st_mode & 0o777 == 0o700


def test_the_shelf_forgets_after_a_week(tmp_path):
    shelf = Shelf(tmp_path)
    shelf.put("0" * 32, b"a")
    shelf.put("1" * 32, b"b")
    os.utime(tmp_path / f"{'0' * 32}.csv", (0, 0))
    assert [Shelf(tmp_path).find(digit * 32) is None for digit in "01"] == [True, False]


FORMULAS = ["=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", " =1", "\r=1", "\uff1d1", "-2+3+cmd|' /C calc'!A0", "\u200b=1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_are_texts_in_the_csv(text):
    assert harmless(text) == f"'{text}"


@pytest.mark.parametrize("text", ["-1.5", "+2e-3", "CC=O", "[Na+]", "", "a@b", "1-2", ".5"])
def test_numbers_and_smiles_stay_what_they_are(text):
    assert harmless(text) == text


def test_the_csv_by_hand():
    table = Table("0" * 32, None, "", ["=name", "smiles", "length"])
    table.rows = [
        Record(["=cmd()", "CXe", "-1"], "CXe", ""),
        Record(["caf\udce9", "X", 'a"b,c'], "X", ""),
        Record(["late", "C", ""], "C", ""),
    ]
    models = Pretended()
    table.answers = [*models.predict(["CXe"]), Answer(error="X cannot be read")]
    content = b"".join(csv_lines(table, models.facts()))
    assert b'"caf\xe9"' in content
    header, *rows = csv.reader(io.StringIO(content.decode("latin-1")))
    added = ["length_predicted", "length_low", "length_high", "similarity", "nearest", "warning", "error"]
    assert header == ["'=name", "smiles", "length", *added]
    assert rows == [
        ["'=cmd()", "CXe", "-1", "3", "2", "4", "0.5", "C", "Xe was never seen", ""],
        ["caf\xe9", "X", 'a"b,c', "", "", "", "", "", "", "X cannot be read"],
    ]

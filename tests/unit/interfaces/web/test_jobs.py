"""Finished tables: the store, the CSV, and what comes back of a table."""

import csv
import io
import os
from dataclasses import replace
from pathlib import Path

import pytest

from graphormer_sepnorm.interfaces.web.jobs import STOPPED, Job, ResultStore, escape_formula, saved_table
from graphormer_sepnorm.interfaces.web.schemas import EndpointFacts, ModelFacts, Options, TableRow
from tests.page import ADDED, PretendedService

NUMBER = "0" * 32
FACTS = PretendedService().facts()


def finished(number: str = NUMBER) -> Job:
    rows = [TableRow(["caf\udce9", "CC"], "CC", conditions=("25.0",)), TableRow(["", "X"], "X", conditions=("25.0",))]
    answers = PretendedService().predict(rows, Options())
    options = Options(interval=0.8, conditions={"temperature": "25"})
    columns = ["na\udcefme", "smiles"]
    parts = columns, rows, "smiles", ADDED, "", 1, ";"
    return Job(*parts, number=number, shown="assay.csv", options=options, answers=answers, state="done")


def keep(folder: Path, job: Job, facts: ModelFacts = FACTS) -> ResultStore:
    store = ResultStore(folder)
    store.begin(job, facts)
    store.add(job, answers=job.answers)
    store.end(job)
    return store


def test_a_stored_table_comes_back_as_it_was(tmp_path):
    facts = FACTS.model_copy(update={"endpoints": {"length": EndpointFacts(frequent=(2.0, 0.3))}})
    job = finished()
    assert keep(tmp_path, job, facts).load(NUMBER, facts) == job


@pytest.mark.parametrize(("lines", "done"), [(0, None), (1, None), (2, 0), (3, 1), (4, 2)])
@pytest.mark.parametrize("torn", [b"", b'{"answers": [{"err', b"\xff"])
def test_a_table_of_a_killed_page_has_failed_with_its_finished_rows(tmp_path, lines, done, torn):
    """The page is killed after each line, and in the middle of the next."""
    store, job = ResultStore(tmp_path), finished()
    store.begin(job, FACTS)
    for answer in job.answers:
        store.add(job, answers=[answer])
    path = tmp_path / f"{NUMBER}.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:lines]) + torn)
    found = store.load(NUMBER, FACTS)
    if done is None:
        assert found is None
    else:
        assert (found.state, found.rows, found.answers) == ("failed", job.rows, job.answers[:done])
        assert found.problem == STOPPED


def test_a_table_of_other_models_is_only_a_download(tmp_path):
    store = keep(tmp_path, finished())
    assert store.load(NUMBER, FACTS.model_copy(update={"targets": ["other"]})) is None
    assert store.load(NUMBER, FACTS.model_copy(update={"confidence": 0.5})) is not None
    assert saved_table(store.load(NUMBER), ".csv") == saved_table(finished(), ".csv")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"null", b"\xff", b'{"format": 2}'])
def test_a_damaged_file_is_no_table(tmp_path, content):
    store = ResultStore(tmp_path)
    (tmp_path / f"{NUMBER}.jsonl").write_bytes(content)
    assert store.load(NUMBER, FACTS) is None


def test_the_store_gives_only_its_own_files(tmp_path):
    store = keep(tmp_path / "store", finished())
    (tmp_path / "secret.jsonl").write_bytes((tmp_path / "store" / f"{NUMBER}.jsonl").read_bytes())
    assert store.load(NUMBER) is not None
    for number in ("../secret", "1" * 32, "0" * 31, "", ".", "0" * 32 + "\n", "A" * 32):
        assert store.load(number) is None
    assert (tmp_path / "store").stat().st_mode & 0o777 == 0o700


def test_the_store_forgets_after_a_week(tmp_path):
    for digit in "01":
        keep(tmp_path, finished(digit * 32))
    others = [tmp_path / name for name in ("assay.csv", "config.json")]
    for path in others:
        path.write_text("of the user")
    for path in (*others, *tmp_path.glob(f"{NUMBER}.*")):
        os.utime(path, (0, 0))
    again = ResultStore(tmp_path)
    assert all(path.exists() for path in others)
    assert [again.load(digit * 32, FACTS) is None for digit in "01"] == [True, False]
    for path in tmp_path.glob(f"{'1' * 32}.*"):
        os.utime(path, (0, 0))
    again.begin(finished("2" * 32), FACTS)
    assert [again.load(digit * 32) is None for digit in "12"] == [True, False], "also while the page is open"


def test_a_column_with_a_text_is_one_of_texts_in_the_workbook_and_precise_numbers_keep_their_digits():
    openpyxl = pytest.importorskip("openpyxl")
    job = finished()
    job.added = [ADDED[0].model_copy(update={"kind": "precise"}), *ADDED[1:]]
    job.rows[0].fields[0], job.answers[0].nearest = "=1+1", "<-6.5"
    job.answers[0].predictions["length"].value = 1_000_001.25125
    assert b";1000001.25125;" in saved_table(job, ".csv")
    sheet = openpyxl.load_workbook(io.BytesIO(saved_table(job, ".xlsx"))).active
    cells = {first.value: [(cell.value, cell.data_type) for cell in rest] for first, *rest in sheet.columns}
    assert cells["na?me"] == [("=1+1", "s"), (None, "n")] and cells["length"] == [(1_000_001.25125, "n"), (None, "n")]
    assert cells["nearest"] == [("<-6.5", "s"), (None, "n")]


FORMULAS = ["=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", " =1", "\r=1", "\uff1d1", "-2+3+cmd|' /C calc'!A0", "\u200b=1"]
NO_FORMULAS = ["-1.5", "+2e-3", "CC=O", "[Na+]", "", "a@b", "1-2", ".5", "-3,2", "-1.234,5", "-,5"]


@pytest.mark.parametrize("text", [*FORMULAS, *NO_FORMULAS])
def test_formulas_are_texts_in_the_csv_and_numbers_and_smiles_stay_what_they_are(text):
    assert escape_formula(text) == "'" * (text in FORMULAS) + text


def test_the_csv_by_hand():
    table = Job(number="0" * 32, columns=["=name", "smiles", "length"], added=ADDED)
    table.rows = [
        TableRow(["=cmd()", "CXe", "-1"], "CXe", ""),
        TableRow(["caf\udce9", "X", 'a"b,c'], "X", ""),
        TableRow(["late", "C", ""], "C", ""),
    ]
    table.answers = PretendedService().predict(table.rows[:2], Options())
    content = saved_table(table, ".csv")
    assert b"caf\xe9" in content
    header, *rows = csv.reader(io.StringIO(content.decode("latin-1")))
    added = ["length_predicted", "length_low", "length_high", "nearest", "similarity", "warning", "error"]
    assert header == ["'=name", "smiles", "length", *added]
    assert rows == [
        ["'=cmd()", "CXe", "-1", "3", "2", "4", "C", "0.5", "No training molecule contains Xe.", ""],
        ["caf\xe9", "X", 'a"b,c', "", "", "", "", "", "", "X cannot be read"],
    ]
    rows = [replace(table.rows[0], fields=["1,5", "CXe", "-1"])]
    german = replace(table, rows=rows, answers=table.answers[:1], delimiter=";")
    assert saved_table(german, ".csv").splitlines()[1].startswith(b"1,5;CXe;-1;3;2;4;C;0,5;")

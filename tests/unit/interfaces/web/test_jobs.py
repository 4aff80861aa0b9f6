"""Finished tables: the store, the CSV, and what comes back of a table."""

import csv
import io
import json
import os

import pytest

from graphormer_sepnorm.interfaces.web.jobs import Job, ResultStore, csv_lines, harmless, workbook
from graphormer_sepnorm.interfaces.web.schemas import EndpointFacts, Options, TableRow
from tests.page import ADDED, PretendedService

NUMBER = "0" * 32
FACTS = PretendedService().facts()


def finished(number: str = NUMBER) -> Job:
    rows = [TableRow(["caf\udce9", "CC"], "CC", "", ("25.0",)), TableRow(["", "X"], "X", "", ("25.0",))]
    answers = PretendedService().predict(rows, Options())
    options = Options(interval=0.8, conditions={"temperature": "25"})
    columns = ["na\udcefme", "smiles"]
    return Job(number, None, "assay.csv", options, columns, rows, "smiles", ADDED, answers, "done")


def test_a_stored_table_comes_back_as_it_was(tmp_path):
    facts = FACTS.model_copy(update={"endpoints": {"length": EndpointFacts(frequent=(2.0, 0.3))}})
    store, job = ResultStore(tmp_path), finished()
    store.put(job, facts)
    found = store.load(NUMBER, facts)
    job.is_stored = True
    assert found == job


def test_another_usual_confidence_is_no_other_model(tmp_path):
    store = ResultStore(tmp_path)
    store.put(finished(), FACTS)
    assert store.load(NUMBER, FACTS.model_copy(update={"confidence": 0.5})) is not None


def test_a_table_in_another_format_is_only_a_download(tmp_path):
    store = ResultStore(tmp_path)
    store.put(finished(), FACTS)
    path = tmp_path / f"{NUMBER}.json"
    content = json.loads(path.read_bytes())
    for other in ({"format": 1}, {}):
        path.write_text(json.dumps({name: each for name, each in content.items() if name != "format"} | other))
        assert store.load(NUMBER, FACTS) is None and store.find_csv(NUMBER)


def test_a_table_of_other_models_is_only_a_download(tmp_path):
    store = ResultStore(tmp_path)
    store.put(finished(), FACTS)
    assert store.load(NUMBER, FACTS.model_copy(update={"targets": ["other"]})) is None
    assert store.find_csv(NUMBER).read_bytes().startswith(b'"na\xefme"')


@pytest.mark.parametrize(
    ("shown", "name"),
    [
        ("assay.csv", "assay-predictions.csv"),
        ("my assay.v2.xlsx", "my assay.v2-predictions.csv"),
        ("the text", "predictions.csv"),
    ],
)
def test_a_download_is_named_after_the_upload(tmp_path, shown, name):
    job = finished()
    job.shown = shown
    store = ResultStore(tmp_path)
    store.put(job, FACTS)
    assert job.download == store.download_of(NUMBER) == name


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"null", b"\xff"])
def test_a_damaged_file_is_no_table(tmp_path, content):
    store = ResultStore(tmp_path)
    (tmp_path / f"{NUMBER}.json").write_bytes(content)
    assert store.load(NUMBER, FACTS) is None


def test_the_store_gives_its_own_files_alone(tmp_path):
    (tmp_path / "secret.csv").write_text("x")
    (tmp_path / "secret.json").write_text("{}")
    store = ResultStore(tmp_path / "store")
    store.put(finished(), FACTS)
    assert store.find_csv(NUMBER).read_bytes() == b"".join(csv_lines(finished()))
    for number in ("../secret", "1" * 32, "0" * 31, "", ".", "0" * 32 + "\n", "A" * 32):
        assert store.find_csv(number) is None and store.load(number, FACTS) is None
    assert (tmp_path / "store").stat().st_mode & 0o777 == 0o700


def test_the_store_forgets_after_a_week(tmp_path):
    store = ResultStore(tmp_path)
    for digit in "01":
        store.put(finished(digit * 32), FACTS)
    others = [tmp_path / name for name in ("assay.csv", "config.json")]
    for path in others:
        path.write_text("of the user")
    for path in (*others, *tmp_path.glob(f"{NUMBER}.*")):
        os.utime(path, (0, 0))
    again = ResultStore(tmp_path)
    assert all(path.exists() for path in others)
    assert [again.find_csv(digit * 32) is None for digit in "01"] == [True, False]
    assert [again.load(digit * 32, FACTS) is None for digit in "01"] == [True, False]
    for path in tmp_path.glob(f"{'1' * 32}.*"):
        os.utime(path, (0, 0))
    again.put(finished("2" * 32), FACTS)
    assert [again.find_csv(digit * 32) is None for digit in "12"] == [True, False], "also while the page is open"


def test_a_column_with_a_text_is_one_of_texts_in_the_workbook():
    openpyxl = pytest.importorskip("openpyxl")
    job = finished()
    job.rows[0].fields[0] = "=1+1"
    job.answers[0].nearest = "<-6.5"
    sheet = openpyxl.load_workbook(io.BytesIO(workbook(job))).active
    cells = {first.value: [(cell.value, cell.data_type) for cell in rest] for first, *rest in sheet.columns}
    assert cells["na?me"] == [("=1+1", "s"), (None, "n")] and cells["length"] == [(2, "n"), (None, "n")]
    assert cells["nearest"] == [("<-6.5", "s"), (None, "n")]


FORMULAS = ["=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", " =1", "\r=1", "\uff1d1", "-2+3+cmd|' /C calc'!A0", "\u200b=1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_are_texts_in_the_csv(text):
    assert harmless(text) == f"'{text}"


@pytest.mark.parametrize("text", ["-1.5", "+2e-3", "CC=O", "[Na+]", "", "a@b", "1-2", ".5", "-3,2", "-1.234,5", "-,5"])
def test_numbers_and_smiles_stay_what_they_are(text):
    assert harmless(text) == text


def test_the_csv_by_hand():
    table = Job("0" * 32, None, "", columns=["=name", "smiles", "length"], added=ADDED)
    table.rows = [
        TableRow(["=cmd()", "CXe", "-1"], "CXe", ""),
        TableRow(["caf\udce9", "X", 'a"b,c'], "X", ""),
        TableRow(["late", "C", ""], "C", ""),
    ]
    table.answers = PretendedService().predict(table.rows[:2], Options())
    content = b"".join(csv_lines(table))
    assert b'"caf\xe9"' in content
    header, *rows = csv.reader(io.StringIO(content.decode("latin-1")))
    added = ["length_predicted", "length_low", "length_high", "nearest", "similarity", "warning", "error"]
    assert header == ["'=name", "smiles", "length", *added]
    assert rows == [
        ["'=cmd()", "CXe", "-1", "3", "2", "4", "C", "0.5", "No training molecule contains Xe.", ""],
        ["caf\xe9", "X", 'a"b,c', "", "", "", "", "", "", "X cannot be read"],
    ]

"""Jobs on libraries, with parts written in turn, and workers; ``tests/robustness/test_library.py`` has real ones."""

import contextlib
import json
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.library import part_writer
from graphormer_sepnorm.library.part_writer import Models, PartOptions, Processes, Selection, connected, write_part
from graphormer_sepnorm.library.run import choose_rows, find_partitions, predict_library, unified
from graphormer_sepnorm.options import Answers
from graphormer_sepnorm.predict.domain import fit_domain
from graphormer_sepnorm.predict.predictors import Predictor
from graphormer_sepnorm.predict.trust import Trust
from graphormer_sepnorm.system.device import Compute
from tests.tiny import Trusting, tiny_model

ALL = PartOptions(Selection("logp"))
BEST = PartOptions(Selection("logp", keep_top=2), columns=("smiles",))


@pytest.fixture
def written(monkeypatch):
    """The names of the partitions that were computed."""
    names = []

    def compute_parts(client, models, assignments):
        for assignment in assignments:
            names.append(assignment.source.rpartition("/")[2])
            try:
                yield assignment, write_part(models.predictor, Compute(torch.device("cpu")), models.options, assignment)
            except (InputError, OSError) as error:
                yield assignment, error

    monkeypatch.setattr(part_writer, "connected", lambda processes, most: contextlib.nullcontext())
    monkeypatch.setattr(part_writer, "describe", lambda client: "")
    monkeypatch.setattr(part_writer, "compute_parts", compute_parts)
    return names


@pytest.fixture
def source(tmp_path):
    """A library of Parquet and CSV."""
    folder = tmp_path / "library"
    folder.mkdir()
    pq.write_table(pa.table({"smiles": ["CCO", "C("], "id": [1, 2]}), folder / "a.parquet")
    (folder / "b.csv").write_text("smiles\nCCCC\nCCN\nc1ccccc1\n")
    (folder / "_note.csv").write_text("no part of it")
    (folder / "README.md").write_text("no table")
    return folder


def predicted(source, tmp_path, options=ALL, seed=0, out="out", trust=None):
    return predict_library(Trusting([tiny_model(seed=seed)], trust), str(source), tmp_path / out, options)


def test_a_part_for_each_partition_and_a_manifest(written, source, tmp_path):
    (tmp_path / "out").mkdir()
    for name in (".manifest.json.ijnlosek.tmp", "library.lock"):  # of a job killed before its manifest was written
        (tmp_path / "out" / name).touch()
    result = predicted(source, tmp_path)
    assert [result[name] for name in ("rows", "unreadable", "kept", "partitions")] == [5, 1, 5, 2]
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} == {"manifest.json", "_SUCCESS", "parts"}
    assert {path.name for path in (out / "parts").iterdir()} == {"a.parquet", "b.csv.parquet"}
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["partitions"].keys() == {"a.parquet", "b.csv"} and manifest["options"]["selection"]["by"] == "logp"
    assert json.loads((out / "_SUCCESS").read_text()) == result


def test_the_best_rows_of_all_in_one_file(written, source, tmp_path):
    result = predicted(source, tmp_path, BEST)
    top = pq.ParquetFile(result["top"]).read().to_pylist()
    predicted(source, tmp_path, out="all")
    parts = {"a.parquet": "a.parquet", "b.csv": "b.csv.parquet"}
    tables = {name: pq.read_table(tmp_path / "all" / "parts" / part).to_pylist() for name, part in parts.items()}
    rows = {(name, place): row for name, table in tables.items() for place, row in enumerate(table)}
    best = sorted((key for key in rows if rows[key]["logp"] is not None), key=lambda key: -rows[key]["logp"])[:2]
    assert [(row["partition"], row["row"]) for row in top] == best
    assert [row["logp"] for row in top] == [rows[key]["logp"] for key in best]
    assert list(top[0]) == ["smiles", "logp", "row", "partition"]


def test_the_same_call_computes_missing_parts(written, source, tmp_path):
    predicted(source, tmp_path, BEST)
    first = (tmp_path / "out" / "top.parquet").read_bytes()
    (tmp_path / "out" / "parts" / "a.parquet").unlink()
    (tmp_path / "out" / "parts" / ".a.parquet.x.tmp").touch()
    assert predicted(source, tmp_path, BEST)["rows"] == 5
    assert written == ["a.parquet", "b.csv", "a.parquet"]
    assert (tmp_path / "out" / "top.parquet").read_bytes() == first
    assert [path.name for path in (tmp_path / "out" / "parts").glob(".*")] == []


def test_an_unreadable_partition_is_reported_and_can_be_repaired(written, source, tmp_path):
    whole = (source / "a.parquet").read_bytes()
    (source / "a.parquet").write_bytes(whole[:-1])
    with pytest.raises(InputError, match=r"1 of 2 partitions failed: a\.parquet \(cannot read "):
        predicted(source, tmp_path)
    with pytest.raises(InputError, match=r"^a\.parquet: cannot read "):  # only one is missing now
        predicted(source, tmp_path)
    assert not (tmp_path / "out" / "_SUCCESS").exists()
    (source / "a.parquet").write_bytes(whole)
    assert predicted(source, tmp_path)["rows"] == 5 and written == ["a.parquet", "b.csv", "a.parquet", "a.parquet"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda source: {"seed": 1}, "begun with other models: remove it, or choose another -o"),
        (lambda source: {"trust": Trust(fit_domain(["CCO"]))}, "begun with other models: remove it"),
        (lambda source: {"options": BEST}, "begun with other options: remove it, or choose another -o"),
        (lambda source: (source / "c.csv").write_text("smiles\nC\n") and {}, "begun with other input"),
        (lambda source: (source / "b.csv").write_text("smiles\nCCCCC\n") and {}, "has changed since .*remove the part"),
    ],
)
def test_another_job_is_refused(written, source, tmp_path, change, message):
    predicted(source, tmp_path)
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    with pytest.raises(InputError, match=message):
        predicted(source, tmp_path, **change(source))
    after = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    parts = [path for path in before if path.name != "manifest.json"]
    assert after.keys() == before.keys() and all(after[path] == before[path] for path in parts)


def test_a_job_without_a_finished_part_leaves_nothing_and_hinders_no_other_one(written, tmp_path):
    (tmp_path / "library.csv").write_text("molecule\nCCO\n")
    with pytest.raises(InputError, match="has no column 'smiles'"):
        predicted(tmp_path / "library.csv", tmp_path)
    assert list((tmp_path / "out").iterdir()) == []
    (tmp_path / "library.csv").write_text("smiles\nCCO\n")
    assert predicted(tmp_path / "library.csv", tmp_path, options=BEST)["rows"] == 1


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("scores.csv", "need a folder, and .*scores.csv sounds like a file"),
        ("file", "need a folder, and .*file is a file"),
        ("library", "holds other files: choose a new folder"),
    ],
)
def test_unusable_output_folders_are_refused(written, source, tmp_path, out, message):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=message):
        predicted(source, tmp_path, out=out)
    assert written == []


def test_names_are_those_below_what_partitions_have_in_common(tmp_path):
    for name in ("x/1.csv", "x/y/1.csv", "z/2.smi"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert list(find_partitions(str(tmp_path / "**" / "*.csv"))) == ["1.csv", "y/1.csv"]
    assert list(find_partitions(str(tmp_path / "z"))) == ["2.smi"]
    (tmp_path / "z" / "2[1].smi").touch()
    (tmp_path / "z" / "21.smi").touch()
    assert list(find_partitions(str(tmp_path / "z" / "2[1].smi"))) == ["2[1].smi"]
    assert list(find_partitions(str(tmp_path / "z" / "2[0-9].smi"))) == ["21.smi"]
    for nothing in ("*.parquet", "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(InputError, match=r"no (files|tables)"):
            find_partitions(str(tmp_path / nothing))


def test_columns_that_all_parts_end_with_stay_at_the_end():
    schemas = [pa.schema([(name, pa.string()) for name in names.split()]) for names in ("s i y r", "s v i y r", "y r")]
    assert unified(schemas, 2).names == ["s", "i", "v", "y", "r"]
    assert unified(schemas[:1], 2) == schemas[0] and unified([schemas[2], schemas[2]], 2) == schemas[2]
    with pytest.raises(pa.ArrowException):
        unified([schemas[0], pa.schema([("s", pa.list_(pa.string())), *map(schemas[0].field, (1, 2, 3))])], 2)


def test_predictions_are_not_mixed_with_a_column_of_the_same_name(written, tmp_path):
    """One partition has a column with the name of an added one, by which rows are not compared."""
    (tmp_path / "library").mkdir()
    for name, columns in (("a", {"smiles": ["CCO"], "alerts": ["none"]}), ("b", {"smiles": ["CC"]})):
        pq.write_table(pa.table(columns), tmp_path / "library" / f"{name}.parquet")
    options = PartOptions(Selection("logp", keep_top=1), answers=Answers(alerts=True))
    with pytest.raises(InputError, match="only some have a column with the name of an added one"):
        predicted(tmp_path / "library", tmp_path, options)


def test_rows_are_compared_by_an_existing_target():
    two = ["a", "b"]
    assert choose_rows(two, "b", 5, None, True) == Selection("b", 5, None, True)
    assert choose_rows(two, None, None, None, False).by == "a"
    for by, threshold, lowest, message in (
        (None, 0.5, False, "predict a, b: say with --by"),
        ("c", 0.5, False, "--by c is no target of the predictions, which are of a, b"),
        ("a", None, False, "--by needs --keep-top or --threshold"),
        (None, None, True, "--lowest needs --keep-top or --threshold"),
    ):
        with pytest.raises(InputError, match=message):
            choose_rows(two, by, None, threshold, lowest)


def models() -> Models:
    return Models(Predictor([tiny_model()]), PartOptions(Selection("logp"), precision="bfloat16"), "cpu", "name")


def worker(threads: int) -> SimpleNamespace:
    return SimpleNamespace(address="tcp://there:1", state=SimpleNamespace(nthreads=threads))


def test_workers_with_another_version_or_setup_are_reported(monkeypatch):
    with pytest.raises(InputError, match=r"tcp://there:1 has 8 threads: start workers with --nthreads 1"):
        models().setup(worker(8))
    plugin = models()
    plugin.setup(worker(1))
    assert (plugin.compute.device, plugin.compute.precision) == (torch.device("cpu"), "bfloat16")
    monkeypatch.setattr(part_writer, "__version__", "0.0")
    with pytest.raises(InputError, match=f"tcp://there:1 has version 0.0: install {plugin.version} there"):
        plugin.setup(worker(1))


def test_an_address_without_a_scheduler_is_reported(monkeypatch):
    monkeypatch.setattr(part_writer, "SECONDS_TO_CONNECT", 0.2)
    with (
        pytest.raises(InputError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"),
        connected(Processes("tcp://127.0.0.1:9"), 1),
    ):
        pass

"""Files that someone made to break the reader: refused with a sentence, in bounded time and memory."""

import contextlib
import gzip
import io
import json
import os
import pickle
import resource
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from graphormer_sepnorm import Graphormer
from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.config import config_from_json, config_to_json
from graphormer_sepnorm.datasets.benchmarks import load_split
from graphormer_sepnorm.encodings.shipped import Centrality
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.runs.arrays import load_arrays
from graphormer_sepnorm.runs.folder import STATE, WEIGHTS
from graphormer_sepnorm.runs.info import describe_model
from graphormer_sepnorm.tables.formats import open_table
from graphormer_sepnorm.tables.prepared_table import TABLE
from graphormer_sepnorm.training.experiment import evaluate_run
from tests.robustness import processes, tiny_run
from tests.tiny import save_tiny

FUZZ = settings(derandomize=True, suppress_health_check=list(HealthCheck))
GIGABYTE = 10**9


@contextlib.contextmanager
def refused_within(seconds: float, memory: float = GIGABYTE, match: str = "") -> Iterator[pytest.ExceptionInfo]:
    """Within it, an InputError is raised, in bounded time and memory."""
    started, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match=match) as refusal:
        yield refusal
    assert time.process_time() - started < seconds
    assert 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) < memory


class Planted:
    """A pickle of this writes a file when it is loaded."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Path:
    """A checkpoint with random weights."""
    path = tmp_path_factory.mktemp("good") / WEIGHTS
    config = tiny_run.tiny_config()
    config = replace(config, task=replace(config.task, mean=(0.0, 0.0), std=(1.0, 1.0)))
    checkpoint.save_model(path, Graphormer(config.model), config, {"epoch": 1, "val_metric": 0.5})
    return path


def forge(good: Path, path: Path, config: dict | None = None, tensors: dict | None = None) -> Path:
    """A checkpoint with changed parts and a checksum that fits them."""
    found, run_config, facts = checkpoint.load_tensors(good)
    texts = {"config": json.dumps(config) if config else config_to_json(run_config), "facts": json.dumps(facts)}
    tensors = found if tensors is None else tensors
    save_file(tensors, path, {**texts, checkpoint.CHECKSUM: checkpoint.checksum(tensors, texts)})
    return path


def config_of(good: Path) -> dict:
    return json.loads(config_to_json(checkpoint.load_tensors(good)[1]))


def changed(config: dict, path: str, value) -> dict:
    """The config with one entry set, or added."""
    *parents, last = path.split(".")
    place = config
    for parent in parents:
        place = place[int(parent)] if isinstance(place, list) else place[parent]
    place[last] = value
    return config


@pytest.mark.parametrize(
    "path, value, sentence",
    [
        ("model.width", 1_000_000, "asks for"),
        pytest.param("model.layers", 1000, "asks for", marks=pytest.mark.slow),
        ("model.layers", 10**9, "less than or equal"),
        ("model.atom_sizes", [10**6] * 100, "not those of the featurizer"),
        ("model.atom_sizes", [28] * 10**5, "at most 100 items"),
        ("model.layers", "2", "valid integer"),
        ("model.norm", "__import__('os')", "unknown norm"),
        ("model.encodings", [{"name": "edge", "num_bond_types": 200}], "Unexpected keyword argument"),
        ("model.encodings", [{"name": "bonds"}], "encodings"),
        ("task.std", [0.0, 1.0], "greater than 0"),
        ("task.mean", [], "no scale"),
        ("task.metric", "../../etc/passwd", "does not score a regression"),
        ("featurizer", "../ogb", "unknown featurizer"),
    ],
)
def test_configs_that_ask_for_the_impossible_are_refused(good, tmp_path, path, value, sentence):
    forged = forge(good, tmp_path / "forged.safetensors", changed(config_of(good), path, value))
    with refused_within(20, match=sentence):
        checkpoint.load_model(forged)


@pytest.mark.parametrize(
    "name, tensor, sentence",
    [
        ("cls", None, "tensor cls is missing"),
        ("../../evil", torch.zeros(1), "tensor ../../evil is not part of the model"),
        ("cls", torch.zeros(2, 8), r"tensor cls is torch.float32 \[2, 8\]"),
        ("cls", torch.zeros(1, 16, dtype=torch.float64), "tensor cls is torch.float64"),
        ("cls", torch.full((1, 16), torch.nan), "tensor cls has values that are not finite"),
    ],
)
def test_tensors_of_the_wrong_name_shape_type_or_value_are_refused(good, tmp_path, name, tensor, sentence):
    tensors = load_file(good)
    if tensor is None:
        tensors["padding"] = tensors.pop(name)
    else:
        tensors[name] = tensor
    with pytest.raises(InputError, match=sentence):
        checkpoint.load_model(forge(good, tmp_path / "forged.safetensors", tensors=tensors))


@pytest.mark.slow
@FUZZ
@given(start=st.integers(0, 10**5), junk=st.binary(max_size=64), cut=st.booleans())
def test_mutated_and_truncated_checkpoints_are_refused(good, tmp_path_factory, start, junk, cut):
    content = good.read_bytes()
    start %= len(content)
    mutated = content[:start] + junk + (b"" if cut else content[start + len(junk) :])
    assume(mutated != content)
    path = tmp_path_factory.getbasetemp() / "mutated"
    path.write_bytes(mutated)
    with pytest.raises(InputError):
        checkpoint.load_model(path)


def test_a_header_or_a_file_beyond_the_limits_is_not_read(tmp_path):
    header = tmp_path / "header"
    header.write_bytes((10**12).to_bytes(8, "little") + b"{}")
    with pytest.raises(InputError, match="not a weights file"):
        checkpoint.load_model(header)
    huge = tmp_path / "huge"
    with open(huge, "wb") as file:
        file.truncate(checkpoint.MAX_FILE + 1)
    with pytest.raises(InputError, match="checkpoints of up to"):
        checkpoint.load_model(huge)
    os.mkfifo(tmp_path / WEIGHTS)
    for endless in (Path("/dev/zero"), tmp_path):
        with pytest.raises(InputError, match="not a file"):
            checkpoint.load_model(endless)


@pytest.mark.slow
@pytest.mark.parametrize("name", [WEIGHTS, STATE, "pytorch_model.bin", "model.pt"])
@pytest.mark.parametrize("writer", ["pickle", "torch"])
def test_no_planted_pickle_is_loaded_from_a_run_folder(tmp_path, name, writer):
    run, trace = tmp_path / "run", tmp_path / "trace"
    run.mkdir()
    write = torch.save if writer == "torch" else pickle.dump
    with open(run / name, "wb") as file:
        write(Planted(trace), file)
    for load in (checkpoint.load_model, Graphormer.from_pretrained, lambda path: checkpoint.load_model(path / name)):
        with pytest.raises(InputError):
            load(run)
    assert processes.finish(tiny_run.run, run, tmp_path / "cache", resume=True) == (2 if "safetensors" in name else 0)
    assert not trace.exists()


@pytest.mark.parametrize("dataset", ["zinc-subset", "ogbg-molhiv"])
@pytest.mark.parametrize("writer", ["pickle", "torch"])
def test_no_planted_pickle_is_loaded_from_a_data_folder(tmp_path, dataset, writer):
    trace = tmp_path / "trace"
    files = [f"ZINC/raw/{split}.{kind}" for split in ("train", "val", "test") for kind in ("pickle", "index")]
    files += [f"ZINC/subset/processed/{split}.pt" for split in ("train", "val", "test")] if writer == "torch" else []
    files += ["ogbg_molhiv/processed/geometric_data_processed.pt", "ogbg_molhiv/split/scaffold/split_dict.pt"]
    files += [f"ogbg_molhiv/raw/{name}.csv.gz" for name in ("edge", "node-feat", "graph-label")]
    for name in files:
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb") as file:
            (torch.save if writer == "torch" else pickle.dump)(Planted(trace), file)
    (tmp_path / "root/ogbg_molhiv/RELEASE_v1.txt").touch()
    with pytest.raises(InputError, match=r"was not loaded|could not be"):
        load_split(dataset, "val", (Centrality(),), tmp_path / "root")
    assert not trace.exists()


@pytest.mark.slow
@FUZZ
@given(
    path=st.sampled_from(["model.width", "model.encodings", "train.lr", "task.targets", "dataset", "task.mean"]),
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    ),
)
def test_configs_are_read_or_refused(good, path, value):
    text = json.dumps(changed(config_of(good), path, value))
    try:
        config_from_json(text, "fuzz")
    except InputError as error:
        assert str(error).startswith("fuzz")


def complete_graph(atoms: int) -> str:
    """A SMILES in which every atom is bonded to every other one."""
    pairs = [(i, j) for i in range(atoms) for j in range(i + 2, atoms)]
    labels = {pair: f"%({number})" for number, pair in enumerate(pairs, 1)}
    rings = ("".join(label for pair, label in labels.items() if atom in pair) for atom in range(atoms))
    return "".join(f"[U]{text}" for text in rings)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "C" * 10**7, "C(" * 6_600 + "C" + ")" * 6_600, "(" * 19_000, "[" * 19_000, complete_graph(50), "C1" * 9_000,
        "C" * 20_000, "C1" + "C" * 19_900 + "1", "C=C" * 6_600, "CC\x00O", "C\x1b[31mC", "C\nC", "C\u202eC", "",
    ],
    ids=lambda text: f"{len(text)}-{text[:6]!a}",
)  # fmt: skip
def test_monstrous_smiles_are_refused_at_once(text):
    for featurizer in FEATURIZERS.values():
        with refused_within(5) as refusal:
            featurizer.graph(text)
        assert len(str(refusal.value)) < 500 and str(refusal.value).isprintable()


def gzip_bomb(piece: bytes) -> bytes:
    """A gigabyte of ``piece`` after a header, in as many members of one file."""
    return gzip.compress(b"smiles\n") + gzip.compress(piece, compresslevel=1) * (GIGABYTE // len(piece))


def zip_bomb() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("table.csv", b"smiles\n" + b"C" * 10**8)
    return packed.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, bomb",
    [
        ("a.csv.gz", lambda: gzip_bomb(b"C" * 10**7)),
        ("a.csv.gz", lambda: gzip_bomb(b'"C\n' + b"C\n" * 10**6)),
        ("a.sdf.gz", lambda: gzip_bomb(b"C" * 900_000 + b"\n")),
        ("a.csv", zip_bomb),
    ],
    ids=["line", "CSV record", "SDF record", "zip"],
)
def test_bombs_end_early(tmp_path, name, bomb):
    (tmp_path / name).write_bytes(bomb())
    with refused_within(10, GIGABYTE // 2), open_table(tmp_path / name) as table:
        list(table.rows)


@pytest.mark.slow
def test_a_file_of_very_many_tensors_is_refused_before_they_are_read(tmp_path, monkeypatch):
    """The reader of safetensors would take a minute."""
    monkeypatch.setattr(checkpoint, "safe_open", None)
    empty = {f"{number}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for number in range(150_000)}
    header = json.dumps(empty, separators=(",", ":")).encode()
    (tmp_path / "kernel.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(InputError, match="has 150,000 tensors; files with up to 10,000 are read"):
        load_arrays(tmp_path / "kernel.safetensors")


@pytest.fixture
def table_run(tmp_path) -> Path:
    """A run folder of a table, never trained: a checkpoint, the table, a score."""
    model, config, facts = checkpoint.load_model(save_tiny(tmp_path / "tiny"))
    run = tmp_path / "run"
    checkpoint.save_model(run / WEIGHTS, model, replace(config, dataset=TABLE), facts)
    (run / TABLE).write_text("smiles,split,target logp\nCCO,test,1\nCCN,test,2\n")
    facts = {"task": {"kind": "regression", "metric": "mae", "targets": ["logp"]}, "featurizer": config.featurizer}
    (run / "table.json").write_text(json.dumps(facts))
    (run / "test.json").write_text('{"value": 0.5}')
    assert evaluate_run(run)["n"] == 2 and describe_model(run)["test"] == 0.5
    return run


JSON = [b"", b"{", b"{}", b"[]", b"null", b'{"value": []}', b"\xff\xfe", b"[" * 10**5]
CSV = [b"", b"smiles\n", b"\xff\xfe\x00", b"smiles,split\nCCO,test\n", b'smiles,"sp']


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "use", "contents"),
    [("test.json", describe_model, JSON), ("table.json", evaluate_run, JSON), (TABLE, evaluate_run, CSV)],
)
def test_damaged_files_beside_a_checkpoint_are_named(table_run, name, use, contents):
    for content in contents:
        (table_run / name).write_bytes(content)
        with pytest.raises(InputError, match=rf"{name} is (missing or )?damaged"):
            use(table_run)

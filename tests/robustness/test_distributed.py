"""Several processes do what one does: torchrun on the CPU with gloo."""

import datetime
import json
import os
import socket
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch
import torch.distributed as dist
from torch import nn

from graphormer_sepnorm import Graphormer
from graphormer_sepnorm.datasets.benchmarks import load_split, sample_table
from graphormer_sepnorm.layers.batch_norm import SyncedBatchNorm, batch_statistics
from graphormer_sepnorm.predict.forward import predict_together
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.runs.folder import STATE
from graphormer_sepnorm.runs.zoo import resolve_model
from graphormer_sepnorm.system import distributed
from graphormer_sepnorm.system.files import CACHE_VARIABLE
from graphormer_sepnorm.tasks import make_task
from tests.robustness import processes, tiny_run
from tests.robustness.test_interruption import SCRIPT, assert_complete, losses
from tests.tiny import save_tiny


def in_group(function, folder: Path, size: int) -> None:
    processes.all_succeed([processes.start(member, function, rank, size, folder) for rank in range(size)])


def member(function, rank: int, size: int, folder: Path) -> None:
    os.environ |= {
        "TORCHELASTIC_RUN_ID": "test", "RANK": str(rank), "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(size),
    }  # fmt: skip
    os.environ[CACHE_VARIABLE] = str(folder)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting-{size}", rank=rank, world_size=size)
    dist.barrier()  # who left before the others had connected would break their connection
    function(rank, size, folder)
    dist.destroy_process_group()


def batch_norm_of_a_share(rank: int, size: int, folder: Path) -> None:
    """Rows with a spread far below their mean, as the CLS rows of early layers have it, in unequal shares."""
    rows = 3 + 1e-3 * torch.randn(7, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    weights = torch.randn(7, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    whole, whole_rows = nn.BatchNorm1d(4).double(), rows.clone().requires_grad_()
    expected = whole(whole_rows)
    (expected * weights).sum().backward()

    synced = SyncedBatchNorm(4).double()
    share_rows = rows[rank::size].clone().requires_grad_()
    output = synced(share_rows)
    (output * weights[rank::size]).sum().backward()

    torch.testing.assert_close(output, expected[rank::size])
    torch.testing.assert_close(share_rows.grad, whole_rows.grad[rank::size])
    for name, buffer in whole.state_dict().items():
        torch.testing.assert_close(synced.state_dict()[name], buffer)
    variance, mean = batch_statistics(nn.SyncBatchNorm(4), rows[rank::size])
    torch.testing.assert_close((variance, mean), torch.var_mean(rows, dim=0, correction=0))


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_synchronized_batch_norm_is_that_of_all_rows(tmp_path, size):
    in_group(batch_norm_of_a_share, tmp_path, size)


def predict_share(rank: int, size: int, folder: Path) -> None:
    config = tiny_run.tiny_config()
    data = load_split("sample", "test", config.model.encodings)
    torch.manual_seed(0)
    model = Graphormer(config.model).eval()
    seen = []
    model.embedding.register_forward_hook(lambda module, inputs, output: seen.append(len(output)))
    prediction = predict_together(model, data, make_task(make_task(config.task).fitted(data.y)))
    np.savez(folder / f"{size}-{rank}.npz", prediction=prediction, atoms=sum(seen))


@pytest.mark.slow
def test_predictions_are_complete_ordered_and_made_once(tmp_path):
    for size in (1, 2, 3):
        in_group(predict_share, tmp_path, size)
    alone = np.load(tmp_path / "1-0.npz")
    for size in (2, 3):
        shares = [np.load(tmp_path / f"{size}-{rank}.npz") for rank in range(size)]
        assert all(np.array_equal(share["prediction"], alone["prediction"]) for share in shares)
        assert sum(int(share["atoms"]) for share in shares) == int(alone["atoms"])


def predict_own_molecules(rank: int, size: int, folder: Path) -> None:
    """Each process asks for other molecules, and only the first for a third time."""
    model = Graphormer.from_pretrained(folder)
    smiles = [["CCO", "c1ccccc1O"], ["CC(=O)O", "CCN"]]
    own = model.predict(smiles[rank])
    if rank == 0:
        np.savez(folder / "predicted.npz", own=own, other=model.predict(smiles[1]), embedded=model.embed(smiles[0]))


@pytest.mark.slow
def test_processes_predict_what_each_is_asked_for(tmp_path):
    save_tiny(tmp_path)
    in_group(predict_own_molecules, tmp_path, 2)
    found, model = np.load(tmp_path / "predicted.npz"), Graphormer.from_pretrained(tmp_path)
    np.testing.assert_array_equal(found["own"], model.predict(["CCO", "c1ccccc1O"]))
    np.testing.assert_array_equal(found["other"], model.predict(["CC(=O)O", "CCN"]))
    np.testing.assert_array_equal(found["embedded"], model.embed(["CCO", "c1ccccc1O"]))


@pytest.mark.slow
def test_the_predict_command_writes_its_output_once(tmp_path):
    """In order and complete: one process computes, as without torchrun."""
    save_tiny(tmp_path / "model")
    sample_table()[:50].to_csv(tmp_path / "in.csv")
    script = tmp_path / "predict.py"
    script.write_text("from graphormer_sepnorm.interfaces.cli import main; main()")
    for number in (0, 2):
        arguments = [script, "predict", tmp_path / "model", tmp_path / "in.csv", "-o", tmp_path / f"out{number}.csv"]
        done = processes.command(*arguments, processes=number)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout.splitlines()[-1])["rows"] == 50
    assert (tmp_path / "out2.csv").read_bytes() == (tmp_path / "out0.csv").read_bytes()


def trained(folder: Path, number: int, optimizer: str) -> dict:
    arguments = ["--out", folder / "run", "--cache", folder / "cache", "--dropout", 0, "--epochs", 2]
    arguments += ["--optimizer", optimizer]
    done = processes.command(SCRIPT, *arguments, processes=number)
    assert done.returncode == 0, done.stderr
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("{"))
    return json.loads(line)


@pytest.mark.slow
def test_two_processes_fine_tune_a_table_by_the_default_recipe(tmp_path):
    """The networks keep the statistics of BatchNorm and start at a regression, in both processes alike."""
    sample_table()[:60].to_csv(tmp_path / "mols.csv", index=False)
    train = ["train.py", "--csv", tmp_path / "mols.csv", "--target-columns", "penalized_logp", "--split", "random"]
    train += ["--ensemble", 1, "--epochs", 2, "--no-baseline", "--out", tmp_path / "run"]
    done = processes.command(*train, processes=2)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "report.html").exists() and (tmp_path / "run" / "stack.safetensors").exists()
    tensors, config, _ = checkpoint.load_tensors(tmp_path / "run" / "model-0" / STATE)
    assert (config.train.start_from, config.train.epochs, config.train.frozen_statistics) == ("foundation", 2, True)
    before, _, _ = checkpoint.load_tensors(resolve_model("foundation"))
    trained = ("blocks.0.attention.qkv.weight", "blocks.2.ffn.up.weight")
    assert all(not tensors[f"model.{name}"].equal(before[name]) for name in trained)
    frozen = [name for name in before if name.startswith("local_blocks.")]
    assert frozen and all(tensors[f"model.{name}"].equal(before[name]) for name in frozen)


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adamw", pytest.param("muon", marks=pytest.mark.nightly)])
def test_two_processes_train_as_one(tmp_path, optimizer):
    """Odd sizes, missing labels, and BatchNorm on the CLS; without dropout, whose masks differ between processes."""
    one, two = tmp_path / "one", tmp_path / "two"
    alone, together = trained(one, 1, optimizer), trained(two, 2, optimizer)
    assert together["value"] == pytest.approx(alone["value"], rel=1e-6)
    assert together["n"] == alone["n"] == 11
    np.testing.assert_allclose(losses(two / "run"), losses(one / "run"), rtol=1e-6, atol=1e-12)
    assert_complete(two / "run")
    ours, theirs = (checkpoint.load_tensors(folder / "run" / STATE)[0] for folder in (two, one))
    assert ours.keys() == theirs.keys()
    assert sorted((two / "cache" / tiny_run.READS).read_text().split()) == ["test", "train", "val"]
    assert processes.finish(tiny_run.evaluate, two / "run", two / "cache") == 0


@pytest.mark.slow
def test_a_process_that_dies_ends_the_others_within_a_minute(tmp_path):
    arguments = [SCRIPT, "--out", tmp_path / "run", "--cache", tmp_path / "cache", "--epochs", 100_000]
    launcher = psutil.Popen(processes.command_line(*arguments, processes=2), **processes.surroundings())
    while not (tmp_path / "run" / STATE).exists():
        time.sleep(0.1)
    workers = launcher.children()
    assert len(workers) == 2
    workers[-1].kill()
    killed = time.perf_counter()
    assert launcher.wait(60) != 0
    assert psutil.wait_procs(workers, timeout=max(60 - (time.perf_counter() - killed), 0))[1] == []
    assert processes.finish(checkpoint.load_tensors, tmp_path / "run" / STATE) == 0


def join_late(rank: int, port: int) -> None:
    environment = {"TORCHELASTIC_RUN_ID": "test", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.environ |= environment | {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    distributed.TIMEOUT = datetime.timedelta(seconds=5)
    time.sleep(12 * rank)
    distributed.wait_for_all()


@pytest.mark.slow
def test_processes_wait_for_one_that_prepares_molecules():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes.all_succeed([processes.start(join_late, rank, port) for rank in range(2)])

"""Training on a GPU, all of it within ten minutes of an H100; every figure is a JSON line of a file as it comes.

    python tests/benchmarks/gpu.py pack zinc.csv.gz molecules.safetensors          # anywhere; needs RDKit
    python tests/benchmarks/gpu.py measure molecules.safetensors results.jsonl     # on the GPU
        [--peers PEERS/bin/python --csv zinc.csv.gz] [--limit 600]

Molecules per second of whole updates as the trainer makes them: batches are packed, padded and moved ahead, losses are
read every hundred updates. Random batches, bfloat16, with and without torch.compile. The part of the time in which the
GPU computes comes from a profile of other updates than those that are timed. Hugging Face's Graphormer runs in its own
environment, in float32 on batches that are collated before the clock starts, and is counted the same way.

The CSV has the columns `smiles` and `penalized_logp`. With --device cpu the figures mean nothing: that tries the
script.
"""

import argparse
import itertools
import json
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from ours import read
from run import call
from safetensors.torch import load_file, save_file

from graphormer_sepnorm.chem.features import FOR_TABLES
from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.datasets.store import MoleculeDataset, from_tensors, in_memory, to_tensors
from graphormer_sepnorm.graphs import Graphs
from graphormer_sepnorm.recipes import RECIPES, Recipe, task_config
from graphormer_sepnorm.system.device import choose, computing
from graphormer_sepnorm.training.pretrain import SIZES
from graphormer_sepnorm.training.trainer import Trainer

MODELS: dict[str, tuple[Recipe, int]] = {
    "slim": (RECIPES["slim"], 1),
    "local": (RECIPES["local"], 1),
    "foundation": (SIZES["base"], 200),  # with as many targets as there are descriptors
}
BATCH_SIZES = (64, 256, 1024)
PEER_HOPS = 20


def make_trainer(recipe: Recipe, data: MoleculeDataset, device: str) -> Trainer:
    """Of a model with random weights."""
    task = TaskConfig("regression", "mae", tuple(map(str, range(data.y.shape[1]))))
    with computing(choose(device)):
        trainer = Trainer(task_config("gpu", FOR_TABLES, task, recipe), data, data)
    trainer.model.train()
    return trainer


def random_batches(molecules: int, batch_size: int) -> list[np.ndarray]:
    """Full batches of many passes over the molecules."""
    rng = np.random.default_rng(0)
    passes = (rng.permutation(molecules) for _ in range(1 + 10_000 * batch_size // molecules))
    return [order[a : a + batch_size] for order in passes for a in range(0, molecules - batch_size + 1, batch_size)]


def updates(trainer: Trainer, batches: list[np.ndarray]) -> Iterator[None]:
    """Endless updates, read every hundred."""
    taken = []
    for share in itertools.chain.from_iterable(trainer.shares(batches) for _ in itertools.count()):
        taken.append(trainer.update(share, trainer.config.train.lr))
        if len(taken) == 100:
            torch.stack(taken).tolist()
            taken.clear()
        yield


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def timed(running: Iterator[None], count: int, device: torch.device) -> float:
    """Seconds that some updates take."""
    wait(device)
    started = time.perf_counter()
    for _ in itertools.islice(running, count):
        pass
    wait(device)
    return time.perf_counter() - started


def busy(running: Iterator[None], count: int, device: torch.device) -> float | None:
    """The part of the time of some updates in which the GPU computes; None without a GPU."""
    if device.type != "cuda":
        return None
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        seconds = timed(running, count, device)
    return sum(event.self_device_time_total for event in profile.key_averages()) / 1e6 / seconds


def own_row(name: str, batch_size: int, compiled: bool, graphs: Graphs, args: argparse.Namespace) -> dict:
    """Ours: the median of three times over ``args.seconds``, after updates that compile and allocate."""
    device, (recipe, tasks) = torch.device(args.device), MODELS[name]
    data = in_memory(graphs.with_targets(np.tile(graphs.y, (1, tasks))), recipe.architecture((1,), (1,)).encodings)
    plain = replace(recipe.train, precision="bf16-mixed", start_from=None, frozen_epochs=0)
    recipe = replace(recipe, train=replace(plain, batch_size=batch_size, compile=compiled))
    running = updates(make_trainer(recipe, data, args.device), random_batches(len(data), batch_size))
    first = timed(running, args.warmup, device)
    count = max(1, round(args.seconds / 3 / (timed(running, args.warmup, device) / args.warmup)))
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    rates = sorted(count * batch_size / timed(running, count, device) for _ in range(3))
    return {
        "model": name,
        "batch": batch_size,
        "compiled": compiled,
        "molecules_per_s": rates[1],
        "each": rates,
        "busy": busy(running, min(count, 20), device),
        "peak_mib": torch.cuda.max_memory_allocated(device) / 2**20 if device.type == "cuda" else None,
        "first_updates_s": first,
    }


def peer_row(batch_size: int, args: argparse.Namespace) -> dict:
    """Hugging Face's, at the size of slim."""
    options = ("--csv", args.csv, "--molecules", max(2000, batch_size), "--batch-size", batch_size)
    found = call(args.peers, "peer_hf.py", "train", *options, "--max-hops", PEER_HOPS, "--device", args.device)
    return {"model": found["peer"], "batch": batch_size, "molecules_per_s": found["step_molecules_per_s"]}


def measure(args: argparse.Namespace) -> None:
    """A line per row, until the time is up: ours first, then the peer's, then ours compiled."""
    ends = time.monotonic() + args.limit
    graphs = from_tensors(load_file(args.molecules))
    cuda = args.device.startswith("cuda")
    facts = {"device": torch.cuda.get_device_name(args.device) if cuda else args.device, "torch": torch.__version__}
    sizes = list(itertools.product(args.models, args.batch_sizes))
    rows = [lambda name=name, size=size: own_row(name, size, False, graphs, args) for name, size in sizes]
    rows += [lambda size=size: peer_row(size, args) for size in args.batch_sizes if args.peers]
    rows += [lambda name=name: own_row(name, args.batch_sizes[-1], True, graphs, args) for name in args.models]
    with open(args.out, "a") as file:
        for number, row in enumerate(rows[: args.rows]):
            if time.monotonic() > ends:
                print(f"the time is up: {len(rows) - number} of {len(rows)} rows are missing")
                return
            line = json.dumps(facts | row())
            print(line, flush=True)
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())


def pack(args: argparse.Namespace) -> None:
    """Writes molecules and their targets as one file of compact arrays."""
    save_file(to_tensors(read(args.csv, args.count, FOR_TABLES)), args.molecules)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    packing = commands.add_parser("pack")
    packing.set_defaults(run=pack)
    packing.add_argument("csv", type=Path)
    packing.add_argument("molecules", type=Path)
    packing.add_argument("--count", type=int, default=20_000)
    measuring = commands.add_parser("measure")
    measuring.set_defaults(run=measure)
    measuring.add_argument("molecules", type=Path)
    measuring.add_argument("out", type=Path)
    measuring.add_argument("--peers", help="python of the peers' environment; without it theirs is left out")
    measuring.add_argument("--csv", type=lambda text: Path(text).resolve(), help="for the peer, which reads SMILES")
    measuring.add_argument("--device", default="cuda")
    measuring.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    measuring.add_argument("--batch-sizes", nargs="+", type=int, default=list(BATCH_SIZES))
    measuring.add_argument("--seconds", type=float, default=9.0, help="of a row, without what compiles")
    measuring.add_argument("--warmup", type=int, default=20)
    measuring.add_argument("--rows", type=int, help="how many of the rows, in their order; by default all")
    measuring.add_argument("--limit", type=float, default=570.0, help="seconds after which no row begins")
    args = parser.parse_args()
    if getattr(args, "device", "cpu").startswith("cuda") and not torch.cuda.is_available():
        raise SystemExit("PyTorch finds no CUDA GPU: these figures are for one; --device cpu tries the script")
    args.run(args)


if __name__ == "__main__":
    main()

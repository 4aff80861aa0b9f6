"""Training on a GPU beside a plain padded Graphormer and Hugging Face's: one JSON line per recipe and batch size.

    python tests/benchmarks/gpu.py --csv zinc.csv.gz [--peers PEERS/bin/python] [--device cuda]

Molecules per second of whole updates, from the numbers of the molecules to changed weights, in bfloat16; the part of
the time in which the GPU computes, from a profile of other updates than those that are timed; peak memory. Ours and
the plain one alternate in this process and medians are compared; the plain one's batches are padded and moved before
the clock starts. Hugging Face's, in its own environment, runs in float32, as it does on CPUs, and is timed likewise.
The CSV has the columns `smiles` and `penalized_logp`. On --device cpu the numbers mean nothing: that tries the script.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from graphormer_sepnorm.training.device_step import DeviceStep
from ours import FEATURIZER, read
from plain import Plain, padded
from run import call
from torch.optim.swa_utils import AveragedModel

from graphormer_sepnorm.config import ModelConfig, TaskConfig, TrainConfig
from graphormer_sepnorm.datasets.store import MoleculeDataset, in_memory
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.recipes import RECIPES
from graphormer_sepnorm.system.device import autocast
from graphormer_sepnorm.tasks import Task, fit_scale
from graphormer_sepnorm.training.optimizers import make_optimizers

TARGETS = {"paper": 40_000, "best": 20_000}
Step = Callable[[int], object]


def architecture(recipe: str) -> ModelConfig:
    return RECIPES[recipe].architecture(FEATURIZER.atom_sizes, FEATURIZER.bond_sizes, 1)


def make_ours(recipe: str, data: MoleculeDataset, batches: list[np.ndarray], device: torch.device) -> Step:
    """Update number n of ours, as the trainer makes it."""
    found = RECIPES[recipe]
    train = replace(found.train, batch_size=len(batches[0]), precision="bf16-mixed", start_from=None)
    model = Network(architecture(recipe)).to(device).train()
    task = Task(fit_scale(TaskConfig("regression", "mae", ("penalized_logp",)), data.y), device)
    average = AveragedModel(model) if train.averaging else None
    step = DeviceStep(model, task, data, train, make_optimizers(model, train), average)
    return lambda number: step(batches[number % len(batches)], train.lr)


def make_plain(data: MoleculeDataset, batches: list[np.ndarray], device: torch.device) -> Step:
    """Update number n of a plain Graphormer of the paper's size, on batches that are padded and moved already."""
    config = architecture("paper")
    model = Plain(config).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=TrainConfig().lr, fused=True)
    made = [padded(data.batch(molecules)) for molecules in batches]
    made = [({name: array.to(device) for name, array in arrays.items()}, y.to(device)) for arrays, y in made]

    def step(number: int) -> float:
        arrays, y = made[number % len(made)]
        with autocast("bf16-mixed", device):
            output = model(arrays)
        loss = torch.nn.functional.l1_loss(output.float(), y)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        return loss.item()

    return step


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def rate(step: Step, steps: int, batch_size: int, device: torch.device) -> float:
    """Molecules per second."""
    wait(device)
    started = time.perf_counter()
    for number in range(steps):
        step(number)
    wait(device)
    return steps * batch_size / (time.perf_counter() - started)


def busy(step: Step, steps: int, device: torch.device) -> float | None:
    """The part of the time in which the GPU computes, from a profile; None without one."""
    if device.type != "cuda":
        return None
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        wait(device)
        started = time.perf_counter()
        for number in range(steps):
            step(number)
        wait(device)
        seconds = time.perf_counter() - started
    return sum(event.self_device_time_total for event in profile.key_averages()) / 1e6 / seconds


def peak_memory(step: Step, steps: int, device: torch.device) -> float | None:
    """MiB that PyTorch had taken of a GPU's memory at most, everything included; None without one."""
    if device.type != "cuda":
        return None
    torch.cuda.reset_peak_memory_stats(device)
    for number in range(steps):
        step(number)
    wait(device)
    return torch.cuda.max_memory_allocated(device) / 2**20


def row(recipe: str, batch_size: int, data: MoleculeDataset, paper: MoleculeDataset, args: argparse.Namespace) -> dict:
    """Ours on molecules that are prepared for the recipe, the plain one on the same, prepared for the paper's."""
    torch._dynamo.reset()
    device = torch.device(args.device)
    order = np.random.default_rng(0).permutation(len(data))
    batches = [order[start : start + batch_size] for start in range(0, len(data) - batch_size + 1, batch_size)]
    sides = {"ours": make_ours(recipe, data, batches, device), "plain": make_plain(paper, batches[:8], device)}
    for step in sides.values():
        rate(step, args.warmup, batch_size, device)
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(args.repeat):
        for name, step in sides.items():
            rates[name].append(rate(step, args.steps, batch_size, device))
    speeds = {name: statistics.median(found) for name, found in rates.items()}
    result = {
        "row": f"training on a GPU, {recipe}, batch {batch_size}, molecules/s",
        **speeds,
        "each": rates,
        "ratio": speeds["ours"] / speeds["plain"],
        "target": TARGETS[recipe] if batch_size == 256 else None,
        "busy": {name: busy(step, args.steps, device) for name, step in sides.items()},
        "peak_mib_of_both": {name: peak_memory(step, args.steps, device) for name, step in sides.items()},
    }
    if args.peers:
        options = ("--csv", args.csv, "--molecules", args.molecules, "--batch-size", batch_size, "--max-hops", 20)
        theirs = call(args.peers, "peer_hf_train.py", *options, "--device", args.device)
        result["theirs"] = theirs["step_molecules_per_s"]
        result["theirs_ratio"] = speeds["ours"] / result["theirs"]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", type=lambda text: Path(text).resolve(), required=True)
    parser.add_argument("--peers", help="python of the peers' environment; without it Hugging Face's is left out")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--recipes", nargs="+", choices=TARGETS, default=list(TARGETS))
    parser.add_argument("--batch-sizes", nargs="+", type=int, default=[64, 256, 1024])
    parser.add_argument("--molecules", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warmup", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    if args.device.startswith("cuda") and not torch.cuda.is_available():
        raise SystemExit("PyTorch finds no CUDA GPU: these rows are for one; --device cpu tries the script")
    name = torch.cuda.get_device_name(args.device) if args.device.startswith("cuda") else args.device
    graphs = read(args.csv, args.molecules)
    paper = in_memory(graphs, architecture("paper").encodings)
    for recipe in args.recipes:
        data = in_memory(graphs, architecture(recipe).encodings)
        for batch_size in args.batch_sizes:
            print(json.dumps(row(recipe, batch_size, data, paper, args) | {"device": name}), flush=True)


if __name__ == "__main__":
    main()

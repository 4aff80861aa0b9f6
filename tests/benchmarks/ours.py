"""Our side of the benchmarks, one JSON line per call: train, encodings, memory or growth.

python ours.py train --csv zinc.csv.gz
"""

import argparse
import json
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from graphormer_sepnorm import Graphormer, ModelConfig, best, slim
from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.config import TrainConfig
from graphormer_sepnorm.datasets.store import MoleculeDataset, in_memory, open_or_write
from graphormer_sepnorm.encodings import precompute
from graphormer_sepnorm.graphs import Graphs
from graphormer_sepnorm.training.optimizers import adamw
from graphormer_sepnorm.training.trainer import epoch_batches

FEATURIZER = FEATURIZERS["zinc"]


def slim_config(norm: str = "sepnorm") -> ModelConfig:
    """The size and the dropout of the peer."""
    return replace(slim(FEATURIZER.atom_sizes, FEATURIZER.bond_sizes), norm=norm, attention_dropout=0.1)


def best_config() -> ModelConfig:
    return best(FEATURIZER.atom_sizes, FEATURIZER.bond_sizes)


CONFIGS = {"slim": slim_config, "best": best_config}


def read(csv: Path, count: int | None, featurizer: str = "zinc") -> Graphs:
    table = pd.read_csv(csv)
    table = table if count is None else table.sample(count, random_state=0)
    found = FEATURIZERS[featurizer]
    graphs = found.pack([found.graph(smiles) for smiles in table.smiles])
    return graphs.with_targets(table[["penalized_logp"]].to_numpy(np.float32))


def make_step(model: Graphormer):
    """One update as the peer makes it: L1 loss, AdamW, no clipping."""
    (optimizer,) = adamw(model, TrainConfig(lr=1e-4))

    def step(batch) -> None:
        loss = torch.nn.functional.l1_loss(model(batch), batch.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()

    return step


def peak_rss_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def times_of(function: Callable[[], object], count: int) -> list[float]:
    """The seconds that each of some calls takes."""
    times = []
    for _ in range(count):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return times


def matrix_products(model: Graphormer, rows: int) -> tuple[list[tuple[torch.Tensor, torch.Tensor]], float]:
    """The token-wise matrix products of one update, forward and both backward ones, and their operations."""
    products, operations = [], 0.0
    for module in model.blocks.modules():
        if isinstance(module, torch.nn.Linear):
            out_width, in_width = module.weight.shape
            x, y, weight = torch.randn(rows, in_width), torch.randn(rows, out_width), torch.randn_like(module.weight)
            products += [(x, weight.t()), (y, weight), (y.t(), x)]
            operations += 3 * 2.0 * rows * in_width * out_width
    return products, operations


def floor_rate(model: Graphormer, data: MoleculeDataset, batch_size: int) -> dict:
    """Molecules/s if an update were nothing but its matrix products, at the speed they reach by themselves.

    The products of queries, keys and values are counted at the rate measured for the token-wise ones.
    """
    sizes = data.num_atoms.astype(np.float64) + 1
    products, operations = matrix_products(model, int(sizes.mean() * batch_size))
    with torch.no_grad():
        rate = operations / min(times_of(lambda: [torch.mm(a, b) for a, b in products], 12))
    attention = 3 * 4 * (sizes**2).mean() * model.config.width * model.config.layers
    per_molecule = operations / batch_size + attention
    return {"gflops": rate / 1e9, "mflop_per_molecule": per_molecule / 1e6, "floor": rate / per_molecule}


def train(args: argparse.Namespace) -> dict:
    """Training speed at the size of the peer, and the floor that the machine's matrix products set."""
    config = slim_config(args.norm)
    data = in_memory(read(args.csv, args.molecules), config.encodings)
    torch.manual_seed(0)
    model = Graphormer(config).train()
    step = make_step(model)
    rates, whole_rates, floors = [], [], []
    for repetition in range(args.repeat + 1):
        order = epoch_batches(len(data), args.batch_size, 0, repetition)[: args.steps]
        started = time.perf_counter()
        batches = [data.batch(molecules) for molecules in order]
        collated = time.perf_counter()
        for batch in batches:
            step(batch)
        done = time.perf_counter()
        count = sum(map(len, order))
        if repetition:  # the first one compiles
            rates.append(count / (done - collated))
            whole_rates.append(count / (done - started))
            floors.append(floor_rate(model, data, args.batch_size))
    best = max(floors, key=lambda floor: floor["floor"])
    return {
        "step_molecules_per_s": statistics.median(rates),
        "step_molecules_per_s_each": rates,
        "step_with_collate_molecules_per_s": statistics.median(whole_rates),
        "floor_molecules_per_s": best["floor"],
        "matrix_gflops": best["gflops"],
        "mflop_per_molecule": best["mflop_per_molecule"],
        "peak_rss_mib": peak_rss_mib(),
        "parameters": sum(p.numel() for p in model.parameters()),
    }


def encodings(args: argparse.Namespace) -> dict:
    """Structural encodings (degrees, distances, bonds along paths) per molecule, on one core."""
    graphs = read(args.csv, args.molecules)
    config = slim_config()
    precompute(config.encodings, graphs)
    times = times_of(lambda: precompute(config.encodings, graphs), args.repeat)
    return {"encodings_us_per_molecule": statistics.median(times) / len(graphs) * 1e6, "molecules": len(graphs)}


def memory(args: argparse.Namespace) -> dict:
    """Peak memory of preparing molecules in a store and training on batches from all over it, and the speed of that."""
    config = CONFIGS[args.recipe]()
    with tempfile.TemporaryDirectory() as folder:
        data = open_or_write(
            Path(folder) / "store", lambda: read(args.csv, args.molecules), config.encodings, "benchmark", "preparing"
        )
        prepared = peak_rss_mib()
        step = make_step(Graphormer(config).train())
        first, *batches = epoch_batches(len(data), args.batch_size, 0, 0)[: args.steps]
        step(data.batch(first))  # compiles
        started = time.perf_counter()
        for molecules in batches:
            step(data.batch(molecules))
        rate = sum(map(len, batches)) / (time.perf_counter() - started)
        return {
            "peak_rss_mib": peak_rss_mib(),
            "prepared_rss_mib": prepared,
            "molecules": len(data),
            "molecules_per_s": rate,
            "epochs_per_hour": 3600 * rate / len(data),
        }


def chain(atoms: int) -> str:
    """A molecule of this many atoms: phenyl rings along a chain, as in polystyrene."""
    units = ["CC(c1ccccc1)"] * (atoms // 8)
    return "".join(units) + "C" * (atoms % 8)


def growth(args: argparse.Namespace) -> dict:
    """Time and memory of one training step for one molecule size and batch size, in a process of its own."""
    config = slim_config()
    graphs = FEATURIZER.pack([FEATURIZER.graph(chain(args.atoms))] * args.batch_size)
    data = in_memory(graphs.with_targets(np.zeros((args.batch_size, 1), np.float32)), config.encodings)
    step = make_step(Graphormer(config).train())
    batch = data.batch(range(args.batch_size))
    step(data.batch(range(2)))
    before = peak_rss_mib()
    seconds = min(times_of(lambda: step(batch), args.repeat))
    point = {"atoms": args.atoms, "batch_size": args.batch_size, "seconds": seconds}
    return point | {"step_rss_mib": peak_rss_mib() - before}


BENCHMARKS = {"train": train, "encodings": encodings, "memory": memory, "growth": growth}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmark", choices=BENCHMARKS)
    parser.add_argument("--csv", type=Path, help="molecules: columns `smiles` and `penalized_logp`")
    parser.add_argument("--molecules", type=int, help="molecules drawn from the CSV; all of them by default")
    parser.add_argument("--norm", default="sepnorm")
    parser.add_argument("--recipe", choices=CONFIGS, default="slim", help="of `memory`")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20, help="steps per repetition")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--atoms", type=int, default=20, help="atoms of each molecule in `growth`")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    print(json.dumps(BENCHMARKS[args.benchmark](args)))


if __name__ == "__main__":
    main()

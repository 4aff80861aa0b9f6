"""Hugging Face's Graphormer (transformers 4.45.2), one JSON line per call: train, memory or encodings.

    python peer_hf.py train --csv zinc.csv.gz

Importing this module compiles its Cython code once (pyximport keeps it under ~/.pyxbld). Run it from this folder: that
build reads any setup.cfg of the folder it is started in.
"""

import argparse
import csv
import gzip
import json
import random
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from rdkit import Chem
from transformers.models.deprecated.graphormer.collating_graphormer import (
    GraphormerDataCollator,
    algos_graphormer,
    preprocess_item,
)
from transformers.models.deprecated.graphormer.configuration_graphormer import GraphormerConfig
from transformers.models.deprecated.graphormer.modeling_graphormer import GraphormerForGraphClassification

PEER = "transformers 4.45.2 Graphormer"
BOND_TYPES = {Chem.BondType.SINGLE: 1, Chem.BondType.DOUBLE: 2, Chem.BondType.TRIPLE: 3, Chem.BondType.AROMATIC: 4}


def read_molecules(path: Path, count: int, target: str, seed: int = 0) -> list[tuple[str, float]]:
    """A random sample of `count` rows of a CSV (gzip allowed) as (SMILES, target)."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else open(path) as file:
        rows = [(row["smiles"], float(row[target])) for row in csv.DictReader(file)]
    return random.Random(seed).sample(rows, min(count, len(rows)))


def to_graphs(molecules: list[tuple[str, float]]) -> list[dict]:
    """Graphs in the layout `preprocess_item` reads, with one integer per atom and one per bond as in ZINC.

    An atom type is an element with its formal charge and explicit hydrogens, numbered as they come.
    """
    atom_types: dict[tuple, int] = {}
    graphs = []
    for smiles, target in molecules:
        mol = Chem.MolFromSmiles(smiles)
        keys = [(atom.GetSymbol(), atom.GetFormalCharge(), atom.GetNumExplicitHs()) for atom in mol.GetAtoms()]
        bonds = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in mol.GetBonds()]
        kinds = [BOND_TYPES[bond.GetBondType()] for bond in mol.GetBonds()]
        both_ways = np.array(bonds + [(end, begin) for begin, end in bonds], dtype=np.int64).reshape(-1, 2)
        graphs.append(
            {
                "num_nodes": len(keys),
                "node_feat": np.array([[atom_types.setdefault(key, len(atom_types))] for key in keys]),
                "edge_index": both_ways.T,
                "edge_attr": np.array(kinds + kinds, dtype=np.int64).reshape(-1, 1),
                "labels": np.array([target], dtype=np.float32),
            }
        )
    return graphs


def preprocess(graphs: list[dict]) -> list[dict]:
    """Hugging Face's own preprocessing; it and the collator change the dictionaries that they are given."""
    return [preprocess_item(dict(graph)) for graph in graphs]


def slim_model(max_hops: int) -> GraphormerForGraphClassification:
    """Graphormer slim, one regression output; embedding tables of the sizes used for ZINC.

    Tables need atom type + 3, bond type + 3, degree + 1 and distance + 1 (511 if unreachable) as an index.
    """
    tables = {"num_atoms": 128, "num_edges": 64, "num_in_degree": 64, "num_out_degree": 64, "num_spatial": 512}
    paths = dict.fromkeys(("num_edge_dis", "multi_hop_max_dist"), max_hops)
    widths = {"num_hidden_layers": 12, "embedding_dim": 80, "ffn_embedding_dim": 80, "num_attention_heads": 8}
    dropouts = {"dropout": 0.0, "attention_dropout": 0.1, "activation_dropout": 0.0}
    norms = {"encoder_normalize_before": True, "pre_layernorm": False, "apply_graphormer_init": True}
    config = GraphormerConfig(num_classes=1, **tables, **paths, **widths, **dropouts, **norms)
    return GraphormerForGraphClassification(config)


def peak_rss_mib() -> float:
    """Largest resident memory of this process so far (Linux counts it in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def random_batches(items: list[dict], batch_size: int, count: int, rng: random.Random) -> list[list[dict]]:
    """`count` full batches drawn from as many shuffled passes over the items as it takes."""
    batches = []
    while len(batches) < count:
        order = rng.sample(items, len(items))
        starts = range(0, len(order) - batch_size + 1, batch_size)
        batches += [[dict(item) for item in order[start : start + batch_size]] for start in starts]
    return batches[:count]


def update(model, optimizer, batches: list[dict]) -> list[float]:
    losses = []
    for batch in batches:
        batch = {name: array.to(model.device) for name, array in batch.items()}
        labels = batch.pop("labels")
        loss = torch.nn.functional.l1_loss(model(**batch).logits.squeeze(1), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train(args: argparse.Namespace) -> dict:
    """Training speed at the size of slim: float32, AdamW, L1 loss, random batches of real molecules.

    They are read and prepared before the clock starts. `step` is on batches that are collated before,
    `step_with_collate` adds `GraphormerDataCollator`.
    """
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    rng = random.Random(0)
    items = preprocess(to_graphs(read_molecules(args.csv, args.molecules, args.target)))
    if len(items) < args.batch_size:
        raise SystemExit(f"{len(items)} molecules do not fill one batch of {args.batch_size}")
    collate = GraphormerDataCollator()
    model = slim_model(args.max_hops).to(args.device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    update(model, optimizer, [collate(batch) for batch in random_batches(items, args.batch_size, args.warmup, rng)])

    step_rates, total_rates, losses = [], [], []
    for _ in range(args.repeat):
        batches = random_batches(items, args.batch_size, args.steps, rng)
        start = time.perf_counter()
        collated = [collate(batch) for batch in batches]
        middle = time.perf_counter()
        losses += update(model, optimizer, collated)
        end = time.perf_counter()
        molecules = args.steps * args.batch_size
        step_rates.append(molecules / (end - middle))
        total_rates.append(molecules / (end - start))
    return {
        "peer": PEER,
        "step_molecules_per_s": round(statistics.median(step_rates), 1),
        "step_with_collate_molecules_per_s": round(statistics.median(total_rates), 1),
        "step_molecules_per_s_each": [round(rate, 1) for rate in step_rates],
        "peak_rss_mib": round(peak_rss_mib(), 1),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "l1_first_repetition": round(statistics.mean(losses[: args.steps]), 4),
        "l1_last_repetition": round(statistics.mean(losses[-args.steps :]), 4),
        "torch": torch.__version__,
        **{name: value for name, value in vars(args).items() if isinstance(value, int)},
    }


def memory(args: argparse.Namespace) -> dict:
    """Memory to prepare a data set and train on it.

    For each size a fresh process prepares that many molecules, keeps them as Hugging Face does, trains a few random
    batches and reports its peak memory after both. The slope of the first peak is the memory per molecule, the rest a
    constant. Their sum for the full data set is an extrapolation. Sizes below 2,000 say little.
    """
    if args.one is not None:
        return memory_of_one(args)
    points = []
    for size in args.sizes:
        command = [sys.executable, __file__, "memory", "--csv", str(args.csv), "--target", args.target]
        command += ["--one", str(size), "--steps", str(args.steps)]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        points.append(json.loads(output.splitlines()[-1]))

    sizes = [point["molecules"] for point in points]
    slope, _ = np.polyfit(sizes, [point["prepared_mib"] for point in points], 1)
    constant = np.median([point["trained_mib"] - slope * point["molecules"] for point in points])
    return {
        "peer": PEER,
        "points": [{name: round(value, 1) for name, value in point.items()} for point in points],
        "kib_per_molecule": round(slope * 1024, 2),
        "constant_mib": round(constant, 1),
        "full_molecules": args.full,
        "full_mib_extrapolated": round(constant + slope * args.full),
    }


def memory_of_one(args: argparse.Namespace) -> dict:
    """Prepare, keep, train; run in a process of its own, since a peak never goes down again."""
    torch.manual_seed(0)
    items = preprocess(to_graphs(read_molecules(args.csv, args.one, args.target)))
    prepared = peak_rss_mib()
    model = slim_model(max_hops=5).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    collate = GraphormerDataCollator()
    for batch in random_batches(items, 64, args.steps, random.Random(0)):
        update(model, optimizer, [collate(batch)])
    return {"molecules": len(items), "prepared_mib": prepared, "trained_mib": peak_rss_mib()}


def adjacency(graph: dict) -> np.ndarray:
    dense = np.zeros((graph["num_nodes"], graph["num_nodes"]), dtype=bool)
    dense[graph["edge_index"][0], graph["edge_index"][1]] = True
    return dense


def encode(adjacencies: list[np.ndarray], edge_types: list[np.ndarray]) -> None:
    for dense, edge_type in zip(adjacencies, edge_types, strict=True):
        distances, path = algos_graphormer.floyd_warshall(dense)
        algos_graphormer.gen_edge_input(np.amax(distances), path, edge_type)


def seconds(function, *args) -> float:
    start = time.perf_counter()
    function(*args)
    return time.perf_counter() - start


def encodings(args: argparse.Namespace) -> dict:
    """Preparation speed on one core, in microseconds per molecule; SMILES are read before the clock starts.

    `encodings` is the compiled part: `floyd_warshall` (distances and paths) and `gen_edge_input` (bonds along every
    path). `preprocess_item` is the whole preparation.
    """
    graphs = to_graphs(read_molecules(args.csv, args.molecules, args.target))
    adjacencies = [adjacency(graph) for graph in graphs]
    edge_types = [item["attn_edge_type"] for item in preprocess(graphs)]
    encode_times, whole_times = [], []
    for _ in range(args.repeat):
        encode_times.append(seconds(encode, adjacencies, edge_types))
        whole_times.append(seconds(preprocess, graphs))
    return {
        "peer": f"{PEER} (Cython)",
        "encodings_us_per_molecule": round(statistics.median(encode_times) / len(graphs) * 1e6, 1),
        "preprocess_item_us_per_molecule": round(statistics.median(whole_times) / len(graphs) * 1e6, 1),
        "molecules": len(graphs),
        "mean_atoms": round(statistics.mean(graph["num_nodes"] for graph in graphs), 2),
        "repeat": args.repeat,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    parts = {}
    for function, molecules, steps in ((train, 2000, 20), (memory, None, 5), (encodings, 1000, None)):
        parts[function] = part = commands.add_parser(function.__name__, description=function.__doc__)
        part.set_defaults(run=function)
        part.add_argument("--csv", type=Path, required=True, help="molecules: column `smiles` and the target's column")
        part.add_argument("--target", default="penalized_logp", help="name of the target's column")
        part.add_argument("--molecules", type=int, default=molecules, help="molecules drawn from the CSV")
        part.add_argument("--steps", type=int, default=steps, help="training steps per repetition or size")
        part.add_argument("--repeat", type=int, default=3)
    parts[train].add_argument("--batch-size", type=int, default=64)
    parts[train].add_argument("--warmup", type=int, default=3, help="steps before the first repetition")
    parts[train].add_argument("--threads", type=int, default=2)
    parts[train].add_argument("--device", default="cpu", help="such as cuda; moving the batches there is timed")
    parts[train].add_argument("--max-hops", type=int, default=5, help="bonds of a path that enter the bias (HF: 5)")
    parts[memory].add_argument("--sizes", type=int, nargs="+", default=[2000, 5000, 10000], help="two or more sizes")
    parts[memory].add_argument("--full", type=int, default=249_455, help="size to extrapolate to")
    parts[memory].add_argument("--one", type=int, help="measure this size only, in this process")
    args = parser.parse_args()
    print(json.dumps(args.run(args)))


if __name__ == "__main__":
    main()

"""Memory that Hugging Face's Graphormer needs to prepare a data set and train on it: one line of JSON.

For each size a fresh process prepares that many molecules, keeps them as Hugging Face does, trains a few random batches
and reports its peak memory after both. The slope of the first peak is the memory per molecule, the rest a constant.
Their sum for the full data set is an extrapolation. Sizes below 2,000 say little.
"""

import argparse
import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np


def measure_one(csv: Path, target: str, molecules: int, steps: int) -> None:
    """Prepare, keep, train; run in a process of its own, since a peak never goes down again."""
    import torch
    from peer_hf import peak_rss_mib, preprocess, read_molecules, slim_model, to_graphs
    from peer_hf_train import random_batches, train
    from transformers.models.deprecated.graphormer.collating_graphormer import GraphormerDataCollator

    torch.manual_seed(0)
    items = preprocess(to_graphs(read_molecules(csv, molecules, target)))
    prepared = peak_rss_mib()
    model = slim_model(max_hops=5).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    collate = GraphormerDataCollator()
    for batch in random_batches(items, 64, steps, random.Random(0)):
        train(model, optimizer, [collate(batch)])
    print(json.dumps({"molecules": len(items), "prepared_mib": prepared, "trained_mib": peak_rss_mib()}))


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", type=Path, required=True, help="molecules: column `smiles` and the target's column")
    parser.add_argument("--target", default="penalized_logp", help="name of the target's column")
    parser.add_argument("--sizes", type=int, nargs="+", default=[2000, 5000, 10000], help="two or more sizes")
    parser.add_argument("--steps", type=int, default=5, help="training steps per size")
    parser.add_argument("--full", type=int, default=249_455, help="size to extrapolate to")
    parser.add_argument("--one", type=int, help="measure this size only, in this process")
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    if args.one is not None:
        return measure_one(args.csv, args.target, args.one, args.steps)

    points = []
    for size in args.sizes:
        command = [sys.executable, __file__, "--csv", str(args.csv), "--target", args.target]
        command += ["--one", str(size), "--steps", str(args.steps)]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        points.append(json.loads(output.splitlines()[-1]))

    sizes = [point["molecules"] for point in points]
    slope, _ = np.polyfit(sizes, [point["prepared_mib"] for point in points], 1)
    constant = np.median([point["trained_mib"] - slope * point["molecules"] for point in points])
    result = {
        "peer": "transformers 4.45.2 Graphormer",
        "points": [{name: round(value, 1) for name, value in point.items()} for point in points],
        "kib_per_molecule": round(slope * 1024, 2),
        "constant_mib": round(constant, 1),
        "full_molecules": args.full,
        "full_mib_extrapolated": round(constant + slope * args.full),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()

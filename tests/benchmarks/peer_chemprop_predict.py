"""Speed of `chemprop predict` (chemprop 2.3.1, default architecture) on a CSV of SMILES: one line of JSON.

A model is first trained for one epoch, which is not counted. The command is timed from start to exit at two sizes: the
difference gives the speed without start-up.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

CHEMPROP = Path(sys.executable).with_name("chemprop")


def chemprop(arguments: list[str], folder: Path, threads: int) -> float:
    """Seconds one command takes; its output is shown only if it fails."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    common = ["--accelerator", "cpu", "--devices", "1", "-q"]
    start = time.perf_counter()
    done = subprocess.run(
        [CHEMPROP, *arguments, *common], cwd=folder, env=environment, text=True, capture_output=True, check=False
    )
    elapsed = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return elapsed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", type=Path, required=True, help="molecules: column `smiles` and the target's column")
    parser.add_argument("--target", default="penalized_logp", help="name of the target's column")
    parser.add_argument("--molecules", type=int, default=5000, help="larger size")
    parser.add_argument("--small", type=int, default=500, help="smaller size")
    parser.add_argument("--train-molecules", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=64, help="batch size of the prediction (chemprop: 64)")
    parser.add_argument("--num-workers", type=int, default=0, help="loader processes of the prediction (chemprop: 0)")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    if not 0 < args.small < args.molecules:
        raise SystemExit("--small must be positive and below --molecules")
    table = pd.read_csv(args.csv).sample(frac=1, random_state=0)[["smiles", args.target]]
    if len(table) < args.molecules:
        raise SystemExit(f"{args.csv} holds {len(table)} molecules only")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table[: args.train_molecules].to_csv(folder / "train.csv", index=False)
        options = ["--data-path", "train.csv", "--output-dir", str(folder / "model"), "--epochs", "1"]
        options += ["--warmup-epochs", "0"]  # two by default, more than the one epoch allows
        chemprop(["train", *options], folder, args.threads)

        times: dict[int, list[float]] = {args.small: [], args.molecules: []}
        for _ in range(args.repeat):
            for size, elapsed in times.items():
                table[["smiles"]][:size].to_csv(folder / "given.csv", index=False)
                options = ["--test-path", "given.csv", "--output", "predicted.csv"]
                options += ["--model-paths", str(folder / "model" / "model_0" / "best.pt")]
                options += ["--batch-size", str(args.batch_size), "--num-workers", str(args.num_workers)]
                elapsed.append(chemprop(["predict", *options], folder, args.threads))
                if (predicted := len(pd.read_csv(folder / "predicted.csv"))) != size:
                    raise SystemExit(f"{predicted} predictions for {size} molecules")

    small, large = statistics.median(times[args.small]), statistics.median(times[args.molecules])
    per_molecule = (large - small) / (args.molecules - args.small)
    result = {
        "peer": "chemprop 2.3.1 predict",
        "seconds": round(large, 2),
        "molecules_per_s": round(args.molecules / large, 1),
        "molecules_per_s_without_startup": round(1 / per_molecule, 1),
        "startup_s": round(small - args.small * per_molecule, 2),
        "small_seconds": round(small, 2),
        **{name: value for name, value in vars(args).items() if isinstance(value, int)},
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()

"""Speed of `chemprop predict` (chemprop 2.3.1, default architecture) on a CSV of SMILES: one line of JSON.

A model is first trained for one epoch, which is not counted. The command is timed from start to exit at two sizes: the
difference gives the speed without start-up.
"""

import argparse
import csv
import gzip
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CHEMPROP = Path(sys.executable).with_name("chemprop")


def read_molecules(path: Path, target: str) -> list[tuple[str, str]]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else open(path) as file:
        return [(row["smiles"], row[target]) for row in csv.DictReader(file)]


def write_csv(path: Path, header: list[str], rows: list[tuple]) -> Path:
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def chemprop(arguments: list[str], folder: Path, threads: int) -> float:
    """Seconds one command takes; its output is shown only if it fails."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    common = ["--accelerator", "cpu", "--devices", "1", "-q"]
    start = time.perf_counter()
    done = subprocess.run(
        [str(CHEMPROP), *arguments, *common],
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    elapsed = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(done.stdout)
    return elapsed


def parse_args() -> argparse.Namespace:
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
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    if not 0 < args.small < args.molecules:
        raise SystemExit("--small must be positive and below --molecules")
    rows = read_molecules(args.csv, args.target)
    if len(rows) < args.molecules:
        raise SystemExit(f"{args.csv} holds {len(rows)} molecules only")
    random.Random(0).shuffle(rows)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train = write_csv(folder / "train.csv", ["smiles", "target"], rows[: args.train_molecules])
        options = ["--data-path", str(train), "--output-dir", str(folder / "model"), "--epochs", "1"]
        options += ["--warmup-epochs", "0"]  # two by default, more than the one epoch allows
        chemprop(["train", *options], folder, args.threads)

        times: dict[int, list[float]] = {args.small: [], args.molecules: []}
        for _ in range(args.repeat):
            for size, elapsed in times.items():
                smiles = write_csv(folder / f"{size}.csv", ["smiles"], [(row[0],) for row in rows[:size]])
                output = folder / f"{size}_predicted.csv"
                options = ["--test-path", str(smiles), "--output", str(output)]
                options += ["--model-paths", str(folder / "model" / "model_0" / "best.pt")]
                options += ["--batch-size", str(args.batch_size), "--num-workers", str(args.num_workers)]
                elapsed.append(chemprop(["predict", *options], folder, args.threads))
                with open(output) as file:
                    predicted = sum(1 for _ in csv.DictReader(file))
                if predicted != size:
                    raise SystemExit(f"{predicted} predictions for {size} molecules")

    small, large = statistics.median(times[args.small]), statistics.median(times[args.molecules])
    per_molecule = (large - small) / (args.molecules - args.small)
    result = {
        "peer": "chemprop 2.3.1 predict",
        "seconds": round(large, 2),
        "molecules_per_s": round(args.molecules / large, 1),
        "molecules_per_s_without_startup": round(1 / per_molecule, 1),
        "startup_s": round(small - args.small * per_molecule, 2),
        "molecules": args.molecules,
        "small": args.small,
        "small_seconds": round(small, 2),
        "batch_size": args.batch_size,
        "num_workers": args.num_workers,
        "repeat": args.repeat,
        "threads": args.threads,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()

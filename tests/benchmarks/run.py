"""All benchmarks side by side: one JSON line per row with ours, theirs, the ratio and the machine.

    python tests/benchmarks/run.py --peers PEERS/bin/python --csv zinc.csv.gz [--rows train encodings ...]

Run it on an idle machine. Ours and theirs alternate, each in a fresh process, and the medians are compared.
The CSV has the columns `smiles` and `penalized_logp`; the peers' environment is made from `requirements-peers.txt`.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

HERE = Path(__file__).parent
OURS = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
MAIN = "from graphormer_sepnorm.interfaces.cli import main; main()"


def seconds(*arguments: str) -> float:
    """The time of a Python program of ours, from the start of its process to its end."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", *arguments], env=OURS, check=True, capture_output=True)
    return time.perf_counter() - started


def call(python: str, script: str, *arguments: object) -> dict:
    """Runs a script of this folder in a fresh process and returns its JSON line."""
    environment = OURS if python == sys.executable else os.environ
    done = subprocess.run(
        [python, script, *map(str, arguments)], cwd=HERE, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{script} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def alternate(rounds: int, *sides: Callable[[], dict]) -> list[list[dict]]:
    """Calls the sides in turn, ``rounds`` times."""
    results = [[side() for side in sides] for _ in range(rounds)]
    return [list(column) for column in zip(*results, strict=True)]


def median(results: list[dict], key: str) -> float:
    return statistics.median(result[key] for result in results)


def compared(row: str, ours: object, theirs: float, ratio: object, target: float) -> dict:
    return {"row": row, "ours": ours, "theirs": theirs, "ratio": ratio, "target": target}


def train_row(args: argparse.Namespace) -> dict:
    options = ("--csv", args.csv, "--molecules", 2000, "--steps", 20, "--repeat", 3, "--threads", args.threads)
    ours, theirs = alternate(
        args.rounds,
        lambda: call(sys.executable, "ours.py", "train", *options),
        lambda: call(args.peers, "peer_hf.py", "train", *options),
    )
    key, whole = "step_molecules_per_s", "step_with_collate_molecules_per_s"
    speed, peer, floor = median(ours, key), median(theirs, key), median(ours, "floor_molecules_per_s")
    found = compared("training step, slim, batch 64, molecules/s", speed, peer, speed / peer, 5)
    found |= {"ours_with_collate": median(ours, whole), "theirs_with_collate": median(theirs, whole)}
    found |= {"floor": floor, "fraction_of_floor": speed / floor, "floor_target": 0.5}
    found |= {"matrix_gflops": median(ours, "matrix_gflops"), "each": [result[key] for result in ours]}
    return found | {"theirs_each": [result[key] for result in theirs]}


def encodings_row(args: argparse.Namespace) -> dict:
    ours, theirs = alternate(
        args.rounds,
        lambda: call(sys.executable, "ours.py", "encodings", "--csv", args.csv, "--molecules", 5000, "--threads", 1),
        lambda: call(args.peers, "peer_hf.py", "encodings", "--csv", args.csv, "--molecules", 1000),
    )
    speed, peer = (median(side, "encodings_us_per_molecule") for side in (ours, theirs))
    return compared("structural encodings, one core, us per molecule", speed, peer, peer / speed, 10)


def predict_row(args: argparse.Namespace) -> dict:
    """From a CSV of SMILES to a CSV of predictions, with start-up: `slim`, and the shipped `best`."""
    size = 50_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pd.read_csv(args.csv).sample(size, random_state=0)[["smiles"]].to_csv(folder / "in.csv", index=False)
        seconds(MAIN, "train", "--epochs", "1", "--out", str(folder / "run"))

        def ours(model: str) -> dict:
            taken = seconds(MAIN, "predict", model, str(folder / "in.csv"), "-o", str(folder / "out.csv"))
            table = pd.read_csv(folder / "out.csv")
            if len(table) != size or table.iloc[:, 1].isna().any():
                raise SystemExit("predictions are missing")
            return {"molecules_per_s": size / taken}

        options = ("--csv", args.csv, "--molecules", size, "--small", 5000, "--threads", args.threads)
        *mine, theirs = alternate(
            args.rounds,
            lambda: ours(str(folder / "run")),
            lambda: ours("zinc-subset"),
            lambda: call(args.peers, "peer_chemprop_predict.py", *options),
        )
    key = "molecules_per_s"
    speeds = {name: median(side, key) for name, side in zip(("slim", "best"), mine, strict=True)}
    ratio = {name: speed / median(theirs, key) for name, speed in speeds.items()}
    return compared("SMILES to prediction, 50,000 molecules, molecules/s", speeds, median(theirs, key), ratio, 3)


def memory_row(args: argparse.Namespace) -> dict:
    """Theirs is measured at three sizes and extrapolated: all prepared items of full ZINC do not fit in 8 GB."""
    ours = call(sys.executable, "ours.py", "memory", "--csv", args.csv, "--steps", 600)
    theirs = call(args.peers, "peer_hf.py", "memory", "--csv", args.csv)
    peak, peer = ours["peak_rss_mib"], theirs["full_mib_extrapolated"]
    found = compared("peak memory of training on full ZINC, MiB", peak, peer, peak / peer, 0.25)
    return found | {"molecules": ours["molecules"]}


def cores_row(args: argparse.Namespace) -> dict:
    """Whole trainings of slim on the sample: one thread, two threads, and two trainings at once.

    Two trainings at once, added up, are the most that any division of the work could reach.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def start(run: str, threads: int) -> subprocess.Popen:
            command = [sys.executable, "-c", MAIN, "train", "--epochs", "3", "--out", str(folder / run)]
            variables = {"OMP_NUM_THREADS": str(threads), "NUMBA_NUM_THREADS": str(threads)}
            return subprocess.Popen(command, env=OURS | variables, stdout=subprocess.DEVNULL)

        def speed(*runs: tuple[str, int]) -> float:
            """Of the last epoch, the sum over trainings at once."""
            started = [start(*run) for run in runs]
            if any(process.wait() for process in started):
                raise SystemExit("a training failed")
            lines = [(folder / run / "metrics.jsonl").read_text().splitlines()[-1] for run, _ in runs]
            return sum(json.loads(line)["molecules_per_second"] for line in lines)

        found = [
            {
                "one thread": speed((f"one-{number}", 1)),
                "two threads": speed((f"two-{number}", 2)),
                "two trainings": speed((f"left-{number}", 1), (f"right-{number}", 1)),
            }
            for number in range(args.rounds)
        ]
    medians = {name: median(found, name) for name in found[0]}
    return {"row": "training slim on two cores, molecules/s", **medians, "each": found}


def start_row(args: argparse.Namespace) -> dict:
    """Seconds from the shell's prompt to the shell's prompt, with a warm disk."""
    commands = {
        "import torch": ["import torch"],
        "--help": [MAIN, "--help"],
        "one molecule": [MAIN, "predict", "zinc-subset", "CCO"],
    }
    rounds = [{name: seconds(*arguments) for name, arguments in commands.items()} for _ in range(args.rounds + 1)]
    targets = {"--help": 0.6, "one molecule": 3.5}
    return {"row": "starting, seconds", **{name: median(rounds[1:], name) for name in commands}, "targets": targets}


def scaling_row(args: argparse.Namespace) -> dict:
    """Speed and peak memory of `best` on more and more of the molecules."""
    sizes = (10_000, 50_000, len(pd.read_csv(args.csv)))
    options = ("--csv", args.csv, "--recipe", "best", "--steps", 60, "--threads", args.threads)
    points = [call(sys.executable, "ours.py", "memory", *options, "--molecules", size) for size in sizes]
    return {"row": "training best on more and more molecules", "points": points}


def growth_row(args: argparse.Namespace) -> dict:
    """Each point in a process of its own, and as a picture if there is a name for it."""
    options = ("--threads", args.threads)
    table = [
        call(sys.executable, "ours.py", "growth", "--atoms", atoms, "--batch-size", size, *options)
        for size in (16, 64, 256, 1024)
        for atoms in (20, 40, 80, 160)
    ]
    if args.picture:
        draw_growth(table, args.picture)
    return {"row": "growth of a training step with atoms and batch", "points": table}


def draw_growth(table: list[dict], picture: Path) -> None:
    """Time and memory over the size of the molecules, a line per batch size, with a quadratic one for comparison."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for axis, key, label in zip(axes, ("seconds", "step_rss_mib"), ("seconds", "MiB beyond the start"), strict=True):
        for size in sorted({point["batch_size"] for point in table}):
            points = [point for point in table if point["batch_size"] == size]
            atoms = [point["atoms"] for point in points]
            axis.loglog(atoms, [point[key] for point in points], "o-", label=f"batch {size}")
        last = points[-1]
        quadratic = [last[key] * (size / last["atoms"]) ** 2 for size in atoms]
        axis.loglog(atoms, quadratic, "k:", label="quadratic")
        axis.set_xticks(atoms, atoms)
        axis.minorticks_off()
        axis.set(xlabel="atoms per molecule", ylabel=label)
    axes[0].set_title("time of a training step")
    axes[1].set_title("memory of a training step")
    axes[0].legend()
    figure.savefig(picture, dpi=120)


ROWS = {
    "train": train_row,
    "encodings": encodings_row,
    "predict": predict_row,
    "memory": memory_row,
    "growth": growth_row,
    "cores": cores_row,
    "start": start_row,
    "scaling": scaling_row,
}


def machine(threads: int) -> dict:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return {"cpu": models[0] if models else platform.processor(), "threads": threads, "date": str(date.today())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", required=True, help="python of the peers' environment")
    parser.add_argument("--csv", type=lambda text: Path(text).resolve(), required=True)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--rounds", type=int, default=3, help="how often ours and theirs alternate")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--picture", type=Path, help="where to draw the growth")
    args = parser.parse_args()
    for name in args.rows:
        print(json.dumps(ROWS[name](args) | {"machine": machine(args.threads)}), flush=True)


if __name__ == "__main__":
    main()

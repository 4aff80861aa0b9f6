"""Predictions for a library on Dask: molecules per second and core, parallel efficiency, memory over the partitions.

    python tests/benchmarks/library.py make molecules.csv.gz library --molecules 200000 --partition 10000
    python tests/benchmarks/library.py measure library zinc-subset --workers 1 2

``make`` reads a column ``smiles`` and writes each of them as often as need be, every time with its atoms in another
order. ``measure`` prints a line of JSON per number of workers and then a line from there to a billion molecules. Run it
on an idle machine: ``seconds`` are those of the clock.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from rdkit import Chem, RDLogger

BILLION = 10**9
MAIN = "from graphormer_sepnorm.interfaces.cli import main; main()"


def written_anew(smiles: list[str]) -> Iterator[str]:
    """The SMILES again and again, each time with the atoms in another order, drawn by the number of the row."""
    for number, text in enumerate(cycle(smiles)):
        molecule = Chem.MolFromSmiles(text)
        if molecule is not None:
            yield Chem.MolToRandomSmilesVect(molecule, 1, randomSeed=number + 1)[0]


def make(args: argparse.Namespace) -> None:
    RDLogger.DisableLog("rdApp.*")
    args.folder.mkdir(parents=True)
    rows = written_anew(pd.read_csv(args.csv)["smiles"].tolist())
    for number, first in enumerate(range(0, args.molecules, args.partition)):
        size = min(args.partition, args.molecules - first)
        table = pa.table({"id": range(first, first + size), "smiles": list(islice(rows, size))})
        pq.write_table(table, args.folder / f"{number:05d}.parquet")


def measure_once(args: argparse.Namespace, workers: int) -> dict:
    """One run from the shell, start of the workers included; the footers of the parts tell of each partition."""
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "scores"
        words = ["predict", args.model, str(args.library), "-o", str(out), "--workers", str(workers)]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        started = time.perf_counter()
        load = os.getloadavg()[0]
        done = subprocess.run([sys.executable, "-c", MAIN, *words], env=environment, capture_output=True, text=True)
        seconds = time.perf_counter() - started
        if done.returncode:
            raise SystemExit(done.stderr)
        parts = sorted((out / "parts").iterdir())
        footers = [json.loads(pq.read_metadata(part).metadata[b"graphormer_sepnorm"]) for part in parts]
        rows = sum(footer["rows"] for footer in footers)
        return {
            "workers": workers,
            "molecules": rows,
            "partitions": len(parts),
            "seconds": round(seconds, 1),
            "molecules_per_s": round(rows / seconds, 1),
            "cpu_seconds": round(sum(footer["cpu_seconds"] for footer in footers), 1),
            "bytes_per_row": round(sum(part.stat().st_size for part in parts) / rows, 1),
            "memory_mib": [footer["memory_mib"] for footer in footers],
            "load_before": load,
        }


def measure(args: argparse.Namespace) -> None:
    results = [measure_once(args, workers) for workers in args.workers]
    first = results[0]
    for result in results:
        speedup = result["molecules_per_s"] / first["molecules_per_s"]
        result["efficiency"] = round(speedup * first["workers"] / result["workers"], 3)
        print(json.dumps(result), flush=True)
    print(json.dumps({"a billion": to_a_billion(first), "machine": platform.processor()}))


def to_a_billion(result: dict) -> dict:
    """The time and size of a billion molecules at the same cost each, in partitions of a million."""
    cpu_hours = result["cpu_seconds"] / result["molecules"] * BILLION / 3600
    return {
        "core_hours": round(cpu_hours, 1),
        "parts": BILLION // 1_000_000,
        "minutes_per_part": round(cpu_hours * 60 / 1000, 1),
        "gigabytes_of_all_rows": round(result["bytes_per_row"], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    making = commands.add_parser("make")
    making.add_argument("csv", type=Path)
    making.add_argument("folder", type=Path)
    making.add_argument("--molecules", type=int, required=True)
    making.add_argument("--partition", type=int, required=True, help="molecules in each file")
    making.set_defaults(command=make)
    measuring = commands.add_parser("measure")
    measuring.add_argument("library", type=Path)
    measuring.add_argument("model")
    measuring.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    measuring.set_defaults(command=measure)
    args = parser.parse_args()
    args.command(args)


if __name__ == "__main__":
    main()

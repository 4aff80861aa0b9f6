"""The panel and a peer, ADMET-AI, on the same molecules: processor time of whole processes, in pairs.

    python tests/benchmarks/panel_speed.py SMILES.csv [--molecules 1000] [--pairs 3] [--peer FOLDER]

SMILES.csv has a column "smiles". FOLDER holds admet-ai and its dependencies, if they are not installed, as by ``pip
install --target FOLDER --no-deps``. Prints one JSON line for each pair.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

PEER = """
import sys
import pandas as pd
from admet_ai import ADMETModel
table = pd.read_csv(sys.argv[1])
ADMETModel().predict(smiles=table.smiles.tolist()).to_csv(sys.argv[2])
"""
OURS = [sys.executable, "-m", "graphormer_sepnorm", "predict", "admet"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("smiles", type=Path)
    parser.add_argument("--molecules", type=int, default=1_000)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--peer", type=Path, help="folder with admet-ai")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = f"{folder}/molecules.csv"
        pd.read_csv(options.smiles)[["smiles"]].head(options.molecules).to_csv(table, index=False)
        for pair in range(options.pairs):
            out = f"{folder}/{pair}.csv"
            ours = seconds([*OURS, table, "-o", out, "--interval", "0.9", "--domain"])
            peer = seconds([sys.executable, "-c", PEER, table, f"{folder}/peer.csv"], options.peer)
            print(json.dumps({"panel": ours, "admet-ai": peer, "ratio": round(peer / ours, 2)}), flush=True)


def seconds(command: list[str], modules: Path | None = None) -> float:
    """The processor time of a process and its children."""
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), modules and str(modules)]))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1)


if __name__ == "__main__":
    main()

"""Preparation speed of Hugging Face's Graphormer on one core, in microseconds per molecule: one line of JSON.

`encodings` is the compiled part: `floyd_warshall` (distances and paths) and `gen_edge_input` (bonds along every path).
`preprocess_item` is the whole preparation. SMILES are read before the clock starts.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np
from peer_hf import preprocess, read_molecules, shallow_copies, to_graphs
from transformers.models.deprecated.graphormer.collating_graphormer import algos_graphormer


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", type=Path, required=True, help="molecules: column `smiles` and the target's column")
    parser.add_argument("--target", default="penalized_logp", help="name of the target's column")
    parser.add_argument("--molecules", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()

    graphs = to_graphs(read_molecules(args.csv, args.molecules, args.target))
    adjacencies = [adjacency(graph) for graph in graphs]
    edge_types = [item["attn_edge_type"] for item in preprocess(shallow_copies(graphs))]
    encode_times, whole_times = [], []
    for _ in range(args.repeat):
        encode_times.append(seconds(encode, adjacencies, edge_types))
        whole_times.append(seconds(preprocess, shallow_copies(graphs)))

    result = {
        "peer": "transformers 4.45.2 Graphormer (Cython)",
        "encodings_us_per_molecule": round(statistics.median(encode_times) / len(graphs) * 1e6, 1),
        "preprocess_item_us_per_molecule": round(statistics.median(whole_times) / len(graphs) * 1e6, 1),
        "molecules": len(graphs),
        "mean_atoms": round(statistics.mean(graph["num_nodes"] for graph in graphs), 2),
        "repeat": args.repeat,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()

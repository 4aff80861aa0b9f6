"""Shared parts of the Hugging Face Graphormer benchmarks: molecules as graphs, their preprocessing, the model.

Importing this module compiles Hugging Face's Cython code once (pyximport keeps it under ~/.pyxbld).
Run the scripts from this folder: that build reads any setup.cfg of the folder it is started in.
"""

import csv
import gzip
import random
import resource
from pathlib import Path

import numpy as np
from rdkit import Chem
from transformers.models.deprecated.graphormer.collating_graphormer import preprocess_item
from transformers.models.deprecated.graphormer.configuration_graphormer import GraphormerConfig
from transformers.models.deprecated.graphormer.modeling_graphormer import GraphormerForGraphClassification

BOND_TYPES = {
    Chem.BondType.SINGLE: 1,
    Chem.BondType.DOUBLE: 2,
    Chem.BondType.TRIPLE: 3,
    Chem.BondType.AROMATIC: 4,
}


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
    """Hugging Face's own preprocessing, which adds its arrays to each graph in place."""
    return [preprocess_item(graph) for graph in graphs]


def shallow_copies(items: list[dict]) -> list[dict]:
    """Items safe to collate: the collator replaces the arrays of the dictionaries it is given."""
    return [dict(item) for item in items]


def slim_model(max_hops: int) -> GraphormerForGraphClassification:
    """Graphormer slim, one regression output; embedding tables of the sizes used for ZINC.

    Tables need atom type + 3, bond type + 3, degree + 1 and distance + 1 (511 if unreachable) as an index.
    """
    config = GraphormerConfig(
        num_classes=1,
        num_atoms=128,
        num_edges=64,
        num_in_degree=64,
        num_out_degree=64,
        num_spatial=512,
        num_edge_dis=max_hops,
        multi_hop_max_dist=max_hops,
        num_hidden_layers=12,
        embedding_dim=80,
        ffn_embedding_dim=80,
        num_attention_heads=8,
        dropout=0.0,
        attention_dropout=0.1,
        activation_dropout=0.0,
        encoder_normalize_before=True,
        pre_layernorm=False,
        apply_graphormer_init=True,
    )
    return GraphormerForGraphClassification(config)


def peak_rss_mib() -> float:
    """Largest resident memory of this process so far (Linux counts it in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

"""Contrastive learning of molecules with one norm for all tokens and with separate norms: how the CLS embeddings lie.

Two views of a molecule are its graph with a fifth of its atoms masked, each time others. A small Graphormer learns, by
the NT-Xent loss (Chen et al., ICML 2020) on the CLS embeddings, which views belong together. Uniformity and alignment
(Wang & Isola, ICML 2020) on molecules that it was not trained on are printed, for either norm and each seed:

    python examples/contrastive.py

Axis letters: B molecules, D width.
"""

import argparse
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from graphormer_sepnorm import Graphormer, separate_norms, slim
from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.data.load import load_split
from graphormer_sepnorm.data.store import MoleculeDataset
from graphormer_sepnorm.graphs import GraphBatch
from graphormer_sepnorm.inference.cls_geometry import alignment, uniformity
from graphormer_sepnorm.layers.batch_norm import reestimate_batch_norm

FEATURIZER = FEATURIZERS["zinc"]
(MASK,) = FEATURIZER.atom_sizes  # one type more than there are
BATCH = 64


def make_model(separate: bool) -> Graphormer:
    config = slim((MASK + 1,), FEATURIZER.bond_sizes)
    model = Graphormer(replace(config, layers=4, norm="sharenorm"))
    return separate_norms(model) if separate else model


def view(molecules: GraphBatch) -> GraphBatch:
    """The molecules with a fifth of their atoms masked."""
    masked = torch.rand(molecules.x.shape) < 0.2
    return replace(molecules, x=molecules.x.masked_fill(masked, MASK))


def embed(model: Graphormer, molecules: GraphBatch) -> Tensor:
    return model.encode(molecules)[0]


def nt_xent(x: Tensor, y: Tensor, temperature: float = 0.1) -> Tensor:
    """NT-Xent loss of the embeddings [B, D] of two views: each one's other view against all other embeddings."""
    z = normalize(torch.cat([x, y]), dim=1)
    similarity = (z @ z.T / temperature).fill_diagonal_(-torch.inf)
    partner = torch.arange(len(z)).roll(len(x))
    return cross_entropy(similarity, partner)


def train(model: Graphormer, data: MoleculeDataset, count: int, epochs: int) -> None:
    """Trains on the first molecules of a dataset, and takes the BatchNorm statistics of the final weights."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model.train()
    for _ in range(epochs):
        for rows in torch.randperm(count).split(BATCH):
            molecules = data.batch(rows)
            optimizer.zero_grad()
            nt_xent(embed(model, view(molecules)), embed(model, view(molecules))).backward()
            optimizer.step()
    reestimate_batch_norm(model, model.encode, [view(data.batch(rows)) for rows in torch.arange(count).split(BATCH)])


@torch.no_grad()
def measure(model: Graphormer, molecules: GraphBatch) -> tuple[float, float, float]:
    """Uniformity, alignment, and the share of molecules whose other view is the nearest of all other views."""
    model.eval()
    x, y = embed(model, view(molecules)), embed(model, view(molecules))
    nearest = (normalize(x, dim=1) @ normalize(y, dim=1).T).argmax(dim=1)
    return uniformity(x), alignment(x, y), (nearest == torch.arange(len(x))).float().mean().item()


def run(separate: bool, seed: int, count: int, epochs: int) -> tuple[float, float, float]:
    """Trains on molecules of the sample's training split and measures on 200 of its validation split."""
    torch.manual_seed(seed)
    model = make_model(separate)
    data, others = (load_split("sample", split, model.config.encodings) for split in ("train", "val"))
    train(model, data, count, epochs)
    return measure(model, others.batch(range(200)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--molecules", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    if options.molecules % BATCH == 1:
        parser.error(f"--molecules {options.molecules} leaves a last batch of one molecule: take one more")
    print(f"{'norm':<10}{'seed':>5}{'uniformity':>12}{'alignment':>11}{'found':>8}")
    for name, separate in (("ShareNorm", False), ("SepNorm", True)):
        for seed in range(options.seeds):
            spread, distance, found = run(separate, seed, options.molecules, options.epochs)
            print(f"{name:<10}{seed:>5}{spread:>12.3f}{distance:>11.3f}{found:>8.1%}")


if __name__ == "__main__":
    main()

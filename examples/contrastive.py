"""Contrastive learning of molecules with one norm for all tokens and with separate norms: how the CLS embeddings lie.

Two views of a molecule are two spellings of its SMILES. A small nn.TransformerEncoder reads the characters after a CLS
and learns, by the NT-Xent loss (Chen et al., ICML 2020), which spellings belong together. Uniformity and alignment
(Wang & Isola, ICML 2020) of the CLS embeddings of molecules not trained on are printed, for either norm and each seed:

    python examples/contrastive.py

Axis letters: n molecules, l tokens, d width.
"""

import argparse
from importlib import resources

import pandas as pd
import torch
from rdkit import Chem
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from graphormer_sepnorm.cls_geometry import alignment, uniformity
from graphormer_sepnorm.separate import separate_norms

PAD, CLS = 0, 1
FIRST_CHARACTER = 2 - ord(" ")
VOCABULARY = 128 + FIRST_CHARACTER
LONGEST = 160


class Encoder(nn.Module):
    """Embeds SMILES by the CLS of a transformer over their characters."""

    def __init__(self, width: int = 64, layers: int = 2):
        super().__init__()
        self.character = nn.Embedding(VOCABULARY, width)
        self.position = nn.Embedding(LONGEST, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Embeddings [n, d] of tokens [n, l]."""
        x = self.character(tokens) + self.position.weight[: tokens.shape[1]]
        return self.encoder(x, src_key_padding_mask=tokens == PAD)[:, 0]


def spellings(molecules: list[Chem.Mol], seed: int) -> Tensor:
    """Tokens [n, l] of one random spelling of each molecule, the CLS in front, padded to the longest."""
    rows = []
    for index, molecule in enumerate(molecules):
        smiles = Chem.MolToRandomSmilesVect(molecule, 1, randomSeed=seed * len(molecules) + index + 1)[0]
        rows.append(torch.tensor([CLS, *(ord(c) + FIRST_CHARACTER for c in smiles)][:LONGEST]))
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)


def nt_xent(x: Tensor, y: Tensor, temperature: float = 0.1) -> Tensor:
    """NT-Xent loss of the embeddings [n, d] of two views: each one's other view against all other embeddings."""
    z = normalize(torch.cat([x, y]), dim=1)
    similarity = (z @ z.T / temperature).fill_diagonal_(-torch.inf)
    partner = torch.arange(len(z)).roll(len(x))
    return cross_entropy(similarity, partner)


def train(model: Encoder, molecules: list[Chem.Mol], epochs: int, batch_size: int = 64) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model.train()
    for epoch in range(epochs):
        first, second = spellings(molecules, 2 * epoch), spellings(molecules, 2 * epoch + 1)
        for rows in torch.randperm(len(molecules)).split(batch_size):
            optimizer.zero_grad()
            nt_xent(model(first[rows]), model(second[rows])).backward()
            optimizer.step()


@torch.no_grad()
def measure(model: Encoder, molecules: list[Chem.Mol], seed: int = 10**6) -> tuple[float, float, float]:
    """Uniformity, alignment, and the share of molecules whose other view is the nearest of all other views."""
    model.eval()
    x, y = model(spellings(molecules, seed)), model(spellings(molecules, seed + 1))
    nearest = (normalize(x, dim=1) @ normalize(y, dim=1).T).argmax(dim=1)
    return uniformity(x), alignment(x, y), (nearest == torch.arange(len(x))).float().mean().item()


def run(separate: bool, seed: int, molecules: list[Chem.Mol], epochs: int) -> tuple[float, float, float]:
    """Trains on the first three quarters of the molecules and measures on the rest."""
    torch.manual_seed(seed)
    model = Encoder()
    if separate:
        separate_norms(model)
    split = len(molecules) * 3 // 4
    train(model, molecules[:split], epochs)
    return measure(model, molecules[split:])


def load_molecules(count: int) -> list[Chem.Mol]:
    with resources.files("graphormer_sepnorm.resources").joinpath("sample.csv.gz").open("rb") as file:
        table = pd.read_csv(file, compression="gzip", nrows=count)
    return [Chem.MolFromSmiles(smiles) for smiles in table["smiles"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--molecules", type=int, default=400)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    molecules = load_molecules(options.molecules)
    print(f"{'norm':<10}{'seed':>5}{'uniformity':>12}{'alignment':>11}{'found':>8}")
    for name, separate in (("ShareNorm", False), ("SepNorm", True)):
        for seed in range(options.seeds):
            spread, distance, found = run(separate, seed, molecules, options.epochs)
            print(f"{name:<10}{seed:>5}{spread:>12.3f}{distance:>11.3f}{found:>8.1%}")


if __name__ == "__main__":
    main()

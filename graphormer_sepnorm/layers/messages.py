"""Messages along bonds, and scaling by degree."""

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding


class BondMessages(nn.Module):
    """Sums relu(atom + bond) over the neighbours of each atom, then a linear map (Hu et al., ICLR 2020, GINE)."""

    def __init__(self, width: int, num_bond_types: int):
        super().__init__()
        self.bond = nn.Embedding(num_bond_types, width)
        self.out = nn.Linear(width, width)

    def forward(self, atoms: Tensor, edge_index: Tensor, bond: Tensor) -> Tensor:
        """Messages [T, D] to the atoms [T, D] along ``edge_index`` [2, E] with bond types [E] starting at 1."""
        source, target = edge_index
        messages = torch.relu(atoms.index_select(0, source) + embedding(bond - 1, self.bond.weight))  # [E, D]
        return self.out(torch.zeros_like(atoms).index_add_(0, target, messages))  # [T, D]


class GatedMessages(BondMessages):
    """With a gate from 0 to 2, at first near 1, for each channel (Bresson and Laurent, 2017)."""

    def __init__(self, width: int, num_bond_types: int):
        super().__init__(width, num_bond_types)
        self.gate = nn.Linear(width, 2 * width)
        self.gate_bond = nn.Embedding(num_bond_types, width)
        nn.init.zeros_(self.gate_bond.weight)

    def forward(self, atoms: Tensor, edge_index: Tensor, bond: Tensor) -> Tensor:
        source, target = edge_index
        own, other = self.gate(atoms).chunk(2, dim=1)
        gate = own.index_select(0, target) + other.index_select(0, source) + embedding(bond - 1, self.gate_bond.weight)
        messages = torch.relu(atoms.index_select(0, source) + embedding(bond - 1, self.bond.weight))
        return self.out(torch.zeros_like(atoms).index_add_(0, target, messages * (2 * torch.sigmoid(gate))))


def make_messages(width: int, num_bond_types: int, gated: bool) -> BondMessages:
    return (GatedMessages if gated else BondMessages)(width, num_bond_types)


class DegreeScaler(nn.Module):
    """Rows [T, D] times scale + slope * log(1 + degree), at first 1 (Ma et al., ICML 2023, GRIT)."""

    def __init__(self, width: int):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.slope = nn.Parameter(torch.zeros(width))

    def forward(self, atoms: Tensor, in_degree: Tensor) -> Tensor:
        log_degree = in_degree.to(self.slope.dtype).log1p().unsqueeze(1)
        return atoms * torch.addcmul(self.scale, log_degree, self.slope)  # [T, D]

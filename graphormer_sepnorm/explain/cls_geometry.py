"""Geometry of embeddings of the CLS token: measures of their spread, all computed in float64.

All take embeddings [m, d], neither centred nor scaled, and raise ValueError for another shape, or for m below 2.
"""

import torch
from torch import Tensor
from torch.nn.functional import normalize


def alignment(x: Tensor, y: Tensor, alpha: float = 2.0) -> float:
    """Mean distance, to the power ``alpha``, between two views of the same molecules, in order, on the unit sphere.

    0 is perfect; independent directions give 2 for ``alpha`` 2.

    Source: Wang & Isola, "Understanding Contrastive Representation Learning through Alignment and Uniformity on the
    Hypersphere", ICML 2020, section 4.1.
    """
    if x.shape != y.shape:
        raise ValueError(f"a pair of views has one shape, got {tuple(x.shape)} and {tuple(y.shape)}")
    return (on_sphere(x) - on_sphere(y)).norm(dim=1).pow(alpha).mean().item()


def uniformity(x: Tensor, t: float = 2.0) -> float:
    """Logarithm of the mean Gaussian potential over all pairs of embeddings on the unit sphere; 0 if all are equal.

    Lower is more uniform; in many dimensions, the minimum is about -2 t.

    Source: Wang & Isola, ICML 2020, section 4.1.
    """
    return torch.pdist(on_sphere(x)).pow(2).mul(-t).exp().mean().log().item()


def singular_values(x: Tensor) -> Tensor:
    """Spectrum [min(m, d)] of the centred embeddings divided by the square root of m, largest first.

    Its squares are the spectrum of the covariance matrix in Jing et al., "Understanding Dimensional Collapse in
    Contrastive Self-supervised Learning", ICLR 2022.
    """
    x = checked_embeddings(x)
    return torch.linalg.svdvals(x - x.mean(dim=0)) / x.shape[0] ** 0.5


def effective_rank(x: Tensor) -> float:
    """Exponential of the entropy of the normalized singular values: the number of directions the embeddings use.

    Between 1 and min(m, d); 0 if all embeddings are equal.

    Source: Roy & Vetterli, "The effective rank: a measure of effective dimensionality", EUSIPCO 2007; here of the
    centred embeddings, because embeddings do not differ along their common mean.
    """
    values = singular_values(x)
    if values[0] <= 1e-12 * x.abs().max():
        return 0.0
    return torch.special.entr(values / values.sum()).sum().exp().item()


def isotropy(x: Tensor) -> float:
    """Smallest over largest partition function Z(c) = sum exp(c . x) over the principal directions c; 1 is isotropic.

    An eigenvector and its negative are both principal directions, and both are used.

    Source: Mu & Viswanath, "All-but-the-Top: Simple and Effective Postprocessing for Word Representations", ICLR 2018.
    """
    x = checked_embeddings(x)
    _, directions = torch.linalg.eigh(x.T @ x)
    log_partition = (x @ torch.cat([directions, -directions], dim=1)).logsumexp(dim=0)
    return (log_partition.min() - log_partition.max()).exp().item()


def checked_embeddings(x: Tensor) -> Tensor:
    if x.dim() != 2 or x.shape[0] < 2:
        raise ValueError(f"embeddings have shape [m, d] with m of at least 2, got {tuple(x.shape)}")
    return x.detach().double()


def on_sphere(x: Tensor) -> Tensor:
    return normalize(checked_embeddings(x), dim=1)

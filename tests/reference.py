"""Graphormer written straight from the papers' formulas: one molecule, one atom, one head at a time, in float64."""

import itertools
import math

import torch
from torch.nn.functional import gelu


def distances(n, bonds):
    """All shortest-path distances by Floyd and Warshall; ``bonds`` maps (i, j) to a bond type."""
    d = [[0 if i == j else 1 if (i, j) in bonds else math.inf for j in range(n)] for i in range(n)]
    for k, i, j in itertools.product(range(n), repeat=3):
        d[i][j] = min(d[i][j], d[i][k] + d[k][j])
    return d


def smallest_path(i, j, d, bonds):
    """Bond types along the shortest path from i to j that comes first in lexicographic order, by trying all."""
    if i == j or math.isinf(d[i][j]):
        return ()
    n = len(d)
    steps = [k for k in range(n) if (i, k) in bonds and d[k][j] == d[i][j] - 1]
    return min((bonds[i, k], *smallest_path(k, j, d, bonds)) for k in steps)


def normalized(p, name, rows):
    """LayerNorm of tokens, or BatchNorm over all of them if the norm has running statistics; a list of [L, D]."""
    x, over = torch.cat(rows), 0 if f"{name}.running_mean" in p else -1
    mean, var = x.mean(over, keepdim=True), x.var(over, keepdim=True, unbiased=False)
    y = (x - mean) / torch.sqrt(var + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]
    return y.split([len(row) for row in rows])


def norm(p, prefix, tokens):
    """Applies the norm whose parameters are named so to a list of [L, D] molecules, in training mode."""
    if f"{prefix}.norm_layer.weight" in p:
        return list(normalized(p, f"{prefix}.norm_layer", tokens))
    cls = normalized(p, f"{prefix}.cls_norm_layer", [x[:1] for x in tokens])
    atoms = normalized(p, f"{prefix}.tok_norm_layer", [x[1:] for x in tokens])
    return [torch.cat(pair) for pair in zip(cls, atoms, strict=True)]


def attention(p, prefix, x, bias, heads):
    """Equations 3 to 6 of Ying et al. for one molecule: x [L, D], bias [H][L][L]."""
    width = x.shape[1]
    d = width // heads
    q, k, v = (x @ p[f"{prefix}.qkv.weight"].t() + p[f"{prefix}.qkv.bias"]).split(width, dim=1)
    outputs = []
    for h in range(heads):
        part = slice(h * d, (h + 1) * d)
        scores = q[:, part] @ k[:, part].t() / math.sqrt(d) + bias[h]
        outputs.append(scores.softmax(dim=1) @ v[:, part])
    return torch.cat(outputs, dim=1) @ p[f"{prefix}.out.weight"].t() + p[f"{prefix}.out.bias"]


def messages(p, prefix, x, bonds):
    """What each token x [L, D] receives along its bonds, nothing for the CLS; empty without such parameters."""
    received = torch.zeros_like(x)
    if f"{prefix}.bond.weight" not in p:
        return received
    weight, bias = p[f"{prefix}.out.weight"], p[f"{prefix}.out.bias"]
    for target in range(len(x) - 1):
        terms = [torch.relu(x[i + 1] + p[f"{prefix}.bond.weight"][b - 1]) for (i, j), b in bonds.items() if j == target]
        received[target + 1] = weight @ sum(terms, torch.zeros_like(x[0])) + bias
    return received


def scale_by_degree(p, prefix, received, bonds):
    """Each atom's row of received [L, D] times scale + slope * log(1 + degree); as it is without such parameters."""
    if f"{prefix}.scale" not in p:
        return received
    in_degree = [sum(j == atom for _, j in bonds) for atom in range(len(received) - 1)]
    factors = [p[f"{prefix}.scale"] + p[f"{prefix}.slope"] * math.log(1 + d) for d in in_degree]
    return received * torch.stack([torch.ones_like(received[0]), *factors])


def receive(p, prefix, x, bias, bonds, heads):
    """What each token x [L, D] gets from the others."""
    received = attention(p, f"{prefix}.attention", x, bias, heads) + messages(p, f"{prefix}.messages", x, bonds)
    return scale_by_degree(p, f"{prefix}.degree_scaler", received, bonds)


def feed_forward(p, prefix, x):
    hidden = gelu(x @ p[f"{prefix}.up.weight"].t() + p[f"{prefix}.up.bias"])
    return hidden @ p[f"{prefix}.down.weight"].t() + p[f"{prefix}.down.bias"]


def embed(p, molecule, max_degree, max_distance, max_hops):
    """Tokens [L, D] and bias [H, L, L] of one molecule: centrality, spatial and edge encodings."""
    types, bonds = molecule
    n = len(types)
    degree = [min(sum((i, j) in bonds for j in range(n)), max_degree) for i in range(n)]
    rows = [p["cls"][0]]
    for i in range(n):
        centrality = p["encodings.0.in_degree"][degree[i]] + p["encodings.0.out_degree"][degree[i]]
        rows.append(p["embedding.table"][types[i]] + centrality)
    d = distances(n, bonds)
    bias = p["cls_bias"].view(-1, 1, 1).repeat(1, n + 1, n + 1)
    for i, j in itertools.product(range(n), repeat=2):
        entry = max_distance + 1 if math.isinf(d[i][j]) else min(d[i][j], max_distance)
        term = p["encodings.1.bias"][entry]
        path = smallest_path(i, j, d, bonds)[:max_hops]
        for hop, bond in enumerate(path):
            term = term + p["encodings.2.bond"][bond - 1] @ p["encodings.2.hop"][hop] / len(path)
        bias[:, i + 1, j + 1] = term
    return torch.stack(rows), bias


def graphormer(p, molecules, config):
    """Predictions [B, tasks] of a model in training mode without dropout.

    Args:
        p: parameters by the names of ``Graphormer.state_dict()``, float64.
        molecules: pairs of atom types and a dict from (i, j) to bond type, both directions.
        config: ModelConfig with the three encodings of the paper in their order, and perhaps what acts in the blocks.
    """
    centrality, spatial, edge = config.encodings[:3]
    bonds = [bonds for _, bonds in molecules]
    tokens, biases = zip(
        *(embed(p, m, centrality.max_degree, spatial.max_distance, edge.max_hops) for m in molecules), strict=True
    )
    tokens = list(tokens)
    for layer in range(config.local_layers):
        tokens = local_block(p, f"local_blocks.{layer}", tokens, bonds, config.norm_position)
    near = tokens
    for layer in range(config.layers - config.local_layers):
        at = f"blocks.{layer}"
        sublayers = {
            "attention_norm": lambda x, *known, at=at: receive(p, at, x, *known, config.heads),
            "ffn_norm": lambda x, *_, at=at: feed_forward(p, f"{at}.ffn", x),
        }
        for name, sublayer in sublayers.items():
            inner = norm(p, f"{at}.{name}", tokens) if config.norm_position == "pre" else tokens
            tokens = [x + sublayer(*known) for x, *known in zip(tokens, inner, biases, bonds, strict=True)]
            if config.norm_position == "post":
                tokens = norm(p, f"{at}.{name}", tokens)
    if config.norm_position == "pre":
        tokens = norm(p, "last_norm", tokens)
    cls = torch.stack([x[0] for x in tokens])
    hidden = gelu(cls @ p["head.0.weight"].t() + p["head.0.bias"])
    return hidden @ p["head.2.weight"].t() + p["head.2.bias"] + atom_values(p, near)


def local_block(p, prefix, tokens, bonds, norm_position):
    """The next tokens [L, D] of each molecule, the CLS as it was."""

    def receive(x, bonds):
        received = messages(p, f"{prefix}.messages", x, bonds)
        return scale_by_degree(p, f"{prefix}.degree_scaler", received, bonds)

    for name, sublayer in (("messages_norm", receive), ("ffn_norm", lambda x, _: feed_forward(p, f"{prefix}.ffn", x))):
        inner = norm_of_atoms(p, f"{prefix}.{name}", tokens) if norm_position == "pre" else tokens
        added = [sublayer(x, known) for x, known in zip(inner, bonds, strict=True)]
        tokens = [torch.cat([x[:1], x[1:] + y[1:]]) for x, y in zip(tokens, added, strict=True)]
        if norm_position == "post":
            tokens = norm_of_atoms(p, f"{prefix}.{name}", tokens)
    return tokens


def norm_of_atoms(p, prefix, tokens):
    atoms = normalized(p, prefix, [x[1:] for x in tokens])
    return [torch.cat([x[:1], part]) for x, part in zip(tokens, atoms, strict=True)]


def atom_values(p, tokens):
    """[B, tasks]: means of the first values of each molecule's atoms, and sums of the second by 20; 0 without such."""
    if "atom_values.out.weight" not in p:
        return 0
    found = []
    for x in tokens:
        hidden = gelu(x[1:] @ p["atom_values.hidden.weight"].t() + p["atom_values.hidden.bias"])
        values = hidden @ p["atom_values.out.weight"].t() + p["atom_values.out.bias"]
        tasks = values.shape[1] // 2
        found.append(values[:, :tasks].sum(0) / len(values) + values[:, tasks:].sum(0) / 20)
    return torch.stack(found)

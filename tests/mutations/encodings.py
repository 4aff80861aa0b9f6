"""Mutations of the structural encodings."""

from tests.mutations.mutation import mutations

ALL = "unit/encodings/test_encodings.py"
ALGORITHMS = " ".join(
    [*(f"unit/encodings/test_{name}.py" for name in ("graph_algorithms", "spatial", "edge_path", "random_walk")), ALL]
)

MUTATIONS = (
    *mutations(
        "encodings/base.py",
        "unit/encodings/test_base.py unit/encodings/test_spatial.py",
        ("return np.stack([target, source], axis=1)", "return np.stack([source, target], axis=1)"),
        ("minlength=graphs.atom_ptr[-1]", "minlength=0"),
        (
            "np.repeat(graphs.atom_ptr[:-1], np.diff(graphs.edge_ptr))",
            "np.repeat(graphs.atom_ptr[1:], np.diff(graphs.edge_ptr))",
        ),
    ),
    *mutations(
        "encodings/centrality.py",
        f"unit/encodings/test_centrality.py {ALL} unit/test_model.py::test_equals_the_reference_forward_and_gradients",
        (".clip(max=self.max_degree)", ".clip(max=self.max_degree + 1)"),
        (".clip(max=self.max_degree)", ""),
        (" * len(self.in_degree)", " * 0"),
        ("torch.cat([self.in_degree, self.out_degree])", "torch.cat([self.out_degree, self.in_degree])"),
        ("Terms(atom=embedding_sum", "Terms(pair=embedding_sum"),
    ),
    *mutations(
        "encodings/spatial.py",
        f"unit/encodings/test_spatial.py {ALL}",
        ("np.where(spd == UNREACHABLE, self.max_distance + 1, self.max_distance)", "self.max_distance"),
        ("spd == UNREACHABLE", "spd >= self.max_distance"),
        ("np.minimum(spd, far)", "np.maximum(spd, far)"),
        ("torch.empty(max_distance + 2, channels)", "torch.empty(max_distance + 1, channels)"),
    ),
    *mutations(
        "encodings/edge_path.py",
        f"unit/encodings/test_edge_path.py {ALL} unit/test_model.py::test_equals_the_reference_forward_and_gradients",
        ("(0, 0, 1, 0))", "(0, 0, 0, 1))"),
        (".clamp(min=1)", ".clamp(min=2)"),
        ("return Terms(pair=total / steps.unsqueeze(1))", "return Terms(pair=total)"),
        ("* per_hop.shape[1]", "* (per_hop.shape[1] - 1)"),
        ("graphs.bond, self.max_hops\n", "graphs.bond, self.max_hops + 1\n"),
        ("self.bond @ self.hop", "self.bond @ self.hop.mT"),
    ),
    *mutations(
        "encodings/random_walk.py",
        f"unit/encodings/test_random_walk.py {ALL} unit/test_model.py::test_equals_the_reference_forward_and_gradients",
        ("walks[graphs.diagonal]", "walks[: len(graphs.diagonal)]"),
        ("atom=self.atom(returns), pair=self.pair(walks)", "pair=self.pair(walks)"),
        ("graphs.bond, self.steps\n", "graphs.bond, self.steps + 1\n"),
    ),
    *mutations(
        "encodings/resistance.py",
        f"unit/encodings/test_resistance.py {ALL}",
        ("torch.exp(-50 *", "torch.exp(-5 *"),
        ("self.grid - self.shift", "self.grid + self.shift"),
        ("self.stretch.exp()) ** 2", "self.stretch.exp())"),
        ("else 1 + self.factor(gaussians)", "else self.factor(gaussians)"),
        ("torch.linspace(0, 1, basis)", "torch.linspace(0, 2, basis)"),
        (".unsqueeze(1) / self.cap", ".unsqueeze(1)"),
        ("sizes.heads if self.multiplies else 0", "sizes.heads"),
    ),
    *mutations(
        "encodings/rings.py",
        f"unit/encodings/test_rings.py {ALL}",
        ("Chem.GetSymmSSSR(skeleton)", "Chem.GetSSSR(skeleton)"),
        ("if low < high:", "if low <= high:"),
        ("torch.empty(max_size + 1, channels)", "torch.empty(max_size, channels)"),
        ("[m for m, found in enumerate(of_molecules)", "[0 for m, found in enumerate(of_molecules)"),
    ),
    *mutations(
        "encodings/graph_algorithms.py",
        f"unit/encodings/test_rings.py {ALL}",
        ("size = min(len(ring), most)", "size = len(ring) % most"),
        ("for k in range(size - 2):", "for k in range(size - 3, size - 2):"),
        ("min(counts[atom_ptr[m] + i, k] + 1, 255)", "min(counts[atom_ptr[m] + i, k] + 1, 1)"),
        ("min(counts[atom_ptr[m] + i, k] + 1, 255)", "counts[atom_ptr[m] + i, k] + 1"),
        ("or size < shared[pair]:", "or size > shared[pair]:"),
        ("pair = pair_ptr[m] + i * n + j", "pair = pair_ptr[m] + i + j * n", "rings hold pairs both ways round"),
        ("atoms[ring_ptr[r] : ring_ptr[r + 1]]", "atoms[ring_ptr[r] + 1 : ring_ptr[r + 1]]"),
        ("min(counts[atom_ptr[m] + i, k]", "min(counts[i, k]"),
    ),
    *mutations(
        "encodings/graph_algorithms.py",
        ALGORITHMS,
        ("min(spd[atom] + 1, LONGEST_DISTANCE)", "spd[atom] + 1"),
        ("return path[k] < best[k]", "return path[k] > best[k]"),
        ("if found or is_smaller_path(candidate, paths[other]):", "if found:"),
        ("if distance <= hops:", "if distance < hops:"),
        ("candidate[distance - 1] = kind[e]", "candidate[0] = kind[e]"),
        ("after[i, j] += walk[neighbour[e], j] / degree", "after[i, j] += walk[neighbour[e], j]"),
        ("after[i, j] += walk[neighbour[e], j] / degree", "after[i, j] += walk[i, j] / degree"),
        ("walk = np.eye(n)", "walk = np.ones((n, n)) / n"),
        ("laplacian[i, neighbour[e]] -= 1", "laplacian[i, neighbour[e]] += 1"),
        ("laplacian[i, j] += 1 / n", "laplacian[i, j] += 1", "the all-ones part cancels whatever its factor is"),
        ("- inverse[i, j] - inverse[j, i]", "- inverse[i, j]"),
        ("if connected else cap", "if connected else 0.0"),
        ("min(max(distance, 0.0), cap)", "max(distance, 0.0)"),
        ("found += 1\n    return component", "return component"),
        ("pair += n * n\n    return spd, path_bonds", "pair += n\n    return spd, path_bonds"),
        (
            "elif spd[other] != distance or other == source or distance == LONGEST_DISTANCE:",
            "elif spd[other] != distance:",
        ),
    ),
    *mutations(
        "encodings/transform.py",
        "unit/encodings/test_transform.py unit/test_model.py::test_runs_on_batches_of_a_pyg_dataloader",
        ("precompute(self.encodings, graphs)", "precompute(self.encodings[:1], graphs)"),
        (", bond_sizes={self.bond_sizes!r})", ")"),
    ),
)

"""Mutations of packed graphs."""

from tests.mutations.mutation import mutations, tests_of

READ = tests_of(
    "unit/test_model.py",
    "test_bonds_that_no_molecule_can_have_are_refused_before_any_loop",
    "test_more_combinations_of_bond_features_than_types_are_refused",
    "test_atoms_outside_the_vocabularies_are_refused",
    "test_the_largest_values_of_all_vocabularies_are_read",
    "test_untransformed_graphs_are_refused",
    "test_graph_batch_moves_with_everything_in_it",
)

MUTATIONS = mutations(
    "graphs.py",
    f"unit/test_graphs.py {READ} unit/encodings/test_encodings.py",
    ("place * (n + 1)", "place * n"),
    ("return pointers(self.num_atoms**2)", "return pointers(self.num_atoms)"),
    ('"pair": self.pair_ptr, "edge": self.edge_ptr', '"pair": self.edge_ptr, "edge": self.pair_ptr'),
    ("slice(ptr[molecule], ptr[molecule + 1])", "slice(ptr[molecule], ptr[molecule] + 1)"),
    ("y=None if self.y is None else self.y[molecules],", "y=self.y,"),
    ("rows[self.levels[name]]", 'rows["atom"]'),
    ("+ source * num_atoms[molecule] + target", "+ target * num_atoms[molecule] + source"),
    ("pair * (LARGEST_BOND_TYPE + 1) + bond", "pair * (LARGEST_BOND_TYPE + 1) - bond.astype(int)"),
    ("prepend=-1) > 0]", "prepend=-1) >= 0]"),
    ("pair * (LARGEST_BOND_TYPE + 1) + bond)", "pair)"),
    ("np.cumsum(counts, dtype=np.int64)]", "counts]"),
    ("types = types * size + edge_attr[:, column]", "types = types + edge_attr[:, column]"),
    ("return (types + 1).astype(np.uint8)", "return types.astype(np.uint8)"),
    (
        "(values < 0) | (values >= torch.tensor(sizes, device=values.device))",
        "values >= torch.tensor(sizes, device=values.device)",
    ),
    ("(values >= torch.tensor(sizes", "(values > torch.tensor(sizes"),
    ("wrong = (edge_index < 0) | (", "wrong = ("),
    ("(edge_index >= num_atoms.repeat", "(edge_index > num_atoms.repeat"),
    ("right=True)) - 1", "right=True))"),
    ("if math.prod(bond_sizes) > LARGEST_BOND_TYPE:", "if math.prod(bond_sizes) > LARGEST_BOND_TYPE + 1:"),
    ("target = self.edge_index[1]", "target = self.edge_index[0]"),
    ("edge_index=move(self.edge_index),", "edge_index=self.edge_index,"),
    ("return self.ptr.shape[0] - 1", "return self.ptr.shape[0]"),
    ("y=None if y is None else y.view(batch.num_graphs, -1).float(),", "y=None,"),
    ("if graph.edge_attr.numel() != graph.num_edges * len(bond_sizes):", "if False:"),
    ("if values.shape[1] != len(sizes):", "if False:"),
    ("values.is_floating_point() or values.is_complex() or values.dtype == torch.bool", "values.is_complex()"),
)

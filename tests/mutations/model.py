"""Mutations of the model."""

from tests.mutations.mutation import mutations, tests_of

FILE = "unit/test_model.py"
FORWARD = tests_of(
    FILE,
    "test_equals_the_reference_forward_and_gradients",
    "test_dropout_acts_on_what_each_sublayer_adds_in_training_alone",
    "test_bond_direction_and_type_reach_the_output",
)
START = tests_of(
    FILE,
    "test_slim_stays_under_half_a_million_parameters_on_zinc",
    "test_embeddings_start_at_the_standard_deviation_of_the_config",
    "test_resistances_start_at_the_grid_whatever_the_embeddings",
)

MUTATIONS = (
    *mutations(
        "model.py",
        FORWARD,
        ("(0, *accumulate(sizes[:-1]))", "(0, *sizes[:-1])", "the reference's atoms have one feature"),
        ("self.out(gelu(pairs + self.shift))", "self.out(gelu(pairs - self.shift))"),
        ("self.out(gelu(pairs + self.shift))", "self.out(torch.relu(pairs + self.shift))"),
        ("attend(self.qkv(x), dropout)", "attend(x @ self.qkv.weight.t(), dropout)"),
        ("dropout = self.dropout if self.training else 0.0", "dropout = 0.0"),
        ("dropout = self.dropout if self.training else 0.0", "dropout = self.dropout"),
        ("source, target = edge_index\n        messages", "target, source = edge_index\n        messages"),
        (
            "torch.relu(atoms.index_select(0, source) + embedding(bond - 1, self.bond.weight))",
            "torch.relu(atoms.index_select(0, source)) + embedding(bond - 1, self.bond.weight)",
        ),
        ("embedding(bond - 1,", "embedding(bond % self.bond.num_embeddings,"),
        ("in_degree.to(self.slope.dtype).log1p()", "in_degree.to(self.slope.dtype)"),
        ("torch.addcmul(self.scale, log_degree, self.slope)", "torch.addcmul(self.slope, log_degree, self.scale)"),
        ("self.down(gelu(self.up(x)))", "self.down(torch.relu(self.up(x)))"),
        ("atoms = atoms + self.messages(x[num_cls:]", "atoms = self.messages(x[num_cls:]"),
        ("self.messages(x[num_cls:]", "self.messages(x[: x.shape[0] - num_cls]"),
        (
            "x[:read] + self.dropout(self.receive(x, read, num_cls, structure))",
            "self.dropout(self.receive(x, read, num_cls, structure))",
        ),
        (
            "self.dropout(self.receive(x, read, num_cls, structure))",
            "self.receive(x, read, num_cls, structure)",
        ),
        (
            "return self.ffn_norm.packed(x + self.dropout(self.ffn(x)), num_cls, structure.real)",
            "return self.ffn_norm.packed(x + self.ffn(x), num_cls, structure.real)",
        ),
        (
            "return x + self.dropout(self.ffn(self.ffn_norm.packed(x, num_cls, structure.real)))",
            "return x + self.dropout(self.ffn(self.attention_norm.packed(x, num_cls, structure.real)))",
        ),
        ("normed = self.attention_norm.packed(x, num_cls, structure.real)", "normed = x"),
        ("math.prod(factors[1:], start=factors[0])", "factors[0]"),
        ("            x = self.last_norm.packed(x, num_cls, structure.real)\n", "            pass\n"),
        ("self.embedding(batch.x))  # [T, D]", "self.embedding(batch.x) * 2)  # [T, D]"),
        ("self.bias_network(sum(pairs[1:], pairs[0]))", "self.bias_network(pairs[0])"),
        (
            "self.pair_bias(batch, terms), find_factor(terms)",
            "self.pair_bias(batch, terms), None",
        ),
        ("return x[:num_cls], x[num_cls:]", "return x[-num_cls:], x[num_cls:]"),
        ('if config.norm_position == "pre" else None', "if config.norm_position == 'post' else None"),
        ("received = self.messages(atoms, structure.edge_index, structure.bond)", "received = atoms"),
        (
            "normed(self.messages_norm, atoms + self.dropout(self.receive(atoms, structure)), real)",
            "normed(self.ffn_norm, atoms + self.dropout(self.receive(atoms, structure)), real)",
        ),
        (
            "self.dropout(self.receive(normed(self.messages_norm, atoms, real), structure))",
            "self.dropout(self.receive(atoms, structure))",
        ),
        ("atoms + self.dropout(self.ffn(normed(self.ffn_norm, atoms, real)))", "atoms"),
        ("predicted + self.atom_values(near, ptr, shape)", "predicted + self.atom_values(atoms, ptr, shape)"),
        ("predicted + self.atom_values(near, ptr, shape)", "predicted"),
    ),
    *mutations(
        "model.py",
        START,
        ("std=self.config.embedding_std)", "std=0.02)"),
        ("if parameter.ndim > 1)", "if parameter.ndim > 0)"),
        ("self.config.embedding_std)", "self.config.embedding_std**2)"),
    ),
    *mutations(
        "model.py",
        tests_of(FILE, "test_values_of_atoms_begin_near_zero"),
        ("            self.atom_values.start_near_zero()\n", "            pass\n"),
    ),
    *mutations(
        "model.py",
        FILE,
        ("nn.init.zeros_(module.bias)", "nn.init.ones_(module.bias)"),
        ("nn.init.xavier_uniform_(module.weight)", "pass"),
        ("(0, *accumulate(sizes[:-1]))", "(0, *accumulate(sizes[1:]))"),
        ('            check_features("x", batch.x, self.config.atom_sizes, batch.ptr)\n', ""),
        (
            "nn.Linear(self.readout.parts * config.width, config.width),\n            nn.GELU(),",
            "nn.Linear(self.readout.parts * config.width, config.width),\n            nn.ReLU(),",
        ),
        ("        self.float()  # whatever PyTorch's default is\n", ""),
        ("module.dropout = self.config.attention_dropout if drops else 0.0", "module.dropout = 0.0"),
        ("module.p = self.config.dropout if drops else 0.0", "module.p = self.config.dropout"),
    ),
)

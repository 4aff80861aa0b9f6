import torch

from graphormer_sepnorm.formats import config_of_format_1, tensors_of_format_1

FORMAT_1 = {
    "seed": 3,
    "model": {
        "width": 2,
        "encodings": [
            {"name": "bonds", "num_bond_types": 4},
            {"name": "centrality", "max_degree": 3},
            {"name": "degree_scaling"},
            {"name": "edge_path", "max_hops": 2, "num_bond_types": 4},
        ],
    },
}


def test_some_encodings_become_fields():
    assert config_of_format_1(FORMAT_1) == {
        "seed": 3,
        "model": {
            "width": 2,
            "encodings": [{"name": "centrality", "max_degree": 3}, {"name": "edge_path", "max_hops": 2}],
            "messages": True,
            "degree_scaling": True,
        },
    }


def test_malformed_encodings_are_left_to_the_validation():
    for config in ({}, {"model": 3}, {"model": {"encodings": ["bonds"]}}, {"model": {"encodings": []}}):
        assert config_of_format_1(config) == config


def test_tensors_are_renumbered_cut_and_dropped():
    """The prediction does not depend on the atoms of the last layer; the first bond type stood for no bond."""
    table = torch.arange(6.0).view(3, 2)
    tensors = {
        "encodings.1.in_degree": torch.ones(1),
        "model.encodings.3.weight": torch.ones(2),
        "blocks.0.messages.bond.weight": table,
        "blocks.0.messages.out.bias": torch.ones(3),
        "blocks.1.messages.bond.weight": table,
        "blocks.1.degree_scaler.scale": torch.ones(4),
        "blocks.1.ffn.up.bias": torch.ones(5),
    }
    found = tensors_of_format_1(tensors, FORMAT_1, lambda layer: layer == 0)
    assert {name: tensor.tolist() for name, tensor in found.items()} == {
        "encodings.0.in_degree": [1],
        "model.encodings.1.weight": [1, 1],
        "blocks.0.messages.bond.weight": [[2, 3], [4, 5]],
        "blocks.0.messages.out.bias": [1, 1, 1],
        "blocks.1.ffn.up.bias": [1, 1, 1, 1, 1],
    }

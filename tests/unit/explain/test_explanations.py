"""Atom contributions and their pictures."""

import io
import re
import xml.etree.ElementTree
from dataclasses import replace

import numpy as np
import pytest
import torch
from matplotlib.image import imread
from rdkit import Chem

from graphormer_sepnorm import Graphormer
from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.encodings.shipped import Resistance
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.explain.explanations import (
    METHODS,
    EmbeddedMolecule,
    Explanation,
    RecordedAttention,
    average_atom,
    integrated_gradients,
)
from graphormer_sepnorm.explain.pictures import (
    COLUMNS,
    PANEL_HEIGHT,
    PANEL_WIDTH,
    colour_scale,
    draw,
    draw_pair,
    draw_plain,
    fragments_text,
    sum_text,
    write_pictures,
)
from graphormer_sepnorm.layers.norms import NORMS
from graphormer_sepnorm.recipes import paper_encodings
from tests.tiny import save_tiny, tiny_model

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"
FURTHER = {"encodings": (*paper_encodings(), Resistance(multiplies=True)), "messages": True, "degree_scaling": True}
LOCAL = {"messages": True, "attention_layers": 2, "atom_values": True}


def make_model(norm: str = "sepnorm", kind: str = "regression", norm_position: str = "post", **further) -> Graphormer:
    """A small model on OGB's vocabulary with two targets, its weights and statistics far from where they start."""
    _, config = tiny_model("ogb", ("a", "b"), kind)
    scale = {"mean": (0.0, 100.0), "std": (1.0, 10.0)} if kind == "regression" else {}
    shape = replace(config.model, layers=3, norm=norm, norm_position=norm_position, **further)
    torch.manual_seed(1)
    model = Graphormer(shape)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    model.run_config = replace(config, dataset="none", task=replace(config.task, **scale), model=shape)
    return model.eval()


@pytest.mark.slow
@pytest.mark.parametrize("norm_position", ["post", "pre"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("further", [{}, FURTHER, LOCAL], ids=["paper", "further", "local"])
def test_contributions_add_up_to_the_difference_of_predictions(norm, norm_position, further):
    model = make_model(norm, norm_position=norm_position, **further)
    for smiles in ("C", "CCO", ASPIRIN, "[Na+].CC(=O)[O-]"):
        prediction = model.predict([smiles])[0, 1]
        molecule = EmbeddedMolecule(model, "ogb", smiles)
        with torch.no_grad():
            baseline = 100 + 10 * molecule.outputs(average_atom(model, "ogb").expand_as(molecule.atoms))[0, 1].item()
        explanation = integrated_gradients(model, smiles, "b")
        assert explanation.prediction == pytest.approx(prediction, rel=1e-5)
        assert explanation.baseline == pytest.approx(baseline, rel=1e-5)
        assert explanation.contributions.shape == (Chem.MolFromSmiles(smiles).GetNumAtoms(),)
        assert explanation.contributions.sum() == pytest.approx(prediction - baseline, abs=1e-4)


@pytest.mark.slow
def test_the_baseline_is_an_average_of_atoms():
    model = make_model()
    atoms = torch.cat([EmbeddedMolecule(model, "ogb", smiles).atoms[0] for smiles in sample_table().smiles[:256]])
    torch.testing.assert_close(average_atom(model, "ogb"), atoms.mean(dim=0), rtol=1e-4, atol=1e-5)


def test_contributions_to_a_probability_add_up_in_log_odds():
    model = make_model(kind="classification")
    explanation = integrated_gradients(model, ASPIRIN)
    probability = model.predict([ASPIRIN])[0, 0]
    assert explanation.prediction == pytest.approx(probability, rel=1e-4)
    log_odds = np.log(probability / (1 - probability))
    assert explanation.baseline + explanation.contributions.sum() == pytest.approx(log_odds, abs=1e-4)
    assert explanation.meaning == "contribution to log-odds of a"
    assert explanation.caption == f"a: probability {probability:.2f}"


@pytest.mark.parametrize("method", METHODS)
def test_contributions_follow_their_atoms(method):
    model = make_model(**FURTHER)
    mol = Chem.MolFromSmiles(ASPIRIN)
    order = np.random.default_rng(0).permutation(mol.GetNumAtoms()).tolist()
    shuffled = Chem.MolToSmiles(Chem.RenumberAtoms(mol, order), canonical=False)
    match = Chem.MolFromSmiles(shuffled).GetSubstructMatch(mol)
    here, there = (METHODS[method](model, smiles).contributions for smiles in (ASPIRIN, shuffled))
    symmetric = list(Chem.CanonicalRankAtoms(mol, breakTies=False))
    np.testing.assert_allclose(np.bincount(symmetric, here), np.bincount(symmetric, there[list(match)]), rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_contributions_are_those_of_the_molecule_as_it_is_read(tmp_path, method):
    model = Graphormer.from_pretrained(save_tiny(tmp_path, featurizer="mol-without-salts"))
    found = METHODS[method](model, "[Na+].CC(=O)[O-]")
    assert len(found.contributions) == 4 and "Na" not in found.smiles


def test_recorded_attention_is_the_attention_of_the_model():
    model = make_model(**FURTHER)
    molecule = EmbeddedMolecule(model, "ogb", ASPIRIN)
    recorded = []

    def record(*arguments):
        recorded.append(RecordedAttention(*arguments))
        return recorded[0]

    with torch.no_grad():
        torch.testing.assert_close(molecule.outputs(molecule.atoms, record), molecule.outputs(molecule.atoms))
    assert len(recorded[0].weights) == 3
    for weights in recorded[0].weights:
        torch.testing.assert_close(weights.sum(dim=1), torch.ones(14))


def explained(*contributions: float, baseline: float | None = 0.0) -> Explanation:
    return Explanation("C" * len(contributions), "a = 1", 1.0, "contribution to a", np.array(contributions), baseline)


def test_fragments_are_the_sums_of_their_atoms():
    found = replace(explained(0.5, -1.0, -1.0, 0, 0, 0, 0), smiles="Cc1ccccc1")
    assert [(each.smiles, each.atoms, each.contribution) for each in found.fragments] == [
        ("c1ccccc1", (1, 2, 3, 4, 5, 6), -2.0),
        ("C", (0,), 0.5),
    ]
    facts = found.facts()
    assert facts["fragments"][1] == {"smiles": "C", "atoms": (0,), "contribution": 0.5}
    assert facts["contributions"] == [0.5, -1.0, -1.0, 0, 0, 0, 0] and facts["start"] == "average atoms"
    assert fragments_text(found) == "Fragments: c1ccccc1 -2.00; C +0.50"


def test_the_sum_that_is_shown_is_that_of_its_rounded_numbers():
    """The total is said where it is not the prediction: as log-odds, or before a limit."""
    for prediction, meaning, total in ((1.016, "to a", []), (0.9, "to a", ["1.02"]), (0.7, "to log-odds", ["1.02"])):
        found = replace(explained(0.012), prediction=prediction, meaning=meaning, decimals=2)
        assert re.findall(r"\d\.\d+", sum_text(found, 1.004)) == [*total, "1.00", "0.02"]


def test_colours_show_the_sign():
    scale = colour_scale(explained(-0.1, 0.0, 2.0))
    assert (scale.low, scale.high) == (-2.0, 2.0)
    blue, white, red = (scale.colour(value) for value in (-1.0, 0.0, 1.0))
    assert blue[2] > blue[0] and red[0] > red[2] and min(white) > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, COLUMNS + 1])
def test_a_picture_has_a_panel_for_each_molecule(count):
    explanations = [explained(-0.5, 0.2)] * count
    picture = xml.etree.ElementTree.fromstring(draw(explanations, ".svg"))
    columns, rows = min(count, COLUMNS), -(-count // COLUMNS)
    assert picture.get("viewBox") == f"0 0 {columns * PANEL_WIDTH} {rows * PANEL_HEIGHT}"
    corner = imread(io.BytesIO(draw(explanations, ".png")))[0, 0]
    assert (corner == 1).all()  # opaque white: where a viewer is dark, too, black letters can be read


def test_pictures_are_files_or_a_folder(tmp_path):
    explanations = {0: explained(-0.5, 0.2), 7: explained(0.1)}
    write_pictures(tmp_path / "grid.svg", explanations)
    write_pictures(tmp_path / "folder", explanations)
    assert {path.name for path in (tmp_path / "folder").iterdir()} == {"00001.svg", "00008.svg"}
    with pytest.raises(InputError, match=r"must end in .svg, .png or .csv"):
        write_pictures(tmp_path / "grid.pdf", explanations)
    with pytest.raises(InputError, match="101 molecules are too many"):
        write_pictures(tmp_path / "many.svg", dict.fromkeys(range(101), explained(0.1)))
    with pytest.raises(InputError, match="no readable molecule"):
        write_pictures(tmp_path / "none.svg", {})
    assert {path.name for path in tmp_path.iterdir()} == {"grid.svg", "folder"}


def test_one_explanation_is_drawn_with_or_without_a_point_in_the_kind():
    explanation = Explanation("CC", "a = -7.97", -7.97, "contribution to a", np.array([-5.0, -0.57]), -2.4)
    assert draw(explanation, "svg") == draw([explanation], ".svg")
    for wrong in (".pdf", None):
        with pytest.raises(InputError, match=r"is not a kind of picture: choose \.svg or \.png$"):
            draw([explanation], wrong)
    with pytest.raises(InputError, match=r"^there is no explanation to draw$"):
        draw([], ".svg")


@pytest.mark.parametrize(("num_atoms", "digits"), [(3, 3), (12, 9 + 2 * 3), (40, 9 + 2 * 31), (41, 0)])
def test_atoms_have_numbers_unless_there_are_many(num_atoms, digits):
    explanation = Explanation("C" * num_atoms, "a = 1", 1.0, "contribution to a", np.zeros(num_atoms), 0.0)
    assert draw([explanation], ".svg").count(b"<path class='note'") == digits


def test_a_molecule_without_colours_is_an_svg_of_its_own():
    picture = draw_plain("CC(=O)Oc1ccccc1C(=O)O")
    assert picture.startswith(b"<?xml") and picture.rstrip().endswith(b"</svg>")
    small = draw_plain("CCO", is_small=True)
    assert len(small) < len(draw_plain("CCO")) and b"<text" in small
    with pytest.raises(InputError, match="not a valid SMILES"):
        draw_plain("C[C")


@pytest.mark.parametrize("draw_one", [draw_plain, lambda smiles: draw_pair(smiles, smiles)[0]])
def test_structures_can_be_read_on_white_and_inverted_on_black(draw_one):
    """Inversion with ``hue-rotate`` keeps the complement of the luma, so half of it suits both; nothing is filled."""
    picture = draw_one("FC(Cl)(Br)SC(I)(P)C(=O)N").decode()
    colours = set(re.findall("#[0-9A-F]{6}", picture))
    assert len(colours) > 7 and "<rect" not in picture
    for colour in colours:
        red, green, blue = bytes.fromhex(colour[1:])
        assert (0.213 * red + 0.715 * green + 0.072 * blue) / 255 < 0.45, colour


def test_a_pair_is_aligned_on_its_common_part_and_the_change_has_a_colour():
    """The six atoms of the ring are at the same places, whatever the order of the atoms in the SMILES."""
    one, other = (picture.decode() for picture in draw_pair("Oc1ccccc1CC", "CCc1ccccc1Cl"))
    assert one.count("fill:#FFCC7F") == other.count("fill:#FFCC7F") > 0
    assert "fill:#FFCC7F" not in draw_pair("CCO", "OCC")[0].decode()
    assert all(picture.startswith(b"<?xml") for picture in draw_pair("C", "O")), "nothing in common"
    with pytest.raises(InputError):
        draw_pair("C", "C[")

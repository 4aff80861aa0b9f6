import re
from pathlib import Path

import numpy as np
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.explain.explanations import Explanation
from graphormer_sepnorm.explain.pictures import (
    LONGEST_TEXT,
    MOST_PANELS,
    ColourScale,
    check_output,
    draw,
    draw_pair,
    draw_plain,
    draw_small,
    fragments_text,
    plot_cls_geometry,
    sum_text,
)


def test_colours_run_along_the_used_part_of_their_map():
    scale = ColourScale(-2.0, 2.0, "gray", (0.25, 0.75))
    for contribution, grey in ((-2.0, 0.25), (0.0, 0.5), (2.0, 0.75)):
        assert scale.colour(contribution) == pytest.approx((grey,) * 3, abs=1 / 255)


def test_one_explanation_is_drawn_with_or_without_a_point_in_the_kind():
    explanation = Explanation("CC", "a = -7.97", -7.97, "contribution to a", np.array([-5.0, -0.57]), -2.4)
    assert draw(explanation, "svg") == draw([explanation], ".svg")
    for wrong in (".pdf", None):
        with pytest.raises(InputError, match=r"is not a kind of picture: choose \.svg or \.png$"):
            draw([explanation], wrong)
    with pytest.raises(InputError, match=r"^there is no explanation to draw$"):
        draw([], ".svg")


def test_the_sum_of_a_probability_is_of_log_odds():
    explanation = Explanation("CC", "a = -8", -8, "contribution to log-odds of a", np.array([-5.0, -0.57]), -2.4)
    assert sum_text(explanation, -2.4) == "log-odds = baseline -2.40 (all atoms unknown) + atoms -5.57"


@pytest.mark.parametrize(
    ("decimals", "contributions", "sum_", "fragments"),
    [
        (2, [0.5, -0.125, 0.0], "prediction = baseline 1.00 (all atoms unknown) + atoms 0.38", "Fragments: CCO +0.38"),
        (0, [50.4, 0.2, -3.0], "prediction = baseline 1 (all atoms unknown) + atoms 48", "Fragments: CCO +48"),
        (0, [0.34, 0.0, 0.0], "prediction = baseline 1.0 (all atoms unknown) + atoms 0.3", "Fragments: CCO +0.3"),
        (3, [0.5, -1, 0], "prediction = baseline 1.000 (all atoms unknown) + atoms -0.500", "Fragments: CCO -0.500"),
    ],
)
def test_the_numbers_of_a_picture_have_the_decimals_of_the_labels(decimals, contributions, sum_, fragments):
    known = np.array(contributions)
    explanation = Explanation("CCO", "a = 1", 1.0, "contribution to a", known, 1.0, decimals=decimals)
    assert sum_text(explanation, 1.0) == sum_ and fragments_text(explanation) == fragments


def test_shares_of_attention_have_three_decimals_and_no_sign():
    explanation = Explanation("CCO", "a = 1", 1.0, "share", np.array([0.5, 0.25, 0.25]), None, decimals=1)
    assert fragments_text(explanation) == "Fragments: CCO 1.000"


def test_a_long_fragment_keeps_its_number():
    chain = "C" * 60
    explanation = Explanation(chain, "a = 1", 1.0, "contribution to a", np.full(60, 0.01), 0.0)
    text = fragments_text(explanation)
    assert text.startswith("Fragments: CCC") and text.endswith("CCC... +0.600") and len(text) == LONGEST_TEXT


@pytest.mark.parametrize(
    ("others", "text"),
    [
        ("", "Fragments: CC at 1 +0.750; CC at 7 -0.500"),
        (f".{'C' * 31}", "Fragments: CC +0.750; CC -0.500; c1ccccc1 +0.000"),
    ],
)
def test_fragments_of_the_same_smiles_have_the_numbers_of_the_picture(others, text):
    """It has no numbers if the molecule has more than 40 atoms."""
    contributions = np.zeros(10 + len(others[1:]))
    contributions[[0, 1, 6, 7]] = 0.5, 0.25, -0.25, -0.25
    explanation = Explanation(f"CCc1ccc(CC)cc1{others}", "a = 1", 1.0, "contribution to a", contributions, 0.0)
    assert fragments_text(explanation) == text


@pytest.mark.parametrize(("num_atoms", "digits"), [(3, 3), (12, 9 + 2 * 3), (40, 9 + 2 * 31), (41, 0)])
def test_atoms_have_numbers_unless_there_are_many(num_atoms, digits):
    explanation = Explanation("C" * num_atoms, "a = 1", 1.0, "contribution to a", np.zeros(num_atoms), 0.0)
    assert draw([explanation], ".svg").count(b"<path class='note'") == digits


def test_the_fragments_have_a_label_and_fit_on_a_line():
    contributions = np.linspace(1, 2, 13)
    explanation = Explanation("CC(=O)Oc1ccccc1C(=O)O", "a = 1", 1.0, "contribution to a", contributions, 0.0)
    text = fragments_text(explanation)
    assert text.startswith("Fragments: ") and len(text) <= LONGEST_TEXT and " +" in text


@pytest.mark.parametrize(
    ("out", "panels", "sentence"),
    [
        ("out.gif", 1, "must end in .svg, .png or .csv, or be a folder"),
        ("out.svg", MOST_PANELS + 1, "too many for one picture"),
    ],
)
def test_outputs_that_cannot_be(out, panels, sentence):
    with pytest.raises(InputError) as caught:
        check_output(Path(out), panels)
    assert sentence in str(caught.value)
    check_output(Path("out.svg"), MOST_PANELS)
    check_output(Path("folder"), 10 * MOST_PANELS)


def test_runs_are_drawn_side_by_side(tmp_path):
    result = {"norm": "sepnorm", "run": "runs/a", "effective_rank": 3.0, "uniformity": -2.0}
    results = [{**result, "singular_values": np.geomspace(1, 1e-3, 8).tolist()}] * 2
    plot_cls_geometry(results, tmp_path / "geometry.png")
    assert (tmp_path / "geometry.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_a_molecule_without_colours_is_an_svg_of_its_own():
    picture = draw_plain("CC(=O)Oc1ccccc1C(=O)O")
    assert picture.startswith(b"<?xml") and picture.rstrip().endswith(b"</svg>")
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


def test_a_small_drawing_has_letters_as_text():
    assert len(draw_small("CCO")) < len(draw_plain("CCO")) and "<text" in draw_small("CCO")

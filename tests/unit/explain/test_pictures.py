import re

import numpy as np
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.explain.explanations import Explanation
from graphormer_sepnorm.explain.pictures import draw, draw_pair, draw_plain


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

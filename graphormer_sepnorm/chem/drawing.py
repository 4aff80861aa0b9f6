"""Two dimensions for files: molfiles with coordinates, and small pictures."""

import contextlib

from rdkit import Chem
from rdkit.Chem import rdDepictor
from rdkit.Chem.Draw import rdMolDraw2D

from graphormer_sepnorm.chem.smiles import one_molecule, read_smiles
from graphormer_sepnorm.errors import InputError


def block_of(smiles: str, title: str = "") -> str:
    """A molfile with 2D coordinates; one without atoms for a molecule that cannot be read."""
    block = Chem.MolToMolBlock(Chem.Mol())
    with contextlib.suppress(InputError), one_molecule(smiles):
        mol = read_smiles(smiles)
        rdDepictor.Compute2DCoords(mol)
        block = Chem.MolToMolBlock(mol)
    return title + block[block.index("\n") :]


def is_readable(block: str) -> bool:
    """Whether RDKit reads a molfile."""
    with contextlib.suppress(InputError), one_molecule():
        return Chem.MolFromMolBlock(block) is not None
    return False


def picture_of(smiles: str, width: int, height: int) -> bytes | None:
    """A PNG of so many pixels; None for a molecule that cannot be drawn."""
    with contextlib.suppress(InputError), one_molecule(smiles):
        canvas = rdMolDraw2D.MolDraw2DCairo(width, height)
        rdMolDraw2D.PrepareAndDrawMolecule(canvas, read_smiles(smiles))
        canvas.FinishDrawing()
        return canvas.GetDrawingText()
    return None

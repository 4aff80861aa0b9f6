"""RDKit's two-dimensional descriptors: all of them, in worker processes and cached, or without the slow ones."""

import contextlib
import hashlib
import zipfile
from collections.abc import Sequence
from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np
from rdkit import rdBase
from rdkit.Chem import Descriptors, rdMolDescriptors
from tqdm import tqdm

from graphormer_sepnorm.chem.smiles import Molecule, molecule_of, one_molecule, without_atom_maps
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system.files import mark_used, write_atomically
from graphormer_sepnorm.system.workers import Smiles, in_chunks, map_chunks

NAMES = tuple(name for name, _ in Descriptors.descList)
CHUNK = 250  # molecules; their descriptors take ten times as long as reading them
NUMBERS = (
    "ExactMolWt", "NumHeavyAtoms", "TPSA", "LabuteASA", "HallKierAlpha", "FractionCSP3", "NumLipinskiHBA",
    "NumLipinskiHBD", "NumHBA", "NumHBD", "NumHeteroatoms", "NumRotatableBonds", "NumAmideBonds",
    "NumAtomStereoCenters", "NumRings", "NumAromaticRings", "NumAromaticCarbocycles", "NumAromaticHeterocycles",
    "NumAliphaticRings", "NumAliphaticHeterocycles", "NumSaturatedRings", "NumBridgeheadAtoms", "NumSpiroAtoms",
)  # fmt: skip
FUNCTIONS = [getattr(rdMolDescriptors, f"Calc{name}") for name in NUMBERS]
# Lipophilicity and refraction, and the surface by each of them and by charge.
TUPLES = [getattr(rdMolDescriptors, name) for name in ("CalcCrippenDescriptors", "SlogP_VSA_", "SMR_VSA_", "PEOE_VSA_")]
VERSIONS = ("descriptors 1",)  # of values and order, as kinds of counts; files without a name have the first
WIDTH = len(NUMBERS) + 2 + 12 + 10 + 14


def descriptors(molecules: Sequence[Molecule]) -> np.ndarray:
    """float32 [molecules, NAMES]: NaN for values that are not finite and for molecules that cannot be read."""
    values = np.full((len(molecules), len(NAMES)), np.nan)
    for row, molecule in zip(values, molecules, strict=True):
        with contextlib.suppress(InputError), one_molecule():
            mol = molecule_of(molecule)
            row[:] = list(Descriptors.CalcMolDescriptors(mol, missingVal=np.nan, silent=True).values())
    return finite(values)


def finite(values: np.ndarray) -> np.ndarray:
    """Numbers as float32; NaN for those that it cannot hold."""
    return np.where(np.abs(values) < np.finfo(np.float32).max, values, np.nan).astype(np.float32)


def kept_descriptors(folder: Path, smiles: Smiles) -> np.ndarray:
    """As ``descriptors``, from a file for these SMILES in ``folder``, which is written if missing or damaged."""
    text = "\n".join([rdBase.rdkitVersion, *NAMES, *(without_atom_maps(str(text)) for text in smiles)])
    digest = hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
    path = folder / f"{digest[:32]}.npz"
    with contextlib.suppress(OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        values = np.load(path)["values"]
        mark_used(path)
        return values
    values, content = descriptors(smiles), BytesIO()
    np.savez_compressed(content, values=values)
    write_atomically(path, content.getvalue())
    return values


def all_descriptors(smiles: Smiles, folder: Path) -> np.ndarray:
    """As ``descriptors``, in several processes, using files in ``folder`` that exist; shows a progress bar."""
    chunks = []
    with tqdm(total=len(smiles), desc="descriptors", unit=" molecules", leave=False, disable=None) as progress:
        for chunk, values in map_chunks(partial(kept_descriptors, folder), in_chunks(smiles, CHUNK), list):
            chunks.append(values)
            progress.update(len(chunk))
    return np.concatenate([np.empty((0, len(NAMES)), np.float32), *chunks])


def fast_descriptors(molecules: Sequence[Molecule]) -> np.ndarray:
    """Counts of atoms, rings and bonds, logP, refractivity, and surface areas: float32 [M, D], NaN where not finite."""
    values = np.empty((len(molecules), WIDTH))
    for row, mol in zip(values, map(molecule_of, molecules), strict=True):
        with one_molecule():
            row[:] = [*(number(mol) for number in FUNCTIONS), *(each for several in TUPLES for each in several(mol))]
    return finite(values)

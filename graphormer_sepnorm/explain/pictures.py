"""Pictures of molecules with a colour for each atom's contribution, drawn by RDKit as SVG or PNG.

Every picture is a grid of panels; a panel has the prediction as caption, the molecule, and a colour bar with its signs.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from rdkit import Chem
from rdkit.Chem import rdDepictor, rdFMCS
from rdkit.Chem.Draw import rdMolDraw2D
from rdkit.Geometry import Point2D

from graphormer_sepnorm.chem.smiles import one_molecule, read_smiles, truncated
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.explain.explanations import Explanation
from graphormer_sepnorm.runs.numbers import shown
from graphormer_sepnorm.runs.plots import new_figure, save_png
from graphormer_sepnorm.system.files import write_atomically

PANEL_WIDTH, PANEL_HEIGHT = 460, 462
PLAIN, SMALL, PAIR = (280, 200), (240, 180), (200, 150)  # width and height of pictures without colours
MOST_SECONDS = 1  # of the search for a common part
CAPTION_HEIGHT, BAR_HEIGHT, MARGIN = 70, 118, 50
COLUMNS = 4
LIMITED = 1e-4  # least relative difference of sum and prediction that shows that a limit cuts the sum
MOST_PANELS = 100
LARGE_TEXT, SMALL_TEXT = 22, 14
LONGEST_TEXT = 52
LONGEST_CAPTION = 33  # characters of LARGE_TEXT that fit into a panel
MOST_NUMBERED = 40  # the numbers of more atoms are too small to read
BAR_STEPS = 64
# Darker than RDKit's: they can be read on white, and on black once a dark theme has inverted their lightness.
PALETTE = {9: (0.0, 0.45, 0.45), 15: (0.7, 0.35, 0.0), 16: (0.55, 0.45, 0.0), 17: (0.0, 0.5, 0.05)}
CHANGED = (1.0, 0.8, 0.5)  # colour of atoms in which two molecules differ
BLACK, GREY = (0.0, 0.0, 0.0), (0.4, 0.4, 0.4)
CANVASES = {".svg": rdMolDraw2D.MolDraw2DSVG, ".png": rdMolDraw2D.MolDraw2DCairo}
Colour = tuple[float, float, float]


@dataclass(frozen=True)
class ColourScale:
    """Colours of contributions between ``low`` and ``high``."""

    low: float
    high: float
    palette: str  # of matplotlib
    part: tuple[float, float]  # of it that is used; its darkest colours would hide the atoms' symbols

    def colour(self, contribution: float) -> Colour:
        first, last = self.part
        place = (contribution - self.low) / (self.high - self.low or 1.0)
        return matplotlib.colormaps[self.palette](first + place * (last - first))[:3]


def colour_scale(explanation: Explanation) -> ColourScale:
    """Blue below zero, white, red above; light to dark orange for contributions without a sign."""
    contributions = explanation.contributions
    if explanation.baseline is None:
        return ColourScale(float(contributions.min()), float(contributions.max()), "Oranges", (0.0, 0.65))
    largest = float(np.abs(contributions).max()) or 1.0
    return ColourScale(-largest, largest, "RdBu_r", (0.15, 0.85))


def draw(explanations: Explanation | Sequence[Explanation], kind: str, columns: int = COLUMNS) -> bytes:
    """Draws a picture with one panel per explanation.

    Args:
        explanations: one or more.
        kind: ".svg" or ".png"; the point may be missing.
        columns: most panels in a row.

    Returns:
        the content of the file.

    Raises:
        InputError: there is no explanation, or the kind is unknown.
    """
    explanations = [explanations] if isinstance(explanations, Explanation) else explanations
    kind = f".{str(kind).removeprefix('.')}"
    if kind not in CANVASES:
        raise InputError(f"{kind} is not a kind of picture: choose {' or '.join(CANVASES)}")
    if not explanations:
        raise InputError("there is no explanation to draw")
    columns = min(columns, len(explanations))
    width, height = columns * PANEL_WIDTH, -(-len(explanations) // columns) * PANEL_HEIGHT
    canvas = CANVASES[kind](width, height, PANEL_WIDTH, PANEL_HEIGHT - BAR_HEIGHT - CAPTION_HEIGHT)
    canvas.ClearDrawing()  # white below all panels
    for number, explanation in enumerate(explanations):
        row, column = divmod(number, columns)
        draw_panel(canvas, column * PANEL_WIDTH, row * PANEL_HEIGHT, explanation)
    canvas.FinishDrawing()
    picture = canvas.GetDrawingText()
    return picture.encode() if isinstance(picture, str) else picture


def draw_plain(smiles: str, is_small: bool = False) -> bytes:
    """A molecule without colours, as SVG; a small one in few characters, with letters as text."""
    size = (*SMALL, -1, -1, True) if is_small else PLAIN
    mol = read_smiles(smiles)
    with one_molecule(smiles):
        rdDepictor.Compute2DCoords(mol)
        text = plain_svg(mol, size)
    return (re.sub(" class='[^']*'", "", text) if is_small else text).encode()


def plain_svg(mol: Chem.Mol, size: tuple, bond_length: int = 34, **highlights: Any) -> str:
    canvas = rdMolDraw2D.MolDraw2DSVG(*size)
    options: Any = canvas.drawOptions()
    options.clearBackground, options.fixedBondLength = False, bond_length
    options.updateAtomPalette(PALETTE)
    options.setHighlightColour(CHANGED)
    rdMolDraw2D.PrepareAndDrawMolecule(canvas, mol, **highlights)
    canvas.FinishDrawing()
    return canvas.GetDrawingText()


def draw_pair(first: str, second: str) -> tuple[bytes, bytes]:
    """Two molecules as SVG, aligned on their largest common part; atoms outside it, and their bonds, have a colour."""
    mols, pictures = [read_smiles(text) for text in (first, second)], []
    with one_molecule(first):
        result = rdFMCS.FindMCS(mols, timeout=MOST_SECONDS, ringMatchesRingOnly=True, completeRingsOnly=True)
        core = Chem.MolFromSmarts(result.smartsString)
        common = [mol.GetSubstructMatch(core) if result.numAtoms else () for mol in mols]
        for mol in mols:
            rdDepictor.Compute2DCoords(mol)
        if result.numAtoms:  # RDKit ends the process for an empty map
            rdDepictor.GenerateDepictionMatching2DStructure(mols[1], mols[0], list(zip(*common, strict=True)))
        for mol, kept in zip(mols, map(set, common), strict=True):
            atoms = sorted(set(range(mol.GetNumAtoms())) - kept)
            ends = {bond.GetIdx(): {bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()} for bond in mol.GetBonds()}
            bonds = [bond for bond, both in ends.items() if not both <= kept]
            pictures.append(plain_svg(mol, PAIR, highlightAtoms=atoms, highlightBonds=bonds).encode())
    return pictures[0], pictures[1]


def check_drawing(out: Path, panels: int) -> None:
    """Raises InputError unless ``out`` is a folder, or a picture with room for ``panels``."""
    if out.suffix and out.suffix not in CANVASES:
        raise InputError(f"{out} must end in {', '.join(CANVASES)} or .csv, or be a folder without an ending")
    if out.suffix and panels > MOST_PANELS:
        raise InputError(
            f"{panels} molecules are too many for one picture, at most {MOST_PANELS} are drawn: "
            "give a folder, which gets a picture for each"
        )


def write_pictures(out: Path, explanations: dict[int, Explanation]) -> None:
    """Writes one picture with all panels, or a folder with a picture per row, such as 00001-aspirin.svg."""
    check_drawing(out, len(explanations))
    if not explanations:
        raise InputError("there is no readable molecule to draw")
    if out.suffix:
        write_atomically(out, draw(list(explanations.values()), out.suffix))
    else:
        for row, explanation in explanations.items():
            name = re.sub(r"\W+", "_", explanation.name, flags=re.ASCII)[:LONGEST_TEXT].strip("_")
            write_atomically(out / f"{row + 1:05d}{'-' if name else ''}{name}.svg", draw([explanation], ".svg"))


def draw_panel(canvas: rdMolDraw2D.MolDraw2D, left: int, top: int, explanation: Explanation) -> None:
    """Draws one panel; if RDKit cannot draw the molecule, the panel shows the reason."""
    scale, middle = colour_scale(explanation), left + PANEL_WIDTH / 2
    colours = {atom: scale.colour(value) for atom, value in enumerate(explanation.contributions.tolist())}
    try:
        with one_molecule(explanation.smiles):
            mol = read_smiles(explanation.smiles)
            rdDepictor.Compute2DCoords(mol)
            options: Any = canvas.drawOptions()
            options.clearBackground, options.highlightRadius, options.fixedBondLength = False, 0.42, 42
            options.useBWAtomPalette()
            for number, atom in enumerate(mol.GetAtoms() if mol.GetNumAtoms() <= MOST_NUMBERED else (), 1):
                atom.SetProp("atomNote", str(number))
            canvas.SetOffset(left, top + CAPTION_HEIGHT)
            canvas.DrawMolecule(mol, highlightAtoms=list(colours), highlightAtomColors=colours, highlightBonds=[])
    except InputError as error:
        write(canvas, truncated(str(error), LONGEST_TEXT), middle, top + PANEL_HEIGHT / 2, SMALL_TEXT, BLACK)
    size = min(LARGE_TEXT, LARGE_TEXT * LONGEST_CAPTION // len(explanation.caption))
    write(canvas, explanation.caption, middle, top + 24, size, BLACK)
    title = f"{explanation.name}  {explanation.smiles}".strip()
    write(canvas, truncated(title, LONGEST_TEXT), middle, top + 52, SMALL_TEXT, GREY)
    draw_bar(canvas, left + MARGIN, top + PANEL_HEIGHT - BAR_HEIGHT, explanation, scale)


def draw_bar(
    canvas: rdMolDraw2D.MolDraw2D, left: float, top: float, explanation: Explanation, scale: ColourScale
) -> None:
    width = PANEL_WIDTH - 2 * MARGIN
    edges = np.linspace(scale.low, scale.high, BAR_STEPS + 1)
    canvas.SetOffset(0, 0)
    canvas.SetFillPolys(True)
    for step, middle in enumerate(((edges[:-1] + edges[1:]) / 2).tolist()):
        canvas.SetColour(scale.colour(middle))
        start = left + width * step / BAR_STEPS
        canvas.DrawRect(Point2D(start, top + 4), Point2D(start + width / BAR_STEPS + 0.5, top + 18), rawCoords=True)
    low, high = (signed(explanation, end) for end in (scale.low, scale.high))
    if explanation.baseline is None:
        ticks, note = (low, "", high), "no sign: share of attention, not of the value"
    else:
        ticks, note = (f"{low} lowers", "0", f"raises {high}"), sum_text(explanation, explanation.baseline)
    for place, text in zip((left, left + width / 2, left + width), ticks, strict=True):
        write(canvas, text, place, top + 32, SMALL_TEXT, BLACK)
    for row, text in enumerate((explanation.meaning, note, fragments_text(explanation))):
        write(canvas, text, left + width / 2, top + 54 + 22 * row, SMALL_TEXT, GREY if row else BLACK)


def sum_text(explanation: Explanation, baseline: float) -> str:
    """The sum as it is shown, correct to the last digit: atoms get the difference of the other two rounded numbers."""
    decimals, total = explanation.shown_decimals, baseline + float(explanation.contributions.sum())
    atoms = shown(round(total, decimals) - round(baseline, decimals), decimals)
    value = "prediction"
    if "log-odds" in explanation.meaning:
        value = f"log-odds {shown(total, decimals)}"
    elif abs(total - explanation.prediction) > LIMITED * abs(total):
        value = f"{shown(total, decimals)} before the limit"
    return f"{value} = baseline {shown(baseline, decimals)} (all atoms unknown) + atoms {atoms}"


def signed(explanation: Explanation, contribution: float) -> str:
    """A contribution with its sign, if it has any, and the decimals of its picture."""
    text = shown(contribution, explanation.shown_decimals)
    return text if explanation.baseline is None or text.startswith("-") else f"+{text}"


def fragments_text(explanation: Explanation) -> str:
    """The largest fragments, as many as fit on one line, those of one SMILES with their first atom; "" for none."""
    title = "Fragments: "
    try:
        fragments = explanation.fragments
    except InputError:
        return ""
    counts = Counter(fragment.smiles for fragment in fragments)
    numbered, texts = len(explanation.contributions) <= MOST_NUMBERED, []
    for fragment in fragments:
        which = f" at {min(fragment.atoms) + 1}" if numbered and counts[fragment.smiles] > 1 else ""
        value = f"{which} {signed(explanation, fragment.contribution)}"
        texts.append(truncated(fragment.smiles, LONGEST_TEXT - len(title + value + "; ...")) + value)
    lines = [title + "; ".join(texts[:count]) + "; ..." * (count < len(texts)) for count in range(1, len(texts) + 1)]
    return next(line for line in reversed(lines) if len(line) <= LONGEST_TEXT)


def write(canvas: rdMolDraw2D.MolDraw2D, text: str, x: float, y: float, size: float, colour: Colour) -> None:
    """Centred text at a place of the canvas."""
    canvas.SetOffset(0, 0)
    canvas.SetFontSize(size)
    canvas.SetColour(colour)
    canvas.DrawString(text, Point2D(x, y), 0, rawCoords=True)


def plot_cls_geometry(results: list[dict], picture: Path) -> None:
    """Draws the results of ``analyze_run`` for several runs: overlaid spectra, effective rank and uniformity."""
    counts = Counter(Path(result["run"]).name for result in results)
    names = [run.name if counts[run.name] == 1 else str(run) for run in (Path(result["run"]) for result in results)]
    norms = [result["norm"] for result in results]
    labels = [name if norm in name else f"{norm} ({name})" for norm, name in zip(norms, names, strict=True)]
    colors = [f"C{number}" for number in range(len(results))]
    figure = new_figure(12, 4)
    spectrum, rank, spread = figure.subplots(1, 3, width_ratios=(2, 1, 1))
    for result, label in zip(results, labels, strict=True):
        values = np.array(result["singular_values"])
        spectrum.semilogy(np.arange(1, len(values) + 1), values / values[0], label=label)
    spectrum.set(title="singular values of the CLS embeddings", xlabel="number", ylabel="share of the largest")
    spectrum.set_ylim(bottom=1e-4)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    measures = [(rank, "effective_rank", "higher: less collapse"), (spread, "uniformity", "lower: more even")]
    for axis, measure, meaning in measures:
        bars = axis.bar(range(len(results)), [result[measure] for result in results], color=colors)
        axis.bar_label(bars, fmt="%.3g", padding=2)
        axis.margins(y=0.1)
        axis.set_title(f"{measure.replace('_', ' ')}\n({meaning})")
        axis.set_xticks([])
    save_png(figure, picture)

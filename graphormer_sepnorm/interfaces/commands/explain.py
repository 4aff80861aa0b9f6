"""``graphormer-sepnorm explain``."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from graphormer_sepnorm.interfaces.commands.options import Device, Precision
from graphormer_sepnorm.interfaces.guard import in_first_process
from graphormer_sepnorm.system.signals import leaving_at_once


@in_first_process
def explain(
    model: Annotated[str, typer.Argument(help="Run folder, weights file, or name of shipped weights.")],
    molecules: Annotated[str, typer.Argument(help="One SMILES, or a table: CSV, .smi or SDF, also gzipped.")],
    out: Annotated[Path, typer.Option("--output", "-o", help="Picture (.svg or .png), or a folder.")],
    method: Annotated[
        str, typer.Option(help="gradients: what raises or lowers the prediction; attention: what the CLS token reads.")
    ] = "gradients",
    target: Annotated[str | None, typer.Option(help="Name of the target; by default the first.")] = None,
    smiles_column: Annotated[str | None, typer.Option(help="Column of a table; by default smiles.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="Of a table; by default found in its header.")] = None,
    device: Device = "auto",
    precision: Precision = "auto",
) -> None:
    """Draw which atoms a prediction rests on.

    A table gives a picture with a panel per molecule, or a folder with a picture per molecule; its rows that cannot be
    read are named and left out.

    Example: graphormer-sepnorm explain zinc-subset "CC(=O)Oc1ccccc1C(=O)O" -o aspirin.svg
    """
    with leaving_at_once():
        from graphormer_sepnorm.inference.explain_table import explain_table
        from graphormer_sepnorm.inference.pretrained import Graphormer
        from graphormer_sepnorm.runs.zoo import resolve_model
        from graphormer_sepnorm.system.device import choose, computing
        from graphormer_sepnorm.table_model.earlier import EarlierModel, load_earlier

    compute = choose(device, precision)
    place = resolve_model(model)
    loaded = Graphormer.from_pretrained(place).to(compute.device)
    with computing(compute):
        explanations, problems = explain_table(loaded, molecules, out, method, target, smiles_column, delimiter)
    for row, problem in sorted(problems.items()):
        print(f"row {row + 1} (counted from 1): {problem}", file=sys.stderr)
    beside = load_earlier(place)
    if isinstance(beside, EarlierModel) and beside.changes_networks:
        print("only the network is explained; predict blends it with a forest or calibrates it", file=sys.stderr)
    print(f"{out}: {len(explanations)} of {len(explanations) + len(problems)} molecules")
    print(json.dumps([{**vars(e), "contributions": e.contributions.tolist()} for e in explanations.values()]))

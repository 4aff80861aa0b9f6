from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from graphormer_sepnorm.interfaces.commands import shared
from graphormer_sepnorm.system.signals import leaving_at_once

MOST_DESCRIBED = 3  # molecules whose explanations are printed in words


def explain(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help=f"A {shared.MODEL}.", autocompletion=shared.predicting_names)
    ],
    molecules: Annotated[
        list[str], typer.Argument(metavar="INPUT...", help=f"SMILES, or one table: {shared.MOLECULE_TABLES}.")
    ],
    out: Annotated[
        Path | None, typer.Option("--output", "-o", help="Picture (.svg or .png), a folder of them, or a table (.csv).")
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="gradients: atom contributions to the prediction, of kernel and forest by masking atoms; "
            "attention: shares of the CLS token's attention."
        ),
    ] = "gradients",
    target: Annotated[str | None, typer.Option(help="Name of the target; by default the first.")] = None,
    smiles_column: shared.SmilesColumn = None,
    delimiter: shared.Delimiter = None,
    condition: shared.Conditions = None,
    device: shared.Device = "auto",
    precision: shared.Precision = "auto",
) -> None:
    """Draw the contributions of atoms and fragments to a prediction.

    All members of the model are explained. Without -o, explanations of SMILES are printed. Several molecules give a
    picture with a panel for each, or a folder with a picture for each; rows of a table that cannot be read are named
    and left out.

    Example: graphormer-sepnorm explain adme "CC(=O)Oc1ccccc1C(=O)O" -o aspirin.svg
    """
    with leaving_at_once():
        from graphormer_sepnorm.explain.explain_table import explain_table
        from graphormer_sepnorm.explain.pictures import fragments_text, sum_text
        from graphormer_sepnorm.output.column import shown_decimals
        from graphormer_sepnorm.system.device import choose, computing
        from graphormer_sepnorm.table_model.explain import explain_rows
        from graphormer_sepnorm.table_model.load import load_predicting_model

    with computing(choose(device, precision)):
        predictor = load_predicting_model([model]).under(shared.read_conditions(condition))
        shared.say_unfinished([model])
        decimals, asked = shown_decimals(predictor), predictor.asked_conditions
        explain = partial(explain_rows, predictor, method=method, target=target, decimals=decimals)
        explanations, problems = explain_table(explain, molecules, out, smiles_column, delimiter, asked)
    shared.tell(f"row {row + 1} (counted from 1): {problem}" for row, problem in sorted(problems.items()))
    count = len(explanations) + len(problems)
    for row, each in list(explanations.items())[:MOST_DESCRIBED]:
        name = f"{each.name or f'row {row + 1}'}: " if count > 1 else ""
        total = "" if each.baseline is None else sum_text(each, each.baseline)
        shared.tell([name + "; ".join(filter(None, (each.caption, total, fragments_text(each))))])
    if len(explanations) > MOST_DESCRIBED:
        shared.tell([f"and {len(explanations) - MOST_DESCRIBED:,} more"])
    if out is not None:
        shared.tell([f"{out}: {len(explanations):,} of {count:,} molecules"])
    shared.print_result([each.facts() for each in explanations.values()])

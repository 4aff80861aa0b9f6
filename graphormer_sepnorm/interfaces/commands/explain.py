"""``graphormer-sepnorm explain``."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphormer_sepnorm.interfaces.commands.options import (
    MOLECULE_TABLES,
    Conditions,
    Delimiter,
    Device,
    Precision,
    SmilesColumn,
    predicting_names,
    print_result,
    read_conditions,
    say_unfinished,
)
from graphormer_sepnorm.interfaces.guard import in_first_process
from graphormer_sepnorm.system.signals import leaving_at_once

if TYPE_CHECKING:
    from graphormer_sepnorm.explain.explanations import Explanation

MOST_DESCRIBED = 3  # molecules whose explanations are printed in words


@in_first_process
def explain(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="Run folder, weights file, or name of shipped weights.",
            autocompletion=predicting_names,
        ),
    ],
    molecules: Annotated[
        list[str], typer.Argument(metavar="INPUT...", help=f"SMILES, or one table: {MOLECULE_TABLES}.")
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
    smiles_column: SmilesColumn = None,
    delimiter: Delimiter = None,
    condition: Conditions = None,
    device: Device = "auto",
    precision: Precision = "auto",
) -> None:
    """Draw the contributions of atoms and fragments to a prediction.

    All members of the model are explained. Without -o, explanations of SMILES are printed. Several molecules give a
    picture with a panel for each, or a folder with a picture for each; rows of a table that cannot be read are named
    and left out.

    Example: graphormer-sepnorm explain adme "CC(=O)Oc1ccccc1C(=O)O" -o aspirin.svg
    """
    with leaving_at_once():
        from graphormer_sepnorm.explain.explain_table import explain_table
        from graphormer_sepnorm.output.column import shown_decimals
        from graphormer_sepnorm.system.device import choose, computing
        from graphormer_sepnorm.table_model.explain import explain_rows
        from graphormer_sepnorm.table_model.load import load_predicting_model

    with computing(choose(device, precision)):
        predictor = load_predicting_model([model]).under(read_conditions(condition))
        say_unfinished([model])
        decimals, asked = shown_decimals(predictor), predictor.asked_conditions
        explain = partial(explain_rows, predictor, method=method, target=target, decimals=decimals)
        explanations, problems = explain_table(explain, molecules, out, smiles_column, delimiter, asked)
    for row, problem in sorted(problems.items()):
        print(f"row {row + 1} (counted from 1): {problem}", file=sys.stderr)
    several = len(explanations) + len(problems) > 1
    for row, explanation in list(explanations.items())[:MOST_DESCRIBED]:
        name = f"{explanation.name or f'row {row + 1}'}: " if several else ""
        print(f"{name}{described(explanation)}", file=sys.stderr)
    if len(explanations) > MOST_DESCRIBED:
        print(f"and {len(explanations) - MOST_DESCRIBED:,} more", file=sys.stderr)
    if out is not None:
        print(f"{out}: {len(explanations):,} of {len(explanations) + len(problems):,} molecules", file=sys.stderr)
    print_result([explanation.facts() for explanation in explanations.values()])


def described(explanation: "Explanation") -> str:
    """The prediction, how contributions add up to it, and the largest ones of fragments, in one line."""
    from graphormer_sepnorm.explain.pictures import fragments_text, sum_text

    total = "" if explanation.baseline is None else sum_text(explanation, explanation.baseline)
    words = explanation.caption, total, fragments_text(explanation)
    return "; ".join(filter(None, words))

"""``graphormer-sepnorm pretrain``."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.commands import shared
from graphormer_sepnorm.system.signals import leaving_at_once


def pretrain(
    out: Annotated[Path, typer.Option(help="Run folder to write.")],
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE...", help="Tables with molecules: CSV, .smi, SDF, .gz.")
    ] = None,
    smiles: Annotated[list[str] | None, typer.Option(help="The same as FILE.")] = None,
    smiles_column: shared.SmilesColumn = None,
    size: Annotated[
        Literal["mini", "small", "base"], typer.Option(help="About 0.3, 0.7 or 3 million parameters.")
    ] = "small",
    objective: Annotated[
        str, typer.Option(help="Targets to learn: descriptors, fingerprints (their counts) or masked-atoms.")
    ] = "descriptors",
    teacher: Annotated[
        Path | None, typer.Option(help="Embeddings to learn in place of --objective: an .npz of the command embed.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the molecules; by default 6.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of initialization, order, dropout and split.")] = None,
    device: shared.Device = "auto",
    precision: shared.TrainingPrecision = "auto",
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the last completed epoch of --out.")] = False,
) -> None:
    """Pretrain a Graphormer on unlabelled molecules, to be fine-tuned with train --from OUT.

    The targets are RDKit descriptors, which are computed once and kept in the cache. Faster to compute are
    the counts of Morgan fingerprints (--objective fingerprints), and the counts of atoms of each type while a random
    15 % of the atoms are masked (--objective masked-atoms).

    With --teacher, the targets are another model's embeddings of the same tables, such as those of embed minimol.

    Example: graphormer-sepnorm pretrain library.csv --size base --out runs/pretrained
    """
    with leaving_at_once():
        from graphormer_sepnorm.system.device import choose, computing
        from graphormer_sepnorm.training.objectives import find_objective
        from graphormer_sepnorm.training.objectives.teacher import Teacher
        from graphormer_sepnorm.training.pretrain import SIZES, pretrain
        from graphormer_sepnorm.training.settings import in_precision, with_given

    tables = [*(files or ()), *(smiles or ())]
    if not tables:
        raise InputError("name tables with molecules: graphormer-sepnorm pretrain FILE --out OUT")
    train_config = in_precision(with_given(SIZES[size].train, {"epochs": epochs, "seed": seed}), precision)
    recipe = replace(SIZES[size], train=train_config)
    with computing(choose(device)):
        learnt = find_objective(objective) if teacher is None else Teacher(teacher)
        result = pretrain(tables, learnt, recipe, out, smiles_column, resume)
    if result["skipped"]:
        missing = "molecule that can be read" if teacher is None else f"embedding in {teacher}"
        shared.tell([f"{result['skipped']} rows were skipped: they have no {missing}"])
    shared.print_result(result, is_told=False)

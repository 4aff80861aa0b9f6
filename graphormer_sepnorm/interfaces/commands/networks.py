"""The commands on networks: ``pretrain``, ``distill``, ``embed`` and ``analyze``."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.commands import shared
from graphormer_sepnorm.interfaces.commands.shared import OUTPUT, argument, option
from graphormer_sepnorm.options import ReadOptions
from graphormer_sepnorm.system.signals import leaving_at_once

NETWORK = "Network: a run folder, a weights file, a name such as foundation, or minimol."
MEASURES = ("effective_rank", "uniformity", "isotropy")


def pretrain(
    out: Annotated[Path, option("Run folder to write.")],
    files: Annotated[list[str] | None, argument("FILE...", "Tables with molecules: CSV, .smi, SDF, .gz.")] = None,
    smiles: Annotated[list[str] | None, option("The same as FILE.")] = None,
    smiles_column: shared.SmilesColumn = None,
    size: Annotated[Literal["mini", "small", "base"], option("About 0.3, 0.7 or 3 million parameters.")] = "small",
    objective: Annotated[str, option("Targets: descriptors, fingerprints (counts) or masked-atoms.")] = "descriptors",
    teacher: Annotated[Path | None, option("Targets in place of --objective: an .npz of the command embed.")] = None,
    epochs: Annotated[int | None, option("Passes over the molecules; by default 6.")] = None,
    seed: Annotated[int | None, option("Seed of initialization, order, dropout and split.")] = None,
    device: shared.Device = "auto",
    precision: shared.TrainingPrecision = "auto",
    resume: Annotated[bool, option("Continue from the last completed epoch of --out.", "--resume")] = False,
) -> None:
    """Pretrain a Graphormer on unlabelled molecules, to be fine-tuned with train --from OUT.

    The targets are RDKit descriptors, which are computed once and kept in the cache. Faster to compute are counts of
    Morgan fingerprints, and of atoms of each type while a random 15 % of the atoms are masked. With --teacher, they are
    another model's embeddings of the same tables, such as those of embed minimol.

    Example: graphormer-sepnorm pretrain library.csv --size base --out runs/pretrained
    """
    with leaving_at_once():
        from graphormer_sepnorm.system.device import choose, computing
        from graphormer_sepnorm.training import objectives
        from graphormer_sepnorm.training.pretrain import SIZES, pretrain
        from graphormer_sepnorm.training.settings import in_precision, with_given

    tables = [*(files or ()), *(smiles or ())]
    if not tables:
        raise InputError("name tables with molecules: graphormer-sepnorm pretrain FILE --out OUT")
    train = in_precision(with_given(SIZES[size].train, {"epochs": epochs, "seed": seed}), precision)
    with computing(choose(device)):
        learnt = objectives.find_objective(objective) if teacher is None else objectives.teacher(teacher)
        result = pretrain(tables, learnt, replace(SIZES[size], train=train), out, smiles_column, resume)
    if result["skipped"]:
        missing = "molecule that can be read" if teacher is None else f"embedding in {teacher}"
        shared.tell([f"{result['skipped']} rows were skipped: they have no {missing}"])
    shared.print_result(result, is_told=False)


def distill(
    run: shared.Run,
    library: Annotated[str, argument("LIBRARY", "Table of molecules like those to predict.")],
    out: Annotated[Path, option("Folder for the student.")],
    epochs: Annotated[int, option("Passes over the molecules.", min=1)] = 12,
    smiles_column: shared.SmilesColumn = None,
    device: shared.Device = "auto",
) -> None:
    """Train a small network that imitates a model of your table, to predict libraries of millions with it.

    The student learns the predictions of the model for the molecules of LIBRARY and for the training molecules. Tens of
    thousands of molecules are best, analogues of those to predict. Its intervals are calibrated on the test rows of
    RUN, and both are scored on them. After an interruption, the same command continues.

    Example: graphormer-sepnorm distill runs/assay library.smi --out runs/student
    """
    with leaving_at_once():
        from graphormer_sepnorm.runs.folder import RunFolder
        from graphormer_sepnorm.runs.zoo import resolve_model
        from graphormer_sepnorm.system.device import choose, computing
        from graphormer_sepnorm.table_model.distill import distill as distill_model
        from graphormer_sepnorm.table_model.model import TableModel
        from graphormer_sepnorm.tables.formats import rows_of

    started, source = time.perf_counter(), RunFolder(resolve_model(run))
    if not source.stack.exists():
        raise InputError(f"{run} is not the run folder of one table model: name a run of train FILE")
    smiles = [row.smiles for row in rows_of(library, smiles_column)]
    with computing(choose(device)):
        result = distill_model(TableModel.load(source.path), source, smiles, out, epochs)
    shared.print_result({**result, "output": str(out), "seconds": round(time.perf_counter() - started, 1)})


def embed(
    model: Annotated[str, argument("MODEL", NETWORK, shared.model_names)],
    source: Annotated[str, argument("INPUT", f"A table: {shared.MOLECULE_TABLES}, or -.")],
    out: Annotated[Path, option("A file: .npz, .parquet, .csv, .tsv, .xlsx or .sdf.", *OUTPUT)],
    smiles_column: shared.SmilesColumn = None,
    delimiter: shared.Delimiter = None,
    sheet: Annotated[str | None, option("Sheet of an Excel INPUT.")] = None,
    strip_salts: shared.StripSalts = False,
    resume: Annotated[bool, option("Continue an interrupted run of the same command.", "--resume")] = False,
    device: shared.Device = "auto",
    precision: shared.Precision = "auto",
) -> None:
    """Write the embedding of the CLS token for every row of a table, with its number, SMILES and error.

    With minimol as the model, the embeddings of MiniMol, for pretrain --teacher; that needs the extra "teacher".

    Example: graphormer-sepnorm embed foundation molecules.csv -o embeddings.npz
    """
    with leaving_at_once():
        from graphormer_sepnorm.output.embed_table import embed_table, find_embedder
        from graphormer_sepnorm.predict.predictors import stripping_salts
        from graphormer_sepnorm.system.device import choose, computing

    started = time.perf_counter()
    with computing(choose(device, precision)):
        embedder = find_embedder(model)
        if strip_salts:
            stripping_salts(embedder)
        result = embed_table(embedder, source, out, ReadOptions(smiles_column, delimiter, sheet, resume=resume))
    shared.report_rows(result, time.perf_counter() - started)


def analyze(
    models: Annotated[list[str], argument("MODEL...", "Networks to compare: run folders or names.")],
    out: Annotated[Path, option("Picture to write, .png.", *OUTPUT)],
    split: shared.Split = "test",
    root: shared.Root = None,
    device: shared.Device = "auto",
    precision: shared.Precision = "auto",
) -> None:
    """Measure the geometry of the CLS embeddings of a split, and compare several models.

    The effective rank (Roy and Vetterli, 2007) is the number of directions that the embeddings use; low is collapse.
    Uniformity (Wang and Isola, 2020) is lower the more evenly they lie on a sphere. Isotropy (Mu and Viswanath, 2018)
    is 1 if no direction is preferred. The JSON in a pipe or file also has the singular values.

    Example: graphormer-sepnorm analyze runs/sepnorm runs/sharenorm -o cls.png
    """
    if out.suffix.lower() != ".png":
        raise InputError(f"the picture is a PNG, so its name ends in .png, not {out.suffix or out.name!r}")
    with leaving_at_once():
        from graphormer_sepnorm.explain.analyze import analyze_run
        from graphormer_sepnorm.explain.pictures import plot_cls_geometry
        from graphormer_sepnorm.runs.numbers import counted, significant
        from graphormer_sepnorm.runs.zoo import resolve_model
        from graphormer_sepnorm.system.device import choose, computing

    results: list[dict] = []
    with computing(choose(device, precision)):
        for model in models:
            results.append(analyze_run(resolve_model(model), split, root))
            if (first := results[0]["dataset"]) != (last := results[-1]["dataset"]):
                difference = f"{models[0]} is a model of {first} and {model} of {last}"
                raise InputError(f"{difference}: compare models of one dataset")
    plot_cls_geometry(results, out)
    for model, result in zip(models, results, strict=True):
        measures = (f"{name.replace('_', ' ')} {significant(result[name])}" for name in MEASURES)
        shared.tell([f"{model} ({result['norm']}): {', '.join(measures)}"])
    used = f"{counted(len(results), 'model')}, {counted(results[0]['molecules'], 'molecule')} of the {split} split"
    shared.tell([f"{out}: {used}"])
    shared.print_result(results)

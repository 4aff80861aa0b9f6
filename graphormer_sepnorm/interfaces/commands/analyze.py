"""``graphormer-sepnorm analyze``."""

from pathlib import Path
from typing import Annotated

import typer

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.commands import shared
from graphormer_sepnorm.system.signals import leaving_at_once

MEASURES = ("effective_rank", "uniformity", "isotropy")


def analyze(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help="Networks to compare: run folders or names.")],
    out: Annotated[Path, typer.Option("--output", "-o", help="Picture to write, .png.")],
    split: shared.Split = "test",
    root: shared.Root = None,
    device: shared.Device = "auto",
    precision: shared.Precision = "auto",
) -> None:
    """Measure the geometry of the CLS embeddings of a split, and compare several models.

    The effective rank (Roy and Vetterli, 2007) is the number of directions that the embeddings use; low is collapse.
    Uniformity (Wang and Isola, 2020) is lower the more evenly they lie on a sphere. Isotropy (Mu and Viswanath, 2018)
    is the smallest over the largest sum of exp(c . x) over all embeddings x, for principal directions c; it is 1 if no
    direction is preferred. The JSON in a pipe or file also has the singular values.

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
                raise InputError(
                    f"{models[0]} is a model of {first} and {model} of {last}: compare models of one dataset"
                )
    plot_cls_geometry(results, out)
    for model, result in zip(models, results, strict=True):
        measures = (f"{name.replace('_', ' ')} {significant(result[name])}" for name in MEASURES)
        shared.tell([f"{model} ({result['norm']}): {', '.join(measures)}"])
    used = f"{counted(len(results), 'model')}, {counted(results[0]['molecules'], 'molecule')} of the {split} split"
    shared.tell([f"{out}: {used}"])
    shared.print_result(results)

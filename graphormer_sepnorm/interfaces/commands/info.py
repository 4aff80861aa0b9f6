"""``graphormer-sepnorm info``."""

import math
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.commands.options import model_names, print_result
from graphormer_sepnorm.interfaces.guard import in_first_process
from graphormer_sepnorm.system.signals import leaving_at_once


@in_first_process
def info(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL", help="Run folder, weights file, or name of shipped weights.", autocompletion=model_names
        ),
    ] = None,
    cache: Annotated[bool, typer.Option("--cache", help="List the contents of the cache and its limit.")] = False,
) -> None:
    """Describe a model: architecture, training data, scores, vocabulary, licence.

    With --cache: list the cache folder, its entries (latest last) and its size limit, which
    GRAPHORMER_SEPNORM_CACHE_GB sets. Beyond the limit, the entries unused for longest are removed.

    Example: graphormer-sepnorm info adme
    """
    if (model is None) != cache:
        raise InputError("name a model, or give --cache" + (", and not both" if cache else ""))
    if model is None:
        print_cache()
        return
    with leaving_at_once():
        from graphormer_sepnorm.runs.info import as_text
        from graphormer_sepnorm.runs.zoo import (
            card_endpoints,
            card_facts,
            resolve_model,
            shipped_models,
            shipped_tables,
        )
        from graphormer_sepnorm.table_model.info import describe_any

    place = resolve_model(model)
    facts = describe_any(place) | card_facts(place)
    if endpoints := card_endpoints(place):
        facts["endpoints"] = endpoints
    is_shipped = model in shipped_models() | shipped_tables() and not Path(model).exists()
    facts["model"] = facts["model"] if is_shipped or Path(model).is_dir() else model
    described = {**facts, "model": f"{model}, shipped with the package" if is_shipped else facts["model"]}
    print(as_text(described), file=sys.stderr)
    print_result(facts)


def print_cache() -> None:
    """Prints the entries of the cache, one per line, and their total as a sentence and as JSON."""
    from graphormer_sepnorm.system.cache import entries, limit_bytes
    from graphormer_sepnorm.system.files import cache_root

    stores = entries()
    for entry in stores:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
        print(f"{used} {entry.bytes / 1e6:12,.1f} MB  {entry.path.relative_to(cache_root())}", file=sys.stderr)
    total = sum(entry.bytes for entry in stores)
    limit = limit_bytes()
    shown_limit = int(limit) if math.isfinite(limit) else None
    of_limit = "" if shown_limit is None else f" of at most {limit / 1e9:g} GB"
    print(f"{cache_root()}: {total / 1e6:,.1f} MB{of_limit}", file=sys.stderr)
    print_result({"cache": str(cache_root()), "entries": len(stores), "bytes": total, "limit": shown_limit})

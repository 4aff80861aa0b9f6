import math
import time
from pathlib import Path
from typing import Annotated

import typer

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.commands import shared
from graphormer_sepnorm.system.signals import leaving_at_once


def info(
    model: Annotated[
        str | None, typer.Argument(metavar="MODEL", help=f"A {shared.MODEL}.", autocompletion=shared.model_names)
    ] = None,
    cache: Annotated[bool, typer.Option("--cache", help="List the contents of the cache and its limit.")] = False,
) -> None:
    """Describe a model: what it predicts, training data, scores, licence.

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
        from graphormer_sepnorm.runs import zoo
        from graphormer_sepnorm.runs.info import as_text
        from graphormer_sepnorm.table_model.evaluate import describe_any

    place = zoo.resolve_model(model)
    facts = describe_any(place) | zoo.card_facts(place)
    if endpoints := zoo.card_endpoints(place):
        facts["endpoints"] = endpoints
    is_shipped = model in zoo.shipped_models() | zoo.shipped_tables() and not Path(model).exists()
    facts["model"] = facts["model"] if is_shipped or Path(model).is_dir() else model
    shared.tell([as_text(facts | {"model": f"{model}, shipped with the package"} if is_shipped else facts)])
    shared.print_result(facts)


def print_cache() -> None:
    from graphormer_sepnorm.system.cache import entries, limit_bytes
    from graphormer_sepnorm.system.files import cache_root

    stores, limit = entries(), limit_bytes()
    for entry in stores:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
        shared.tell([f"{used} {entry.bytes / 1e6:12,.1f} MB  {entry.path.relative_to(cache_root())}"])
    total = sum(entry.bytes for entry in stores)
    of_limit = f" of at most {limit / 1e9:g} GB" if math.isfinite(limit) else ""
    shared.tell([f"{cache_root()}: {total / 1e6:,.1f} MB{of_limit}"])
    facts = {"cache": str(cache_root()), "entries": len(stores), "bytes": total}
    shared.print_result({**facts, "limit": int(limit) if math.isfinite(limit) else None})

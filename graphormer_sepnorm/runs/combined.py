"""Run folders that predict with several parts, which a user took for one network."""

from pathlib import Path

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.arrays import stored_facts
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.system.files import cache_root

NO_EMBEDDING = "it has no single embedding"


def check_one_network(path: Path, name: str, predict: str = "", why: str = NO_EMBEDDING) -> None:
    """Raises InputError for a run folder that predicts with more than one network."""
    run = RunFolder(path)
    members = [member.path for member in run.members()]
    if not members and not run.stack.exists():
        return
    # the folder of a shipped model has another name in the next version
    others = [] if path.is_relative_to(cache_root()) else members
    networks = " or ".join([*map(str, others[:1]), "foundation"])
    otherwise = f"predict with {predict}, or " if predict else ""
    raise InputError(
        f"{name} combines {described(run, len(members))}, so {why}: {otherwise}choose one network, such as {networks}"
    )


def check_has_weights(path: Path, name: str, predict: str = "", why: str = NO_EMBEDDING) -> None:
    """As ``check_one_network``, unless the folder has the weights of a network of its own."""
    if not RunFolder(path).weights.exists():
        check_one_network(path, name, predict, why)


def described(run: RunFolder, networks: int) -> str:
    """The predicting parts of a run folder, in words."""
    names = stored_facts(run.stack).get("members", []) if run.stack.exists() else ["networks"]
    parts = [f"{networks} network{'s' if networks > 1 else ''}"] if networks and "networks" in names else []
    return ", ".join([*parts, *(f"a {name}" for name in names if name != "networks")])

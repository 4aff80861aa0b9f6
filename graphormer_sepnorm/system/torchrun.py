"""Rank of this process among those started by torchrun; a single process is rank 0 of 1."""

import os


def from_torchrun(variable: str, default: int) -> int:
    return int(os.environ[variable]) if "TORCHELASTIC_RUN_ID" in os.environ else default


def rank() -> int:
    return from_torchrun("RANK", 0)


def num_processes() -> int:
    return from_torchrun("WORLD_SIZE", 1)


def local_rank() -> int:
    return from_torchrun("LOCAL_RANK", 0)

"""Pages for tests: with models that only pretend, or tiny ones, on a server in a thread."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import uvicorn

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.web.app import make_app
from graphormer_sepnorm.interfaces.web.job_queue import Desk, Limits, Shelf
from graphormer_sepnorm.interfaces.web.schemas import Answer, Atom, Atoms, Facts, Prediction, Record, Records
from graphormer_sepnorm.interfaces.web.worker import Worker


class Pretended:
    """Models that count the characters of a SMILES; "X" cannot be read, "SLEEP" takes a minute and "CRASH" crashes."""

    def facts(self) -> Facts:
        return Facts(
            model="pretended",
            targets=["length"],
            is_probability=False,
            models=1,
            is_combined=False,
            confidence=0.9,
            knows_domain=True,
            about={"architecture": "none"},
        )

    def read(self, path: Path, shown: str, most_rows: int) -> Records:
        lines = path.read_text().splitlines()[1:]
        if len(lines) > most_rows:
            raise InputError(f"{shown} has more than {most_rows} molecules")
        return Records(["smiles"], [Record([line], line.strip('"'), "") for line in lines])

    def predict(self, smiles: list[str]) -> list[Answer]:
        return [self.predict_one(text) for text in smiles]

    def predict_one(self, text: str) -> Answer:
        if text == "SLEEP":
            time.sleep(60)
        if text == "CRASH":
            os._exit(1)
        if text == "BUG":
            raise KeyError(text)
        if text == "X":
            return Answer(error="X cannot be read")
        value = float(len(text))
        one = Prediction(value=value, low=value - 1, high=value + 1)
        return Answer(
            predictions={"length": one},
            similarity=0.5,
            nearest="C",
            warning="Xe was never seen" if "Xe" in text else "",
        )

    def structure(self, smiles: str) -> str:
        return f"<svg><!-- {len(smiles)} --></svg>"

    def atoms(self, smiles: str, target: str) -> Atoms:
        if target != "length":
            raise InputError(f"the model has no target {target!r}")
        atoms = [Atom(symbol=letter, contribution=1) for letter in smiles]
        return Atoms(caption="length", meaning="ones", baseline=0, atoms=atoms, picture="<svg></svg>")


class InThisProcess:
    """A worker without a process."""

    def __init__(self, models: object):
        self.models = models

    def ask(self, seconds: float, question: str, *arguments: object) -> object:
        return getattr(self.models, question)(*arguments)

    def interrupt(self) -> None: ...

    def end(self) -> None: ...


def tiny_models(folder: Path) -> object:
    """Two tiny models with intervals and a domain, as their process has them."""
    import numpy as np
    import torch

    from graphormer_sepnorm.datasets.benchmarks import sample_table
    from graphormer_sepnorm.inference.predict import Predictor, load_predictor
    from graphormer_sepnorm.inference.pretrained import Graphormer
    from graphormer_sepnorm.inference.trust import Trust, fit_domain, fit_intervals
    from graphormer_sepnorm.interfaces.web.models import Models
    from graphormer_sepnorm.system.device import Compute
    from tests.tiny import save_tiny

    torch.set_num_threads(1)
    paths = [save_tiny(folder / f"model-{seed}", featurizer="mol", seed=seed) for seed in range(2)]
    errors, zeros = np.linspace(0.1, 2, 99)[:, None], np.zeros((99, 1))
    trust = Trust(fit_domain(sample_table().smiles[:200].tolist()), fit_intervals(errors, zeros, zeros + 0.1))
    predictor = Predictor(load_predictor([str(folder)]).models, trust=trust)
    explained = Graphormer.from_pretrained(paths[0])
    return Models(predictor, explained, 0.9, Compute(torch.device("cpu")), "tiny", {"architecture": "tiny"})


def uncompiled_models(folder: Path) -> object:
    """As ``tiny_models``, without waiting for kernels to be compiled; for a process of its own."""
    from graphormer_sepnorm.kernels.switch import use_kernels

    use_kernels("off")
    return tiny_models(folder)


@contextlib.contextmanager
def open_desk(worker: Worker | InThisProcess, folder: Path, limits: Limits | None = None) -> Iterator[Desk]:
    desk = Desk(worker, limits or Limits(), Shelf(folder))
    try:
        yield desk
    finally:
        desk.close()


@contextlib.contextmanager
def served(desk: Desk, token: str | None = None) -> Iterator[str]:
    """The address of a page on this machine."""
    server = uvicorn.Server(uvicorn.Config(make_app(desk, token, ("127.0.0.1",)), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()

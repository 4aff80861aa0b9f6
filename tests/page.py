"""Pages for tests: with models that only pretend, or tiny ones, on a server in a thread."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import uvicorn

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.web import schemas
from graphormer_sepnorm.interfaces.web.app import PunctualProtocol, make_app
from graphormer_sepnorm.interfaces.web.job_queue import JobLimits, JobQueue, Worker
from graphormer_sepnorm.interfaces.web.jobs import ResultStore
from graphormer_sepnorm.interfaces.web.reading import look_at_table
from graphormer_sepnorm.interfaces.web.trainings import Trainings

COLUMNS = {f"length{end}": ["predictions", "length", end.strip("_") or "value"] for end in ("", "_low", "_high")}
COLUMNS |= {name: [name] for name in ("nearest", "similarity", "warning", "error")}
ADDED = [schemas.ColumnFacts(name=name, place=place) for name, place in COLUMNS.items()]
# A program in place of the command train; the table says what it does: "train", "refuse", "crash", "die" or "sleep".
PRETENDED = """
import os, pathlib, sys, time
what, out = pathlib.Path(sys.argv[2]).read_text().replace(",", " ").split()[-1], pathlib.Path(sys.argv[-1])
out.mkdir()
(out / "report.html").write_text("<p>report</p>")
print("learning", file=sys.stderr)
print("\\r@@kernel | machine|40|00:10", file=sys.stderr, flush=True)
if what == "refuse":
    sys.exit("error: nothing to learn")
if what == "die":
    os.kill(os.getpid(), 9)
if what == "sleep":
    time.sleep(600)
(out / "stack.safetensors").touch()
sys.exit(what == "crash")
"""


class PretendedService:
    """Counts the characters of a SMILES; "X" cannot be read, "SLEEP" takes a minute and "CRASH" crashes."""

    look = staticmethod(look_at_table)

    def process(self) -> int:
        return os.getpid()

    def facts(self) -> schemas.ModelFacts:
        return schemas.ModelFacts(
            model="pretended",
            targets=["length"],
            is_probability=False,
            models=1,
            confidence=0.9,
            calibration_molecules=99,
            knows_domain=True,
            decimals={"length": 1},
            about={"architecture": "none"},
        )

    def read(
        self, path: Path, shown: str, most_rows: int, options: schemas.Options, smiles_column: str, sheet: str = ""
    ) -> schemas.TableRows:
        header, *lines = path.read_text().splitlines()
        if len(lines) > most_rows:
            raise InputError(f"{shown} has more than {most_rows} molecules")
        columns = header.strip('"').split(",")
        column = smiles_column or ("smiles" if "smiles" in columns else "")
        rows = [line.strip('"').split(",") if len(columns) > 1 else [line.strip('"')] for line in lines]
        smiles = [row[columns.index(column)] if column else "" for row in rows]
        found = [schemas.TableRow(fields, text, "") for fields, text in zip(rows, smiles, strict=True)]
        problem = "" if column else f"choose the column of {shown}"
        return schemas.TableRows(columns, found, column, ADDED, problem, about=[("model", "pretended")])

    def predict(self, rows: list[schemas.TableRow], options: schemas.Options) -> list[schemas.MoleculePrediction]:
        return [self.predict_one(row.smiles) for row in rows]

    def predict_one(self, text: str) -> schemas.MoleculePrediction:
        if text == "SLEEP":
            time.sleep(60)
        if text == "CRASH":
            os._exit(1)
        if text == "BUG":
            raise KeyError(text)
        if text == "X":
            return schemas.MoleculePrediction(error="X cannot be read")
        value = float(len(text))
        one = schemas.TargetPrediction(value=value, low=value - 1, high=value + 1)
        warning = " ".join(["No training molecule contains Xe."] * text.count("Xe"))
        return schemas.MoleculePrediction(predictions={"length": one}, similarity=0.5, nearest="C", warning=warning)

    def structure(self, smiles: str) -> str:
        return f"<svg><!-- {len(smiles)} --></svg>"

    def atoms(self, smiles: str, target: str, conditions: tuple[str, ...] = ()) -> schemas.AtomContributions:
        if target != "length":
            raise InputError(f"the model has no target {target!r}")
        atoms = [schemas.Atom(symbol=letter, contribution=1) for letter in smiles]
        return schemas.AtomContributions(
            caption=" ".join(["length", *conditions]),
            meaning="ones",
            baseline=0,
            start="nothing",
            decimals=2,
            atoms=atoms,
            fragments=[],
            picture="<svg></svg>",
        )


class InThisProcess:
    """A worker without a process."""

    identity = "one"

    def __init__(self, models: object):
        self.models = models
        self.asked = set()
        self.executor = ThreadPoolExecutor(1)

    def schedule(self, seconds: float, question: str, *arguments: object) -> Future:
        asked = self.executor.submit(getattr(self.models, question) if question else lambda: "one", *arguments)
        self.asked.add(asked)
        asked.add_done_callback(self.asked.discard)
        return asked

    def ask(self, *asked: object) -> object:
        return self.schedule(*asked).result()

    def interrupt(self) -> None: ...

    def end(self) -> None:
        self.executor.shutdown(cancel_futures=True)


def tiny_service(folder: Path) -> object:
    """Two tiny models with intervals and a domain, as their process has them."""
    import numpy as np
    import torch

    from graphormer_sepnorm.datasets.benchmarks import sample_table
    from graphormer_sepnorm.interfaces.web.service import PredictionService
    from graphormer_sepnorm.predict.domain import fit_domain
    from graphormer_sepnorm.predict.intervals import fit_intervals
    from graphormer_sepnorm.predict.predictors import load_networks
    from graphormer_sepnorm.predict.trust import Trust
    from graphormer_sepnorm.system.device import Compute
    from tests.tiny import Trusting, save_tiny

    torch.set_num_threads(1)
    folders = [str(save_tiny(folder / f"model-{seed}", featurizer="mol", seed=seed)) for seed in range(2)]
    errors, zeros = np.linspace(0.1, 2, 99)[:, None], np.zeros((99, 1))
    trust = Trust(fit_domain(sample_table().smiles[:200].tolist()), fit_intervals(errors, zeros, zeros + 0.1))
    predictor = Trusting(load_networks(folders), trust=trust)
    return PredictionService(predictor, 0.9, Compute(torch.device("cpu")), "tiny", {"architecture": "tiny"})


def uncompiled_service(folder: Path) -> object:
    """As ``tiny_service``, without waiting for kernels to be compiled; for a process of its own."""
    from graphormer_sepnorm.kernels.switch import use_kernels

    use_kernels("off")
    return tiny_service(folder)


@contextlib.contextmanager
def open_queue(worker: Worker | InThisProcess, folder: Path, limits: JobLimits | None = None) -> Iterator[JobQueue]:
    queue = JobQueue(lambda models: worker, limits or JobLimits(), ResultStore(folder))
    try:
        yield queue
    finally:
        queue.close()


@contextlib.contextmanager
def served(queue: JobQueue, token: str = "", trainings: Trainings | None = None) -> Iterator[str]:
    """The address of a page on this machine."""
    app = make_app(queue, token, ("127.0.0.1",), trainings)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", http=PunctualProtocol))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()

"""Computes partitions with Dask: workers here or on a cluster, each with one copy of the models."""

import contextlib
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import partial
from multiprocessing import resource_tracker

import dask
from distributed import Client, LocalCluster, WorkerPlugin, as_completed, get_worker
from distributed.utils import silence_logging_cmgr
from distributed.worker import Worker
from tqdm import tqdm

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.library.part_writer import Assignment, PartOptions, Report, write_part
from graphormer_sepnorm.predict.predictors import PredictingModel
from graphormer_sepnorm.system.device import choose
from graphormer_sepnorm.version import __version__

SECONDS_TO_CONNECT = 20
GROUP = "partition"  # Dask queues tasks for free workers only if many belong to the same group
LOCAL = {
    # Workers get one partition at a time, so that a partition that kills workers is identified.
    "distributed.scheduler.worker-saturation": 1.0,
    # With Dask's default, the memory of every large tensor would be returned and requested again: half as fast.
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None,
}


@dataclass(eq=False)
class Models(WorkerPlugin):
    """The models of a job, which Dask sends once to each worker, also to those that join later."""

    predictor: PredictingModel
    options: PartOptions
    device: str
    name: str
    version: str = __version__

    def setup(self, worker: Worker) -> None:
        """Moves the models to the worker's device; raises InputError if the worker has another version or setup."""
        if self.version != __version__:
            raise InputError(f"the worker {worker.address} has version {__version__}: install {self.version} there")
        if worker.state.nthreads != 1:
            have = f"the worker {worker.address} has {worker.state.nthreads} threads"
            raise InputError(f"{have}: start workers with --nthreads 1, one per core")
        self.compute = choose(self.device, self.options.precision)
        self.predictor = self.predictor.to(self.compute.device)


def write_in_worker(name: str, assignment: Assignment) -> Report:
    models = get_worker().plugins[name]
    return write_part(models.predictor, models.compute, models.options, assignment)


@contextlib.contextmanager
def connected(scheduler: str | None, workers: int) -> Iterator[Client]:
    """A client of a scheduler, or of this many single-threaded processes on this machine, which end with it."""
    if scheduler is not None:
        try:
            client = Client(scheduler, timeout=SECONDS_TO_CONNECT)
        except (OSError, ValueError) as error:
            raise InputError(f"no Dask scheduler answers at {scheduler}: {error}") from None
        with silence_logging_cmgr(logging.CRITICAL), client:  # a lost scheduler is reported here
            yield client
        return
    keep_tracker()
    with dask.config.set(LOCAL):
        try:  # lost workers and failed partitions are reported here
            silent = {"dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}
            cluster = LocalCluster(n_workers=workers, threads_per_worker=1, **silent)
        except RuntimeError as error:
            why = f"a worker process did not start, perhaps for lack of memory ({error})"
            raise InputError(f"{why}: run the same command again, with fewer --workers") from None
        try:
            with Client(cluster) as client:
                yield client
        finally:
            keep_tracker()
            with contextlib.suppress(TimeoutError):  # a process that does not end in time is ended with this one
                cluster.close()


def keep_tracker() -> None:
    """Starts Python's resource tracker, again if it was killed, without its tracebacks about unknown semaphores."""
    error, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        with warnings.catch_warnings(action="ignore"):
            resource_tracker.ensure_running()
    finally:
        os.dup2(error, 2)
        os.close(error)
        os.close(nowhere)


def describe(client: Client) -> str:
    """Number of processes, memory limit of each, and address of the page that shows their progress."""
    limits = [worker["memory_limit"] for worker in client.scheduler_info(n_workers=-1)["workers"].values()]
    processes = "1 process" if len(limits) == 1 else f"{len(limits)} processes"
    bound = f" with at most {min(limits) / 2**30:.1f} GiB each" if limits and min(limits) else ""
    return f"computing in {processes}{bound}; progress at {client.dashboard_link}"


def compute_parts(
    client: Client, models: Models, assignments: list[Assignment]
) -> Iterator[tuple[Assignment, Report | BaseException]]:
    """Writes parts on the workers; yields each assignment with its report or its error as they finish."""
    names = {(GROUP, assignment.part): assignment.source for assignment in assignments}

    def name_lost_worker(event: tuple[float, dict]) -> None:
        message = event[1]
        if message["action"] == "remove-worker" and not message["expected"]:
            sources = ", ".join(names[key] for key in message["processing-tasks"] if key in names)
            tqdm.write(f"lost the worker {message['worker']}; to be computed again: {sources or 'nothing'}", sys.stderr)

    with naming_lost_scheduler(client):
        client.register_plugin(models, name=models.name)
        client.subscribe_topic("all", name_lost_worker)
    called = client.map(partial(write_in_worker, models.name), assignments, key=list(names), retries=2)
    futures = dict(zip(called, assignments, strict=True))
    try:
        for future in as_completed(list(futures)):
            with naming_lost_scheduler(client):
                outcome = future.exception() or future.result()
            keep_tracker()
            yield futures.pop(future), outcome
            future.release()
    finally:
        if client.status == "running":
            with contextlib.suppress(CancelledError, OSError):
                client.cancel(list(futures))
                client.unsubscribe_topic("all")
                client.unregister_worker_plugin(models.name)


@contextlib.contextmanager
def naming_lost_scheduler(client: Client) -> Iterator[None]:
    """Within it, errors of Dask about an unreachable scheduler are InputError."""
    try:
        yield
    except (CancelledError, OSError):
        raise InputError(f"the connection to the scheduler {client.scheduler.address} is lost") from None

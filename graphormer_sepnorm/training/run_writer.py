"""Writes the run folder during training, and prints a line per epoch to standard error."""

import contextlib
import copy
import sys
import time
from collections.abc import Generator, Iterator
from dataclasses import asdict, dataclass, field

from torch import Tensor

from graphormer_sepnorm.config import Config
from graphormer_sepnorm.predict.forward import on_gpu
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.plots import plot_curves
from graphormer_sepnorm.system import distributed
from graphormer_sepnorm.tasks import METRICS
from graphormer_sepnorm.training import resume
from graphormer_sepnorm.training.trainer import Epoch, Trainer

SECONDS_BETWEEN_SAVES = 60.0  # for GPUs, where an epoch may take a second

Content = tuple[dict[str, Tensor], dict]


@dataclass(frozen=True)
class Unsaved:
    """Results of the epochs since the last write."""

    lines: list[dict[str, float]]  # for the metrics file
    best: Content | None  # None if the best epoch is an earlier one
    state: Content  # to continue from


@dataclass
class RunWriter:
    """Writes after every epoch, on a GPU less often; a killed run continues after the last line of its metrics."""

    trainer: Trainer
    run: RunFolder
    verbose: bool = True
    label: str = ""  # prefix of the line of each epoch
    unsaved: Unsaved | None = field(default=None, init=False)
    saved_at: float | None = field(default=None, init=False)

    def resume(self) -> None:
        resume.resume(self.trainer, self.run)

    def train(self) -> dict:
        """Trains from the current to the last epoch; returns the facts of the best checkpoint."""
        with contextlib.closing(self.epochs()) as epochs:
            for _ in epochs:
                pass
        if distributed.rank() == 0 and (lines := self.run.read_metrics()):
            plot_curves(lines, self.run.curves, METRICS[self.trainer.config.task.metric].title)
        distributed.wait_for_all()
        progress = self.trainer.progress
        return {"epoch": progress.best_epoch, "val_metric": progress.best_metric}

    def epochs(self) -> Generator[Epoch, None, None]:
        """Yields each epoch of the trainer after recording it; all are written when this ends or is closed."""
        if distributed.rank() == 0:
            self.run.begin(self.trainer.config)
        try:
            for epoch in self.trainer.epochs():
                if distributed.rank() == 0:
                    self.record(epoch)
                    if self.verbose:
                        print(f"{self.label}{words(epoch, self.trainer.config)}", file=sys.stderr)
                yield epoch
        finally:
            if self.unsaved is not None:
                self.write(self.unsaved)

    def record(self, epoch: Epoch) -> None:
        """Writes the results of an epoch, or keeps them to write them with later ones."""
        trainer, before = self.trainer, self.unsaved
        best = None if before is None else before.best
        if trainer.progress.best_epoch == epoch.epoch:
            best = trainer.evaluated.state_dict(), {"epoch": epoch.epoch, "val_metric": epoch.val_metric}
        lines = [*([] if before is None else before.lines), asdict(epoch)]
        unsaved = Unsaved(lines, best, resume.state_of(trainer))
        saved_at = self.saved_at if on_gpu(trainer.model) else None  # on the CPU after every epoch
        if saved_at is None or time.monotonic() - saved_at > SECONDS_BETWEEN_SAVES:
            self.write(unsaved)
        else:
            self.unsaved = copy.deepcopy(unsaved)  # further training changes the tensors

    def write(self, unsaved: Unsaved) -> None:
        """Writes the results of epochs; the state is written last, after the files that it refers to."""
        config = self.trainer.config
        if unsaved.best is not None:
            tensors, facts = unsaved.best
            checkpoint.save_tensors(self.run.weights, tensors, config, facts)
        self.run.append_metrics(unsaved.lines)
        tensors, facts = unsaved.state
        checkpoint.save_tensors(self.run.state, tensors, config, facts)
        self.unsaved, self.saved_at = None, time.monotonic()


def words(epoch: Epoch, config: Config) -> str:
    metric = METRICS[config.task.metric].title
    scaled = " (scaled)" if config.task.std else ""  # in standard deviations of the labels, other than the metric
    return (
        f"epoch {epoch.epoch}/{config.train.epochs}: training loss{scaled} {epoch.train_loss:.4f}, "
        f"validation {metric} {epoch.val_metric:.4f}, {epoch.molecules_per_second:.0f} molecules/s"
    )


@contextlib.contextmanager
def training_alone(run: RunFolder, resume: bool) -> Iterator[None]:
    """No other run can train in the folder; with several processes, the first one holds the lock."""
    if distributed.rank() != 0:
        yield
        return
    with run.locked():
        run.check_free(resume)
        yield

"""What a training leaves behind: the run folder, and a line per epoch for people."""

import contextlib
import time
from collections.abc import Generator, Iterator
from dataclasses import asdict, dataclass, field

from torch import Tensor

from graphormer_sepnorm.config import Config
from graphormer_sepnorm.inference.forward import on_gpu
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.plots import plot_curves
from graphormer_sepnorm.system import distributed
from graphormer_sepnorm.training import resume
from graphormer_sepnorm.training.trainer import Epoch, Trainer

SECONDS_BETWEEN_SAVES = 60.0  # on a GPU, where an epoch may take a second

Content = tuple[dict[str, Tensor], dict]


@dataclass(frozen=True)
class Unsaved:
    """What epochs gave since the last writing.

    Attributes:
        lines: of the metrics.
        best: tensors and facts of the best epoch; None: it is an earlier one.
        state: tensors and facts to go on from after the last of the epochs.
    """

    lines: list[dict[str, float]]
    best: Content | None
    state: Content

    def kept(self) -> "Unsaved":
        """The same, unchanged by further training."""
        return Unsaved(self.lines, None if self.best is None else copied(self.best), copied(self.state))


def copied(content: Content) -> Content:
    tensors, facts = content
    return {name: tensor.detach().clone() for name, tensor in tensors.items()}, facts


@dataclass
class RunWriter:
    """Writes what a trainer gives into a run folder; of several processes, the first does.

    After every epoch; on a GPU after the first, then at most every ``SECONDS_BETWEEN_SAVES``, and when training ends or
    is interrupted. What is written together belongs together: a killed run goes on after the last line of its metrics.

    Attributes:
        trainer: at the beginning, or brought to where the run in the folder stands by ``resume``.
        run: the folder.
        verbose: whether to print a line per epoch.
        label: before each of these lines.
    """

    trainer: Trainer
    run: RunFolder
    verbose: bool = True
    label: str = ""
    unsaved: Unsaved | None = field(default=None, init=False)
    saved_at: float | None = field(default=None, init=False)

    def resume(self) -> None:
        """Goes back to the last saved epoch of the folder; raises InputError as ``resume.resume``."""
        resume.resume(self.trainer, self.run)

    def train(self) -> dict:
        """Trains from where the run stands to the last epoch; returns the facts of the best checkpoint."""
        with contextlib.closing(self.epochs()) as epochs:
            for _ in epochs:
                pass
        if distributed.rank() == 0:
            plot_curves(self.run.read_metrics(), self.run.curves, self.trainer.config.task.metric)
        distributed.wait_for_all()
        progress = self.trainer.progress
        return {"epoch": progress.best_epoch, "val_metric": progress.best_metric}

    def epochs(self) -> Generator[Epoch, None, None]:
        """The epochs of the trainer, each when it is recorded; all are written when this ends or is closed."""
        if distributed.rank() == 0:
            self.run.begin(self.trainer.config)
        try:
            for epoch in self.trainer.epochs():
                if distributed.rank() == 0:
                    self.record(epoch)
                    if self.verbose:
                        print(f"{self.label}{words(epoch, self.trainer.config)}", flush=True)
                yield epoch
        finally:
            if self.unsaved is not None:
                self.write(self.unsaved)

    def record(self, epoch: Epoch) -> None:
        """Writes what an epoch gave, or keeps it to be written with later ones."""
        trainer, before = self.trainer, self.unsaved
        best = None if before is None else before.best
        if trainer.progress.best_epoch == epoch.epoch:
            best = trainer.evaluated.state_dict(), {"epoch": epoch.epoch, "val_metric": epoch.val_metric}
        lines = [*([] if before is None else before.lines), asdict(epoch)]
        unsaved = Unsaved(lines, best, resume.state_of(trainer))
        if self.is_due():
            self.write(unsaved)
        else:
            self.unsaved = unsaved.kept()

    def is_due(self) -> bool:
        """Whether to write now."""
        if self.saved_at is None or not on_gpu(self.trainer.model):
            return True
        return time.monotonic() - self.saved_at > SECONDS_BETWEEN_SAVES

    def write(self, unsaved: Unsaved) -> None:
        """Writes what epochs gave; the state comes last, so that what it tells of is on the disk."""
        config = self.trainer.config
        if unsaved.best is not None:
            tensors, facts = unsaved.best
            checkpoint.save_tensors(self.run.weights, tensors, config, facts)
        self.run.append_metrics(unsaved.lines)
        tensors, facts = unsaved.state
        checkpoint.save_tensors(self.run.state, tensors, config, facts)
        self.unsaved, self.saved_at = None, time.monotonic()


def words(epoch: Epoch, config: Config) -> str:
    """An epoch of a run for people, on one line."""
    return (
        f"epoch {epoch.epoch}/{config.train.epochs}: training loss {epoch.train_loss:.4f}, "
        f"validation {config.task.metric} {epoch.val_metric:.4f}, {epoch.molecules_per_second:.0f} molecules/s"
    )


@contextlib.contextmanager
def training_alone(run: RunFolder, resume: bool) -> Iterator[None]:
    """Within it, no other run trains in a folder; of several processes of one run, the first sees to that.

    Raises:
        InputError: as ``RunFolder.check_free`` and ``RunFolder.locked``.
    """
    if distributed.rank() != 0:
        yield
        return
    with run.locked():
        run.check_free(resume)
        yield

"""What a training leaves behind: the run folder, and a line per epoch for people."""

import contextlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from graphormer_sepnorm.config import Config
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.plots import plot_curves
from graphormer_sepnorm.system import distributed
from graphormer_sepnorm.training import resume
from graphormer_sepnorm.training.trainer import Epoch, Trainer


@dataclass(frozen=True)
class Recorder:
    """Writes what a trainer gives into a run folder; of several processes, the first does.

    Attributes:
        trainer: at the beginning, or brought to where the run in the folder stands by ``resume``.
        run: the folder.
        verbose: whether to print a line per epoch.
    """

    trainer: Trainer
    run: RunFolder
    verbose: bool = True

    def resume(self) -> None:
        """Goes back to the last completed epoch of the folder; raises InputError as ``resume.resume``."""
        resume.resume(self.trainer, self.run)

    def train(self) -> dict:
        """Trains from where the run stands to the last epoch; returns the facts of the best checkpoint."""
        for _ in self.epochs():
            pass
        if distributed.rank() == 0:
            plot_curves(self.run.read_metrics(), self.run.curves, self.trainer.config.task.metric)
        distributed.wait_for_all()
        progress = self.trainer.progress
        return {"epoch": progress.best_epoch, "val_metric": progress.best_metric}

    def epochs(self) -> Iterator[Epoch]:
        """The epochs of the trainer, each when it is written down."""
        if distributed.rank() == 0:
            self.run.begin(self.trainer.config)
        for epoch in self.trainer.epochs():
            if distributed.rank() == 0:
                self.save(epoch)
                if self.verbose:
                    print(words(epoch, self.trainer.config), flush=True)
            yield epoch

    def save(self, epoch: Epoch) -> None:
        """Writes what an epoch gave; the state comes last, so that what it tells of is on the disk."""
        trainer = self.trainer
        if trainer.progress.best_epoch == epoch.epoch:
            facts = {"epoch": epoch.epoch, "val_metric": epoch.val_metric}
            checkpoint.save_model(self.run.weights, trainer.evaluated, trainer.config, facts)
        self.run.append_metrics(asdict(epoch))
        resume.save_state(trainer, self.run)


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

from tests.cli.conftest import command
from tests.forests import features, forest, logp, smiles
from tests.table_models import classes, conditioned, folds, labels, molecules, others, setting, small_forests, trained

__all__ = [
    "classes", "command", "conditioned", "features", "folds", "forest", "labels", "logp", "molecules", "others",
    "setting", "small_forests", "smiles", "trained",
]  # fmt: skip

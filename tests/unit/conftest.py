from tests.cli.conftest import command
from tests.forests import features, forest, logp, smiles
from tests.table_models import classes, conditioned, folds, labels, molecules, others, small_forests, to_fit, trained

__all__ = [
    "classes", "command", "conditioned", "features", "folds", "forest", "labels", "logp", "molecules", "others",
    "small_forests", "smiles", "to_fit", "trained",
]  # fmt: skip

from tests.cli.conftest import command
from tests.forests import features, forest, logp, smiles

__all__ = ["command", "features", "forest", "logp", "smiles"]

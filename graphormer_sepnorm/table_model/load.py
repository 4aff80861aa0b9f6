"""Models by their names: a table model from its run folder, networks from everything else."""

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference.predict import PredictingModel, load_predictor
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.zoo import resolve_model
from graphormer_sepnorm.table_model.model import TableModel


def load_model(names: list[str]) -> PredictingModel:
    """Loads the table model of a run folder, or networks as ``load_predictor``, onto the device of ``device.current``.

    Raises:
        InputError: as ``load_predictor`` and ``TableModel.load``, or a table model that is to be averaged with others.
    """
    places = [resolve_model(name) for name in names]
    tables = [place for place in places if RunFolder(place).stack.exists()]
    if tables and len(places) > 1:
        raise InputError(f"{tables[0]} is a table model, which predicts on its own: name it without other models")
    return TableModel.load(tables[0]) if tables else load_predictor(names)

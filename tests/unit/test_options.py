import pickle
from dataclasses import dataclass
from typing import Annotated, Literal

import pytest

from graphormer_sepnorm.config import ModelConfig, TrainConfig
from graphormer_sepnorm.errors import InputError, did_you_mean, one_of
from graphormer_sepnorm.options import Option, declared
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.training.optimizers import OPTIMIZERS


@dataclass(frozen=True)
class Cake:
    number: int = 0
    of_milk: Annotated[float | None, Option("Litres.")] = 0.5
    kind: Annotated[Literal["plain", "iced"], Option("How it looks.", "icing")] = "plain"
    fruit: Annotated[tuple[str, ...], Option("In it.")] = ()


def test_a_field_with_an_option_in_its_type_is_declared_by_its_name_type_default_and_help():
    milk, kind, fruit = declared(Cake)
    assert (milk.field, milk.name, milk.type, milk.default, milk.option.help) == (
        "of_milk", "--of-milk", float, 0.5, "Litres.",
    )  # fmt: skip
    assert (kind.field, kind.name, kind.type) == ("kind", "--icing", Literal["plain", "iced"])
    assert fruit.type == list[str]


def test_every_scalar_of_the_optimisation_that_has_no_other_option_is_one():
    fields = {each.field for each in declared(TrainConfig)}
    assert set(TrainConfig.__dataclass_fields__) - fields == {"precision", "start_from", "frozen_layers"}
    (optimizer,) = declared(TrainConfig, only=("optimizer",))
    assert all(name in optimizer.option.help for name in OPTIMIZERS)


def test_no_two_options_of_a_command_have_one_name():
    names = [each.name for cls in (TrainConfig, ModelConfig, TableOptions) for each in declared(cls)]
    assert len(set(names)) == len(names)


def test_it_is_a_value_error_and_can_be_pickled():
    error = pickle.loads(pickle.dumps(InputError("a sentence")))
    assert type(error) is InputError and isinstance(error, ValueError) and str(error) == "a sentence"


def test_options_follow_the_sentence_in_the_words_of_the_reader():
    error = pickle.loads(pickle.dumps(InputError("name the columns", "target_columns", "task")))
    assert str(error) == "name the columns; see target_columns, task" and error.sentence == "name the columns"
    assert error.with_options(str.upper) == "name the columns; see TARGET_COLUMNS, TASK"


def test_an_unknown_name_is_refused_with_the_choice_that_is_most_like_it():
    assert one_of("optimizer", "muon", ["adamw", "muon"]) == "muon"
    with pytest.raises(InputError, match=r"^unknown optimizer 'adam', choose one of adamw, muon; did you mean 'adamw'"):
        one_of("optimizer", "adam", ["adamw", "muon"])
    with pytest.raises(InputError, match=r"^unknown optimizer 'x', choose one of adamw, muon$"):
        one_of("optimizer", "x", ["adamw", "muon"])


def test_a_name_that_lacks_its_unit_is_completed():
    columns = ["SMILES", "log (1)", "logS (mol/L)"]
    assert did_you_mean("logs", columns) == did_you_mean("logS", columns) == "; did you mean 'logS (mol/L)'?"
    assert did_you_mean("lo", columns) == did_you_mean("mol", columns) == ""

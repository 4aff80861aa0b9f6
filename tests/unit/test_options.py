from dataclasses import dataclass
from typing import Annotated, Literal

from graphormer_sepnorm.config import ModelConfig, TrainConfig
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

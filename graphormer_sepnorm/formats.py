"""From older formats of configs and checkpoints to today's.

Format 1 counted messages along bonds and scaling by degrees among the encodings, told encodings and messages the number
of bond types with one for no bond, and had parameters that no prediction depends on.
"""

import re
from collections.abc import Callable

from torch import Tensor

FIELDS = {"bonds": "messages", "degree_scaling": "degree_scaling"}
ENCODING = re.compile(r"(?<![^.])encodings\.(\d{1,4})(?=\.)")
RECEIVED = re.compile(r"(?<![^.])blocks\.(\d{1,4})\.(messages|degree_scaler)\.")


def encodings_of(config: dict) -> list[dict]:
    """The encodings in a run's JSON; none where they cannot be read, for the validation to find."""
    model = config.get("model")
    encodings = model.get("encodings") if isinstance(model, dict) else None
    if not isinstance(encodings, list) or not all(isinstance(encoding, dict) for encoding in encodings):
        return []
    return encodings


def is_field(encoding: dict) -> bool:
    """Whether an encoding of format 1 is a field of the model now."""
    return encoding.get("name") in list(FIELDS)


def config_of_format_1(config: dict) -> dict:
    """A run's JSON of format 1 as this package writes it."""
    encodings = encodings_of(config)
    if not encodings:
        return config
    fields = {FIELDS[encoding["name"]]: True for encoding in encodings if is_field(encoding)}
    kept = [
        {key: value for key, value in encoding.items() if key != "num_bond_types"}
        for encoding in encodings
        if not is_field(encoding)
    ]
    return {**config, "model": {**config["model"], "encodings": kept, **fields}}


def tensors_of_format_1(
    tensors: dict[str, Tensor], config: dict, atoms_count_after: Callable[[int], bool]
) -> dict[str, Tensor]:
    """Weights of format 1, or a state with their averages and moments, as this package writes them.

    Args:
        config: the run's JSON of format 1.
        atoms_count_after: whether the atoms that leave a layer change the prediction; where they do not, they receive
            nothing along bonds and by their degrees any more.
    """
    kept = [place for place, encoding in enumerate(encodings_of(config)) if not is_field(encoding)]
    place_now = {str(before): str(now) for now, before in enumerate(kept)}
    found = {}
    for name, tensor in tensors.items():
        received = RECEIVED.search(name)
        if received is None:
            found[ENCODING.sub(lambda match: f"encodings.{place_now.get(match[1], match[1])}", name)] = tensor
        elif atoms_count_after(int(received[1])):
            found[name] = tensor[1:].clone() if "messages.bond" in name and tensor.ndim == 2 else tensor
    return found

"""Converts configs and checkpoints of older formats to the current one.

In format 1, messages along bonds and degree scaling were encodings. Encodings and messages had an extra bond type for
"no bond". Checkpoints contained parameters that no prediction depends on.
"""

import re
from collections.abc import Callable

from torch import Tensor

FIELDS = {"bonds": "messages", "degree_scaling": "degree_scaling"}
ENCODING = re.compile(r"(?<![^.])encodings\.(\d{1,4})(?=\.)")
RECEIVED = re.compile(r"(?<![^.])blocks\.(\d{1,4})\.(messages|degree_scaler)\.")


def encodings_of(config: dict) -> list[dict]:
    """The encodings in the JSON of a run; an empty list if they are malformed, which validation reports later."""
    model = config.get("model")
    encodings = model.get("encodings") if isinstance(model, dict) else None
    if not isinstance(encodings, list) or not all(isinstance(encoding, dict) for encoding in encodings):
        return []
    return encodings


def is_field(encoding: dict) -> bool:
    """Whether an encoding of format 1 is now a field of ``ModelConfig``."""
    return encoding.get("name") in list(FIELDS)


def config_of_format_1(config: dict) -> dict:
    """Converts the JSON of a run from format 1 to the current format."""
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
    tensors: dict[str, Tensor], config: dict, atoms_matter_after: Callable[[int], bool]
) -> dict[str, Tensor]:
    """Converts weights of format 1, or a training state with moving averages and moments, to the current format.

    Args:
        config: the JSON of the run in format 1.
        atoms_matter_after: whether the prediction depends on the atoms that leave a layer. Layers for which it does not
            no longer have messages or degree scaling.
    """
    kept = [place for place, encoding in enumerate(encodings_of(config)) if not is_field(encoding)]
    place_now = {str(before): str(now) for now, before in enumerate(kept)}
    found = {}
    for name, tensor in tensors.items():
        received = RECEIVED.search(name)
        if received is None:
            found[ENCODING.sub(lambda match: f"encodings.{place_now.get(match[1], match[1])}", name)] = tensor
        elif atoms_matter_after(int(received[1])):
            found[name] = tensor[1:].clone() if "messages.bond" in name and tensor.ndim == 2 else tensor
    return found

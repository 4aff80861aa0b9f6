"""Files with one bit changed."""

from collections.abc import Iterator

import numpy as np


def with_changed_bits(content: bytes, count: int = 50) -> Iterator[bytes]:
    """The content with one bit changed, at random places."""
    random = np.random.default_rng(0)
    for place in random.integers(0, len(content), count):
        changed = bytearray(content)
        changed[place] ^= 1 << int(random.integers(8))
        yield bytes(changed)

"""The check that many parameters share."""

from __future__ import annotations

from typing import Any

import numpy as np


def check_count(name: str, value: Any) -> int:
    """`value` as an int; it must be an integer of at least 1."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")
    return int(value)

"""How much a comparison may compute. No clock is asked: a slow or a busy machine comes to the same verdict."""

from __future__ import annotations

import math

# Seconds on a usual processor: one core of a computer of today.
MULTIPLICATION = 4e-11
OPERATOR = 1e-4  # one call, whatever it computes
ELEMENT = 1e-8  # made, and written
VALUE = 2e-3  # one value inside a model, fetched and sketched
COMPARED = 1e-7  # for each element of two values that are compared


class Work:
    """Some seconds of a usual processor."""

    def __init__(self, seconds: float = math.inf) -> None:
        self._most = seconds
        self.taken = 0.0

    def take(self, seconds: float) -> None:
        self.taken += seconds

    @property
    def is_spent(self) -> bool:
        return self.taken >= self._most

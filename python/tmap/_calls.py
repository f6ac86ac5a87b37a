# SPDX-License-Identifier: Apache-2.0
"""Counts the calls of functions of other libraries that tmap took, and those that it passed on."""
import threading
from collections import Counter
from typing import Dict, NamedTuple


class Calls(NamedTuple):
    """Counts the calls of one function: those that tmap took, and those that it passed on to the
    other library, by the reason."""
    taken: int
    passed: Dict[str, int]


class CallCounts:
    """Counts calls by the name of a function. Thread-safe."""

    def __init__(self):
        self._lock, self._counts = threading.Lock(), Counter()

    def add(self, name, reason) -> None:
        """Counts a call. `reason` is None for one that tmap took."""
        with self._lock:
            self._counts[name, reason] += 1

    def clear(self) -> None:
        with self._lock:
            self._counts.clear()

    def of(self, *names) -> Dict[str, Calls]:
        """Returns the counts of functions by their names."""
        with self._lock:
            counts = dict(self._counts)
        return {name: Calls(counts.get((name, None), 0),
                            {reason: count for (of, reason), count in counts.items()
                             if of == name and reason is not None})
                for name in names}

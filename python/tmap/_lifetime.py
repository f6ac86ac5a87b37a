# SPDX-License-Identifier: Apache-2.0
"""Keeps arrays until the stream that uses them has done so, also if the caller drops them.

Every array of a call that is enqueued goes through `Uses` in one of two ways. PyTorch learns that
the stream uses its memory (`record_stream`). For other libraries a reference is kept until an event
after the work has passed; later calls look at the event.
"""
from collections import deque
from typing import Any, List

from . import _driver

_kept: deque = deque()  # (event, references)
_LOOKED_AT = 4  # by a call; it keeps one


def keep(stream: int, references: List[Any]) -> None:
    """Keeps references until the stream has done the work that is enqueued on it now, in the
    current context. The caller keeps what a graph is captured from, as long as the graph."""
    with _driver.RelaxedCapture():
        _look()
        if not _driver.is_capturing(stream):
            _kept.append((_driver.Event(stream), references))


def let_go() -> None:
    """Drops references that streams are done with. It looks at a few, oldest look first."""
    with _driver.RelaxedCapture():
        _look()


def _look() -> None:
    """Python may end any object at any point of this function, and that end may call it again. So
    it holds no lock, and only one call has an entry at a time."""
    for _ in range(min(len(_kept), _LOOKED_AT)):
        try:
            entry = _kept.popleft()
        except IndexError:  # another call looks at the rest
            return
        if not entry[0].is_passed():
            _kept.append(entry)


class Uses:
    """The arrays that work on one stream uses and whose library does not know of the stream."""
    __slots__ = ("stream", "_references")

    def __init__(self, stream):
        self.stream, self._references = stream, []

    def add(self, reference: Any) -> None:
        self._references.append(reference)

    def enqueued(self) -> None:
        """Call this when the work is on the stream."""
        if self._references:
            keep(self.stream, self._references)
            self._references = []
        elif _kept:
            let_go()

# SPDX-License-Identifier: Apache-2.0
"""Arrays live until the stream that uses them has done so, whatever becomes of the caller's references.

Every array of a call that is enqueued goes through `Uses`, on one of two ways. The library of the array is told that the
stream uses its memory (`record_stream` of PyTorch). Of a library that cannot be told, a reference is kept until an event
after the work has passed; later calls look at it.
"""
from collections import deque
from typing import Any, List

from . import _driver

_kept: deque = deque()  # (event, references)
_LOOKED_AT = 4  # by a call; it keeps one


def keep(stream: int, references: List[Any]) -> None:
    """Until the stream is past what is enqueued on it now, in the current context. What a graph is captured from is the
    caller's to keep, as long as the graph."""
    with _driver.RelaxedCapture():
        _look()
        if not _driver.is_capturing(stream):
            _kept.append((_driver.Event(stream), references))


def let_go() -> None:
    """Drops what streams are done with, as far as it looks: at those that were not looked at for longest."""
    with _driver.RelaxedCapture():
        _look()


def _look() -> None:
    """Python may end any object at any point of this, whose end may come here again: no lock is held, and each entry is in
    one hand at a time."""
    for _ in range(min(len(_kept), _LOOKED_AT)):
        try:
            entry = _kept.popleft()
        except IndexError:  # others look at the rest
            return
        if not entry[0].is_passed():
            _kept.append(entry)


class Uses:
    """The arrays that work on one stream uses: those whose library does not know of the stream."""
    __slots__ = ("stream", "_references")

    def __init__(self, stream):
        self.stream, self._references = stream, []

    def add(self, reference: Any) -> None:
        self._references.append(reference)

    def enqueued(self) -> None:
        """The work is on the stream."""
        if self._references:
            keep(self.stream, self._references)
            self._references = []
        elif _kept:
            let_go()

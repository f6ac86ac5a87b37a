# SPDX-License-Identifier: Apache-2.0
"""Counts of bad maps, tensors, rows and groups, which kernels pass over, and the words of a
status."""
from ctypes import byref
from dataclasses import dataclass
from typing import Optional

from . import _structs as c
from ._errors import BadItem, bad_item, check, text_of
from ._library import lib
from ._numbers import choice, status_bits

ITEMS = ("map", "tensor", "row", "group")
CHECKS = (None, "off", "sync")


@dataclass(frozen=True)
class FaultReport:
    """Bad items of all calls in a CUDA context since the last reset, as far as their kernels have
    run: numbers of `maps`, `tensors`, `rows` (row numbers that do not exist) and `groups`, and the
    `first` that any kernel met, if any. `str` puts it in words."""
    maps: int
    tensors: int
    rows: int
    groups: int
    first: Optional[BadItem]
    text: str

    def __bool__(self) -> bool:
        return bool(self.maps or self.tensors or self.rows or self.groups)

    def __str__(self) -> str:
        return self.text


def faults(reset: bool = False) -> FaultReport:
    """Reports the bad items in calls of this thread's current CUDA context. `reset` sets the counts
    to zero.

    Waits for a copy of 64 bytes on a stream of its own and for no other work: synchronise first to
    have all. Operations in memory of the host are not counted. The report is true if anything was
    bad. Raises `Error`.
    """
    report = c.FaultReport()
    check((lib.tmap_reset_faults if reset else lib.tmap_faults)(byref(report)))
    text = text_of(lib.tmap_fault_report_text, byref(report))
    return FaultReport(report.maps, report.tensors, report.rows, report.groups,
                       bad_item(report.first), text)


def describe_status(item: str, status: int) -> str:
    """Puts a status that a call wrote into words: "good", "empty", or each fault with its meaning.
    `item` is "map", "tensor", "row" or "group". A status read as a negative number is taken for the
    unsigned one of the same bits."""
    kind = choice(item, ITEMS, "item")
    bits = status_bits(status, 64 if item == "map" else 32, f"the status of a {item}")
    return text_of(lib.tmap_item_text, kind, bits)


def check_number(given) -> int:
    """Returns the number of a call's keyword `check`."""
    return choice(given, CHECKS, "check")

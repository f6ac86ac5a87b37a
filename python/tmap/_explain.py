# SPDX-License-Identifier: Apache-2.0
"""Explains any object of this package, and arrays, in words."""
from collections import Counter
from typing import Any, List, Tuple

from ._arrays import Site
from ._batch import Columns, Rows, Tensors, innermost_first
from ._errors import BadItem, Error, Rule
from ._faults import FaultReport, describe_status
from ._gemm import GroupFault
from ._lease import MapBatch
from ._ragged import Fault
from ._spec import (DecodedMap, TensorSpec, Violation, as_map, broken_rules, bytes_of, decode,
                    describe)

EMPTY_MAP = 1 << 63
MOST_LISTED = 8


def explain(thing, box=None) -> str:
    """Explains a thing in words. Needs no GPU, but for batches of maps.

    A `TensorSpec`: the rules it breaks, a line each, or "no rule broken". An array of any library:
    whether a tensor map can describe it; with `box`, in the array's order, the rules that a map
    with this box breaks. 128 bytes of a map, several maps in one buffer, or a `DecodedMap`: their
    fields and broken rules. A `MapBatch`: how many maps are good, bad and empty, and why the first
    bad ones are bad; this waits for the encode. A status of `ragged.faults_of` or
    `group_faults_of`, a `Rule`, an `Error`, a `FaultReport`: its sentence.
    """
    for kinds, words in _WORDS:
        if isinstance(thing, kinds):
            return words(thing)
    if hasattr(thing, "__dlpack__"):
        return _of_array(thing, box)
    raise TypeError(f"spec is {thing!r}: it must be a TensorSpec, an array, the bytes of a map, or "
                    "an object of tmap")


def _of_array(array, box) -> str:
    try:
        form = Site(None, array).read(array, "array").form
    except (TypeError, ValueError, BufferError) as reason:
        return f"no tensor map can describe this array: {reason}"
    name = f"{form.dtype} array of shape {form.shape}"
    try:
        if box is None:  # a box that breaks no rule by itself
            box = (1,) * len(form.shape[1:]) + (max(16 // form.item_bytes, 1),) * bool(form.shape)
        spec = TensorSpec.of(array, box)
    except (TypeError, ValueError) as reason:
        return f"{name}: {reason}"
    return f"{name} at {spec.address:#x}: {_rules_of(spec)}"


def _rules_of(spec: TensorSpec) -> str:
    try:
        return broken_rules(spec)
    except ValueError as reason:  # lengths differ, or too many dims
        return str(reason)


def _of_maps(buffer) -> str:
    view = bytes_of(buffer, "data")
    if view.nbytes <= 128 or view.nbytes % 128:
        return _of_map(bytes(as_map(view)))
    return "\n".join(f"map {i}: {_line_of(view[128 * i:128 * i + 128])}"
                     for i in range(view.nbytes // 128))


def _of_map(data: bytes) -> str:
    text = describe(data)
    try:
        decoded = decode(data)
    except Error:  # the description has the reason
        return text
    return text + (broken_rules(decoded.spec) if decoded.kind == "tiled" else "")


def _line_of(data) -> str:
    try:
        decoded = decode(data)
    except Error as reason:
        return str(reason)
    spec = decoded.spec
    return (f"{decoded.kind} {spec.element_type} {innermost_first(spec.dims)} at {spec.address:#x}, "
            f"box {innermost_first(spec.box)}, swizzle {spec.swizzle}")


def judged(statuses) -> Tuple[int, int, List[Tuple[int, int]]]:
    """Counts the maps of a batch: good ones, empty ones, and the bad ones with their numbers."""
    counts = Counter(statuses)
    good, empty = counts[0], counts[EMPTY_MAP]
    if good + empty == len(statuses):
        return good, empty, []
    return good, empty, [(i, bits) for i, bits in enumerate(statuses) if bits not in (0, EMPTY_MAP)]


def _of_batch(batch: MapBatch) -> str:
    statuses, why_not = batch.read_statuses()
    if statuses is None:
        return f"MapBatch of {len(batch)} maps: {why_not}"
    good, empty, bad = judged(statuses)
    lines = [f"MapBatch of {len(batch)} maps: {good} good, {empty} empty, {len(bad)} bad"]
    lines += [f"map {i}: {describe_status('map', bits)}" for i, bits in bad[:MOST_LISTED]]
    if len(bad) > MOST_LISTED:
        lines.append(f"and {len(bad) - MOST_LISTED} more")
    return "\n".join(lines)


_WORDS: Any = (
    (TensorSpec, broken_rules),
    ((bytes, bytearray, memoryview), _of_maps),
    (DecodedMap, lambda decoded: _of_map(decoded.data)),
    (MapBatch, _of_batch),
    (Fault, lambda bits: describe_status("tensor", bits)),
    (GroupFault, lambda bits: describe_status("group", bits)),
    ((Rows, Tensors, Columns, BadItem, Violation), repr),
    ((Rule, Error, FaultReport), str),
)

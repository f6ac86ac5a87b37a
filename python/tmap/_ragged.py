# SPDX-License-Identifier: Apache-2.0
"""Operations on batches of tensors of different sizes."""
import enum
import inspect
from ctypes import byref, c_uint64, c_void_p
from functools import lru_cache
from typing import Optional

from . import _structs as c
from ._arrays import Site
from ._batch import (NO_WINDOWS, PLAIN, POLICIES, Columns, Rows, Side, Tensors, call_on,
                     check_last_dim, innermost_first, reports_of, window_list)
from ._errors import check
from ._libraries import Form, View
from ._library import declare, lib
from ._numbers import choice, status_bits

VALUE_TYPES = ("u8", "f16", "bf16", "f32", "f8_e4m3", "f8_e5m2")
FLOATS = ("f32", "f16", "bf16")
REDUCTIONS = ("sum", "max")
SCALE_BLOCKS = ("row", "1x128", "128x128", "128x1")


class Fault(enum.IntFlag):
    """The bits of a status: why a tensor was bad, or a row in `gather_rows` and `scatter_rows`.
    `EMPTY` is no fault. `tmap.explain` puts them into words."""
    DIM = 1 << 0
    STRIDE = 1 << 1
    ADDRESS = 1 << 2
    WINDOW = 1 << 3
    MISMATCH = 1 << 4
    OVERLAP = 1 << 5
    TRUNCATED = 1 << 6
    INDEX = 1 << 7
    EMPTY = 1 << 31


def faults_of(status) -> Fault:
    """Names the bits in an element of `statuses`, of uint32 or int32: `Fault(0)` for a good
    tensor."""
    return Fault(status_bits(status))


_DENSE_ADDRESS = c.place((c.DenseBatch, "address"))


@lru_cache(maxsize=1024)
def _dense_batch(form: Form, count: int, rank: int, dtype: str, name: str) -> tuple:
    """Returns all of a dense array but its address: a DenseBatch in pieces."""
    if form.dtype != dtype or len(form.shape) != rank + 1 or form.shape[0] != count:
        raise ValueError(f"{name} is {form.dtype} {form.shape}; the batch has {count} tensors of "
                         f"{dtype} and {rank} dims")
    check_last_dim(form, name)
    # The library takes strides of 0 for those of a batch without gaps.
    if any(extent > 1 and stride == 0 for extent, stride in zip(form.shape, form.strides)):
        raise ValueError(f"{name} repeats elements, by a stride of 0: copy it first")
    made = c.DenseBatch(tensor_pitch_bytes=form.strides[0])
    made.dim[:rank] = innermost_first(form.shape[1:])
    made.stride_bytes[:rank - 1] = innermost_first(form.strides[1:-1])
    return c.in_pieces(made, _DENSE_ADDRESS)


def dense_side(view: View, side: Side, name: str) -> bytes:
    """Returns the struct of an array that is the dense side to a batch."""
    pack, (first, last) = _dense_batch(view.form, side.count, side.rank, side.dtype, name)
    return pack(first, view.address, last)


@lru_cache(maxsize=1024)
def _workspace_bytes(count: int, rank: int) -> int:
    needed = c_uint64()
    check(lib.tmap_ragged_workspace_bytes(count, rank, byref(needed)))
    return needed.value


class _Call:
    """One call of an operation: it collects its arguments and runs it."""

    def __init__(self, sides, stream=None, statuses=None, header=None, policy="default",
                 windows=None, check=None):
        self.site = Site(stream, *_arrays_of(sides))
        number = choice(policy, POLICIES, "policy")
        self.is_bounded, self.wanted = windows is None, None
        if not (number == 0 and windows is statuses is header is check is None):
            self.wanted = statuses, header, window_list(self.site, windows), check, number

    def source(self, batch, name="source", dtypes=None) -> Side:
        return self._side(batch, name, False, dtypes)

    def destination(self, batch, name="destination", dtypes=None) -> Side:
        return self._side(batch, name, True, dtypes)

    def _side(self, batch, name, write, dtypes):
        if not isinstance(batch, (Rows, Tensors, Columns)):
            raise TypeError(f"{name} is {type(batch).__name__}, not Rows, Tensors or Columns")
        side = batch.side(self.site, name, write, self.is_bounded)
        if dtypes is not None and side.dtype not in dtypes:
            raise TypeError(f"{name} has elements of {side.dtype}, not of {' or '.join(dtypes)}")
        return side

    def run(self, operation: str, arguments, count: int, rank: Optional[int]) -> None:
        """Without a rank it is rows by index, which need no workspace and look at no windows."""
        function, reports = getattr(lib, f"tmap_ragged_{operation}"), PLAIN
        if self.wanted is not None:
            statuses, header, windows, *others = self.wanted
            reports = reports_of(self.site, count, statuses, header, NO_WINDOWS if rank is None
                                 else windows, *others)
        if self.site.on_host:
            check(function(*arguments, call_on(None, reports=reports)))
            self.site.done()
            return
        with self.site.use():
            size = 0 if rank is None else _workspace_bytes(count, rank)
            memory, _lent = self.site.memory(size) if size else (0, None)
            check(function(*arguments, call_on(self.site.stream, memory, size, reports)))
            self.site.done()


_OPTIONS = [each.replace(kind=each.KEYWORD_ONLY)
            for each in list(inspect.signature(_Call).parameters.values())[1:]]


def takes(*arguments):
    """Declares the C function of an operation, which has the name of the Python function, by its
    arguments before `tmap_call`. Editors and `help` see the keywords of all calls."""
    def declared(operation):
        declare(f"tmap_ragged_{operation.__name__}", *arguments, c_void_p)
        own = inspect.signature(operation)
        named = [each for each in own.parameters.values() if each.kind is not each.VAR_KEYWORD]
        operation.__signature__ = own.replace(parameters=named + _OPTIONS)
        return operation
    return declared


def _arrays_of(sides):
    arrays = []
    for side in sides:
        if isinstance(side, (Rows, Tensors, Columns)):
            arrays.extend(side.arrays)
        elif side is not None:
            arrays.append(side)
    return arrays


def _between(operation, source, destination, options, before=(), after=(), from_types=None,
             to_types=None) -> None:
    call = _Call((source, destination), **options)
    left, right = call.source(source,
                              dtypes=from_types), call.destination(destination, dtypes=to_types)
    call.run(operation, (*before, left.struct, right.struct, *after), left.count, left.rank)

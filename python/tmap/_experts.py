# SPDX-License-Identifier: Apache-2.0
"""Experts that are spread over the ranks of a group: tokens go to them, and results come home."""
from ctypes import byref, c_uint64
from functools import lru_cache
from typing import NamedTuple, Optional

from . import _dlpack
from . import _structs as c
from ._arrays import WORDS, Site
from ._errors import check
from ._library import lib
from ._numbers import choice, integer, milliseconds, type_name
from ._routing import F32, FLOATS, I32, packed, shaped, some
from ._window import Window

_RETURNED = ("sums", "rows")


class ExpertShape(NamedTuple):
    """The sizes of a `dispatch` and its `combine`. Ranks may differ in `tokens`, `arrivals` and
    `rows`. The rest is the same on all ranks.

    `tokens` are those of this rank, of `columns` elements of `dtype` each. Each has `k` of the
    `experts` of all ranks. All ranks have the same number of experts: expert e is on rank
    e // (experts // ranks). `arrivals` is the number of tokens that this rank has room for. The
    tokens of all ranks together are always enough. `rows` is the number of rows that it has room
    for, by default those of all arrivals. The rows of each expert begin at a multiple of
    `alignment`. `scales` f32 go with each token. Results have `result_columns` elements of
    `result_type`, f32, bf16 or f16; by default `columns`.

    `returned` is what comes home. With "sums" it is one sum from each rank, rounded to the type.
    With "rows" it is the row of each choice, and results have the bits of one GPU.
    """
    tokens: int
    k: int
    experts: int
    columns: int
    arrivals: int
    rows: int = 0
    alignment: int = 1
    dtype: str = "bf16"
    scales: int = 0
    result_columns: Optional[int] = None
    result_type: str = "bf16"
    returned: str = "sums"

    # Each call needs these, and a program has few shapes, so results are kept.

    @lru_cache(maxsize=1024)
    def to_c(self) -> c.ExpertShape:
        columns = self.columns if self.result_columns is None else self.result_columns
        row_bytes = integer(self.columns, "columns", 32) * _dlpack.item_bytes(type_name(self.dtype))
        return c.ExpertShape(
            k=integer(self.k, "k", 32), tokens=integer(self.tokens, "tokens", 64),
            arrivals=integer(self.arrivals, "arrivals", 64), rows=integer(self.rows, "rows", 64),
            columns=integer(columns, "result_columns", 64),
            experts=integer(self.experts, "experts", 32),
            alignment=integer(self.alignment, "alignment", 32),
            row_bytes=integer(row_bytes, "row_bytes", 32), scales=integer(self.scales, "scales", 32),
            result_type=choice(type_name(self.result_type), FLOATS, "result_type"),
            returned=choice(self.returned, _RETURNED, "returned"))

    @lru_cache(maxsize=1024)
    def row_count(self, ranks: int) -> int:
        """Returns the rows of the `out` of a `dispatch`, in a group of so many ranks."""
        return self._asked(lib.tmap_peer_expert_rows, ranks)

    @lru_cache(maxsize=1024)
    def workspace_bytes(self, ranks: int) -> int:
        """Returns the bytes of the workspace, in a group of so many ranks."""
        return self._asked(lib.tmap_peer_workspace_bytes, ranks)

    def _asked(self, function, ranks: int) -> int:
        number = c_uint64()
        check(function(byref(self.to_c()), integer(ranks, "ranks", 32), byref(number)))
        return number.value


def dispatch(window: Window, sizes: ExpertShape, x, ids, *, out, workspace, weights=None,
             x_scales=None, out_scales=None, counts=None, begins=None, ends=None,
             weight_of_row=None, pending=None, ready=None, blocks: int = 0,
             patience: Optional[float] = None, stream=None):
    """Brings tokens to the ranks of their experts. Returns `out`.

    `x` [tokens, columns] are this rank's tokens. `ids`, int32 [tokens, k], are their experts, as
    `tmap.moe.route` writes them; a number that is no expert is left out. `weights`, f32 [tokens,
    k], are 1 if there are none. `out` [sizes.row_count(ranks), columns] gets the rows in the order
    by expert of this rank, and in each expert by rank, token and choice. Rows without a choice stay
    as they are. `x_scales`, f32 [tokens, scales], go with the tokens, to `out_scales` [rows,
    scales].

    All other results are optional: `counts` [experts of this rank], `begins` [the same + 1] and
    `ends` of the rows of each expert, int32, and `weight_of_row`, f32 [rows].

    `pending`, uint32 or int32 [experts of this rank + 1], and `ready`, an event of PyTorch or CuPy
    or a handle of CUDA, let a product begin while rows come. The call records `ready` when all
    results but `out` are there. A second stream waits for it and calls `tmap.grouped_mm` with the
    same `pending`. The first stream then waits for the second one. `pending` needs `ready`, and no
    initial value. Record an event of PyTorch once before, so that it has a handle.

    `x`, `out` and `workspace` lie in the window. `workspace`, uint8 [sizes.workspace_bytes(ranks)]
    at a multiple of 256 bytes, is the same for a dispatch and its `combine`. Other ranks pull `x`:
    it may be overwritten after the combine, or after `Window.await_pulls`.

    The call is collective, as those of a `Window`, and waits for nothing. If a rank has too little
    room, no row moves on any rank, and `Window.last_outcome` raises `Status.PEER_OVERFLOW` on all
    of them. `blocks` is the size of the kernels that move rows, by default 16. With few tokens
    there is one more.
    """
    site = window.site(stream, "x", x, ids, out, workspace,
                       *some((weights, x_scales, out_scales, counts, begins, ends, weight_of_row,
                              pending)))
    problem = _problem_of(c.PeerDispatchProblem, sizes, site, workspace, blocks, patience)
    dtype, rows = (type_name(sizes.dtype),), sizes.row_count(window.ranks)
    choices, experts = sizes.tokens * sizes.k, sizes.experts // window.ranks
    problem.x = shaped(site.read(x, "x", dtype, rank=2), "x", (sizes.tokens, sizes.columns))
    problem.out = shaped(site.write(out, "out", dtype, rank=2), "out", (rows, sizes.columns))
    index = packed(site.read(ids, "ids", I32, rank=2), "ids")
    problem.ids = shaped(index, "ids", (sizes.tokens, sizes.k)).address
    problem.weights = site.optional(weights, "weights", F32, choices)
    if x_scales is not None:
        found = shaped(site.read(x_scales, "x_scales", F32, rank=2), "x_scales",
                       (sizes.tokens, sizes.scales))
        problem.x_scales, problem.x_scale_pitch = found.address, found.pitch_bytes // 4
    for name, array, dtypes, elements in (
            ("out_scales", out_scales, F32, rows * sizes.scales), ("counts", counts, I32, experts),
            ("begins", begins, I32, experts + 1), ("ends", ends, I32, experts),
            ("weight_of_row", weight_of_row, F32, rows), ("pending", pending, WORDS, experts + 1)):
        setattr(problem, name, site.optional(array, name, dtypes, elements, write=True))
    problem.ready = _event_handle(ready)
    window.enqueue(lib.tmap_peer_dispatch, site, problem)
    return out


def combine(window: Window, sizes: ExpertShape, values, *, out, workspace, weights=None, base=None,
            blocks: int = 0, patience: Optional[float] = None, stream=None):
    """Brings the results of experts home: out[t] = base[t] + the sum over the choices of token t of
    weight * result. Returns `out`.

    `values` [sizes.row_count(ranks), result columns] are the results of experts, in the order of
    the rows of the dispatch. With "rows" returned they lie in the window, and `weights` of the
    dispatch are given again. `out` and `base` [tokens, result columns] are this rank's. `base` may
    be `out`. `sizes` and `workspace` are those of the dispatch. Sums need a dispatch for each
    combine: a second combine moves nothing, and `Window.last_outcome` raises `Error`.

    The combine ends as its dispatch did unless that was a success, so one `Window.last_outcome`
    after it is enough.
    """
    site = window.site(stream, "values", values, out, workspace, *some((weights, base)))
    problem = _problem_of(c.PeerCombineProblem, sizes, site, workspace, blocks, patience)
    dtype, columns = (type_name(sizes.result_type),), problem.sizes.columns
    problem.values = shaped(site.read(values, "values", dtype, rank=2), "values",
                            (sizes.row_count(window.ranks), columns))
    if weights is not None and sizes.returned != "rows":
        raise ValueError("weights go with the dispatch: its sums have them already")
    problem.weights = site.optional(weights, "weights", F32, sizes.tokens * sizes.k)
    shape = (sizes.tokens, columns)
    problem.out = shaped(site.write(out, "out", dtype, rank=2), "out", shape)
    if base is not None:
        problem.base = shaped(site.read(base, "base", dtype, rank=2), "base", shape)
    window.enqueue(lib.tmap_peer_combine, site, problem)
    return out


def _event_handle(event) -> Optional[int]:
    """Returns the handle of an event of PyTorch or CuPy, or the handle that was given."""
    if event is None:
        return None
    for name in ("cuda_event", "ptr"):
        event = getattr(event, name, event)
    handle = integer(event, "ready", 64)
    if handle == 0:
        raise ValueError("ready has no handle yet: an event of PyTorch gets one when it is recorded")
    return handle


def _problem_of(kind, sizes: ExpertShape, site: Site, workspace, blocks, patience):
    memory = packed(site.write(workspace, "workspace"), "workspace")
    return kind(blocks=integer(blocks, "blocks", 32), sizes=sizes.to_c(), workspace=memory.address,
                workspace_bytes=memory.nbytes, patience_ms=milliseconds(patience, "patience"))

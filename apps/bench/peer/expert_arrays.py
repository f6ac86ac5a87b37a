# SPDX-License-Identifier: Apache-2.0
"""The arrays of a rank for dispatches and combines of experts by tmap.peer, and graphs and times
that two ranks make together. Needs PyTorch, and its process group for those."""
import torch
import torch.distributed as dist

from tmap import peer

RANKS, REPEATS = 2, 7
PATIENCE = 30  # seconds; a rank may still load kernels
_SLEEP = 20_000_000  # cycles, about 10 ms: the host enqueues all work in the meantime


def expert_shape(tokens, width, experts, k, returned, ranks=RANKS):
    return peer.ExpertShape(tokens=tokens, k=k, experts=experts, columns=width, arrivals=ranks * tokens,
                            returned=returned)


def window_bytes(sizes, ranks=RANKS):
    """Returns the bytes of a window for `ExpertArrays` of these sizes."""
    rows = sizes.row_count(ranks) * sizes.columns * 2
    return sum(map(_whole, (sizes.tokens * sizes.columns * 2, rows, rows, sizes.workspace_bytes(ranks))))


def open_window(nbytes, memory):
    """Makes a window of both ranks in memory of NCCL, or in PyTorch's symmetric memory."""
    if memory == "nccl":
        with peer.Group.from_torch(patience=PATIENCE) as group:
            return group.allocate(nbytes)
    import torch.distributed._symmetric_memory as symmetric
    whole = nbytes + peer.Window.HEADER_BYTES
    buffer = symmetric.empty(whole, dtype=torch.uint8, device="cuda").zero_()
    handle = symmetric.rendezvous(buffer, dist.group.WORLD)
    meet()  # the memory is zero on both ranks
    with peer.Group.from_pointers(handle.buffer_ptrs, handle.rank, whole, keep=(buffer, handle)) as group:
        return group.allocate(nbytes)


class ExpertArrays:
    """The arrays of this rank. `x`, `rows`, `results` and `workspace` lie in the window."""

    def __init__(self, window, sizes):
        self.window, self.sizes, self._used = window, sizes, 0
        rows, tokens = sizes.row_count(window.ranks), sizes.tokens
        self.x = self._part((tokens, sizes.columns), "bf16")
        self.rows = self._part((rows, sizes.columns), "bf16")
        self.results = self._part((rows, sizes.columns), "bf16")
        self.workspace = self._part((sizes.workspace_bytes(window.ranks),), "u8")
        self.ids = torch.empty(tokens, sizes.k, device="cuda", dtype=torch.int32)
        self.weights = torch.empty(tokens, sizes.k, device="cuda")
        self.ends = torch.empty(sizes.experts // window.ranks, device="cuda", dtype=torch.int32)
        self.pending = torch.empty(sizes.experts // window.ranks + 1, device="cuda", dtype=torch.int32)
        self.out = torch.empty(tokens, sizes.columns, device="cuda", dtype=torch.bfloat16)

    def _part(self, shape, dtype):
        """Returns the next memory of the window."""
        made = torch.from_dlpack(self.window.array(shape, dtype, self._used))
        self._used += _whole(made.nbytes)
        return made

    def draw(self):
        """Draws tokens, different experts for each, and weights."""
        scores = torch.rand(self.sizes.tokens, self.sizes.experts, device="cuda")
        self.ids.copy_(torch.topk(scores, self.sizes.k).indices)
        self.weights.uniform_(0.1, 1)
        self.x.normal_()

    def dispatch(self, blocks, pending=None, ready=None):
        peer.dispatch(self.window, self.sizes, self.x, self.ids, out=self.rows, workspace=self.workspace,
                      weights=self.weights, ends=self.ends, pending=pending, ready=ready, blocks=blocks,
                      patience=PATIENCE)

    def combine(self, blocks):
        peer.combine(self.window, self.sizes, self.results, out=self.out, workspace=self.workspace,
                     weights=self.weights if self.sizes.returned == "rows" else None, blocks=blocks,
                     patience=PATIENCE)


def _whole(nbytes):
    return (nbytes + 255) // 256 * 256


def meet():
    """Waits on the host until both ranks are here and their GPUs are idle."""
    begin_together()
    torch.cuda.synchronize()


def begin_together():
    """Makes the current stream wait until that of the other rank comes here."""
    dist.all_reduce(torch.zeros(1, device="cuda"))


def larger_of_ranks(numbers):
    """Returns the larger one of each number of both ranks. Both ranks get the same."""
    made = torch.tensor(numbers, device="cuda", dtype=torch.float64)
    dist.all_reduce(made, op=dist.ReduceOp.MAX)
    return made.tolist()


def graph_of(call, calls=1):
    """Returns a graph of `calls` calls, after one that is not recorded and loads the kernels."""
    meet()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            for _ in range(calls):
                call()
    return graph


def microseconds(enqueue, calls):
    """Returns the median time of one of the calls that `enqueue` makes, of the slower rank. A
    kernel keeps the GPU busy while the host enqueues them, and an all-reduce lets both ranks begin
    together."""
    times = []
    enqueue()
    for _ in range(REPEATS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(_SLEEP)
        begin_together()
        begin.record()
        enqueue()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / calls)
    return sorted(larger_of_ranks(times))[REPEATS // 2]

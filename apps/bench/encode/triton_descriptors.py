# SPDX-License-Identifier: Apache-2.0
"""Measures Triton's device-made tensor maps (tl.make_tensor_descriptor), as a peer of encode_bench.
Prints Markdown.

Each program makes one map, as in a kernel over a ragged batch: it reads an address and a shape from
device memory, makes its map, loads one tile of 4 rows by 16 columns of f32 through it and writes
the tile's sum. Another kernel loads the same tile by pointers. The difference is the cost of the
map and its first use."""
import argparse
import statistics
import sys

try:
    import torch
    import triton
    import triton.language as tl
except ImportError as missing:
    print(f"triton_descriptors: {missing.name} is not installed")
    sys.exit(0)

ROWS, COLUMNS = 4, 16  # per tile
COUNTS = (1, 32, 256, 4096, 65536, 1048576)
STREAM_REPEATS, GRAPH_REPEATS, CHAIN, WARM_UP = 201, 25, 100, 3


@triton.jit
def sum_through_maps(addresses, rows, columns, pitches, sums, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.program_id(0)
    address = tl.load(addresses + i).to(tl.pointer_type(tl.float32))
    tensor = tl.make_tensor_descriptor(
        address, shape=[tl.load(rows + i), tl.load(columns + i)], strides=[tl.load(pitches + i), 1],
        block_shape=[ROWS, COLUMNS])
    tile = tensor.load([0, 0])
    tl.store(sums + i, tl.sum(tl.sum(tile, 1), 0))


@triton.jit
def sum_through_pointers(addresses, rows, columns, pitches, sums, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.program_id(0)
    address = tl.load(addresses + i).to(tl.pointer_type(tl.float32))
    row = tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, COLUMNS)[None, :]
    inside = (row < tl.load(rows + i)) & (column < tl.load(columns + i))
    tile = tl.load(address + row * tl.load(pitches + i) + column, mask=inside, other=0.0)
    tl.store(sums + i, tl.sum(tl.sum(tile, 1), 0))


class Batch:
    """Tensors of one tile each, with different widths. Every element of tensor i is i % 7."""

    def __init__(self, count):
        i = torch.arange(count, device="cuda", dtype=torch.int64)
        self.count = count
        self.values = (i % 7).to(torch.float32)
        self.data = self.values[:, None].expand(count, ROWS * COLUMNS).contiguous()
        self.addresses = self.data.data_ptr() + i * ROWS * COLUMNS * 4
        self.rows = torch.full((count,), ROWS, device="cuda", dtype=torch.int32)
        self.columns = (1 + i % COLUMNS).to(torch.int32)
        self.pitches = torch.full((count,), COLUMNS, device="cuda", dtype=torch.int64)
        self.sums = torch.empty(count, device="cuda", dtype=torch.float32)

    def run(self, kernel):
        arrays = (self.addresses, self.rows, self.columns, self.pitches, self.sums)
        kernel[(self.count,)](*arrays, ROWS, COLUMNS, num_warps=1)

    def check(self, kernel):
        self.sums.fill_(-1)
        self.run(kernel)
        if not torch.equal(self.sums, self.values * ROWS * self.columns):
            sys.exit(f"triton_descriptors: {kernel.__name__} sums wrongly")


def between_events(work):
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    work()
    stop.record()
    stop.synchronize()
    return start.elapsed_time(stop) * 1000


def median(repeats, work):
    return statistics.median([between_events(work) for _ in range(WARM_UP + repeats)][WARM_UP:])


def stream_microseconds(work):
    return median(STREAM_REPEATS, work)


def graph_microseconds(work):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CHAIN):
            work()
    return median(GRAPH_REPEATS, graph.replay) / CHAIN


def print_way(way, measure, batches):
    print(f"\n{way}\n")
    print("| maps | with a map each | with pointers | difference | maps at the difference, M/s |")
    print("|---|---|---|---|---|")
    for batch in batches:
        mapped, plain = (measure(lambda: batch.run(kernel)) for kernel in (sum_through_maps, sum_through_pointers))
        rate = f"{batch.count / (mapped - plain):.2f}" if mapped > plain else "-"
        print(f"| {batch.count:,} | {mapped:.2f} | {plain:.2f} | {mapped - plain:+.2f} | {rate} |", flush=True)


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    if not hasattr(tl, "make_tensor_descriptor"):
        print(f"triton_descriptors: Triton {triton.__version__} has no make_tensor_descriptor")
        return
    if not torch.cuda.is_available() or torch.cuda.get_device_capability()[0] < 9:
        print("triton_descriptors: needs a GPU of compute capability 9")
        return
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    batches = [Batch(count) for count in COUNTS]
    for batch in batches:
        batch.check(sum_through_maps)
        batch.check(sum_through_pointers)
    print(f"\nTensor maps made by Triton {triton.__version__} (PyTorch {torch.__version__}). Microseconds of a kernel.")
    print_way("On an idle stream, with what Python needs to launch it:", stream_microseconds, batches)
    print_way("As one of a hundred in a graph:", graph_microseconds, batches)


if __name__ == "__main__":
    main()

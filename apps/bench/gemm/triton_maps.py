#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a grouped product in Triton through tmap's maps with the same one through Triton's own
descriptors (tl.make_tensor_descriptor). Prints time and memory as Markdown.

The kernels differ in how they get their three descriptors, and in nothing else. tmap's time has the
kernels that encode the maps of a and c. The maps of b are encoded once.

    TMAP_LIBRARY=build/release/libtmap.so PYTHONPATH=python python3 apps/bench/gemm/triton_maps.py
"""
import argparse
import statistics
import sys
from pathlib import Path

try:
    import torch
    import triton
    import triton.language as tl

    import tmap
    import tmap.triton
except ImportError as missing:
    sys.exit(f"triton_maps: {missing}")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "samples" / "triton_grouped_gemm"))
from triton_grouped_gemm import (BK, BM, BN, encode, find_tile, grid_of, launch, maps_of_weights,  # noqa: E402
                                 multiply, multiply_tile)

SHAPES = ((8, 4096, 2048, 1024), (32, 8192, 4096, 1024), (128, 8192, 1536, 2048), (256, 4096, 768, 2048))
ROUNDS, CHAIN, WARM_UP = 15, 20, 3
MAP_BYTES = 128


@triton.jit
def multiply_by_own(a, b, c, ends, groups, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                    MOST: tl.constexpr):
    group, row, exists = find_tile(ends, groups, tl.program_id(1), BM, MOST)
    if exists:
        end = tl.load(ends + group)
        begin = tl.load(ends + group - 1, mask=group > 0, other=0)
        left = tl.make_tensor_descriptor(a + begin.to(tl.int64) * K, [end - begin, K], [K, 1], [BM, BK])
        right = tl.make_tensor_descriptor(b + group.to(tl.int64) * N * K, [N, K], [K, 1], [BN, BK])
        out = tl.make_tensor_descriptor(c + begin.to(tl.int64) * N, [end - begin, N], [N, 1], [BM, BN])
        multiply_tile(left, right, out, row, tl.program_id(0) * BN, K, BM, BN, BK)


class Scratch:
    """Gives memory to Triton's descriptors and notes the most that a launch took."""

    def __init__(self):
        self.most = 0

    def __call__(self, size, alignment, stream):
        self.most = max(self.most, size)
        return torch.empty(size, device="cuda", dtype=torch.int8)


def microseconds(enqueue, enqueue_in_graph):
    """Returns the medians of one product by itself and of one in a graph of many."""
    def between(work):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop) * 1000

    def median(work):
        return statistics.median([between(work) for _ in range(WARM_UP + ROUNDS)][WARM_UP:])

    alone = median(enqueue)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = [enqueue_in_graph() for _ in range(CHAIN)]
    chained = median(graph.replay) / CHAIN
    del kept  # the graph's maps are no longer used
    return alone, chained


def compare(shape, scratch):
    groups, rows, n, k = shape
    torch.manual_seed(groups)
    ends = torch.sort(torch.randint(0, rows + 1, (groups,))).values.int()
    ends[-1] = rows
    ends = ends.cuda()
    a = torch.randn(rows, k, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(groups, n, k, device="cuda", dtype=torch.bfloat16)
    outs = [torch.full((rows, n), float("nan"), device="cuda", dtype=torch.bfloat16) for _ in range(2)]
    scratch.most = 0
    # A capture takes back no slots of the calls before it, so all of them need slots of their own.
    calls = 1 + WARM_UP + ROUNDS + CHAIN
    with tmap.MapService(capacity=groups * (1 + 2 * calls)) as service, maps_of_weights(service, b) as b_maps:
        def by_tmap():
            multiply(service, a, b, b_maps, ends, outs[0])

        def by_own():
            multiply_by_own[grid_of(a, b)](a, b, outs[1], ends, groups, n, k, BM, BN, BK, triton.next_power_of_2(groups),
                                           num_warps=8, num_stages=3)

        def by_tmap_in_graph():
            maps = encode(service, a, outs[0], ends)
            launch(maps[0], b_maps, maps[1], a, b, ends)
            return maps

        by_tmap()
        unneeded = scratch.most
        by_own()
        torch.cuda.synchronize()
        if not torch.equal(outs[0], outs[1]) or unneeded:
            sys.exit(f"triton_maps: {shape}: results differ, or {unneeded} bytes of scratch for tmap's maps")
        for way, *enqueue, bytes_used in (("tmap's maps", by_tmap, by_tmap_in_graph, 3 * groups * MAP_BYTES),
                                          ("Triton's own", by_own, by_own, scratch.most)):
            alone, chained = microseconds(*enqueue)
            rate = 2e-6 * rows * n * k / chained
            print(f"| {groups}, {rows}, {n}, {k} | {way} | {alone:.1f} | {chained:.1f} | {rate:.0f} | {bytes_used:,} |",
                  flush=True)


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    if not torch.cuda.is_available() or torch.cuda.get_device_capability()[0] < 9:
        sys.exit("triton_maps: needs a Hopper GPU")
    scratch = Scratch()
    triton.set_allocator(scratch)
    print(f"Triton {triton.__version__}, PyTorch {torch.__version__}, {torch.cuda.get_device_name()}. Medians of {ROUNDS}.")
    print("\n| groups, rows, N, K | descriptors | us, one call | us, one of a graph | TFLOP/s | bytes of maps or scratch |")
    print("|---|---|---|---|---|---|")
    for shape in SHAPES:
        compare(shape, scratch)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Measures what zeros cost where no group of a product writes: with `zero_rest`, and by a fill of
the whole result before the product.

Usage: zero_rest.py. Prints microseconds in bf16, medians of graphs of ten calls. `used` is the part
of the rows that groups have. Needs PyTorch and a Hopper GPU."""
import statistics

import numpy as np
import torch

import tmap.torch_ops  # noqa: F401: registers the operators

SHAPES = ((8192, 2048, 1408, 64), (16384, 4096, 2048, 32), (16384, 2048, 2048, 16), (4096, 1024, 4096, 8),
          (32768, 512, 2048, 128))  # rows, k, n, groups
CALLS, REPLAYS, ROUNDS = 10, 40, 3


def microseconds(call):
    for _ in range(5):
        call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            call()
    taken = []
    for _ in range(REPLAYS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        taken.append(begin.elapsed_time(end) * 1000 / CALLS)
    return statistics.median(taken)


def print_line(name, used, a, b, ends, like):
    multiply = torch.ops.tmap.grouped_mm
    result = torch.empty_like(like)
    ways = (lambda: multiply(a, b, ends), lambda: multiply(a, b, ends, zero_rest=True),
            lambda: (result.zero_(), multiply(a, b, ends)))
    rounds = [[microseconds(way) for way in ways] for _ in range(ROUNDS)]
    plain, zeroed, filled = (statistics.median(each) for each in zip(*rounds))
    print(f"{name:28}{used:6.1f}{plain:9.1f}{zeroed:11.1f}{filled:12.1f}", flush=True)


def main():
    def normal(*shape):
        return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)

    print(f"{'rows, k, n, groups':28}{'used':>6}{'plain':>9}{'zero_rest':>11}{'fill first':>12}")
    for rows, k, n, groups in SHAPES:
        random = np.random.default_rng(7)
        a, b, slope = normal(rows, k), normal(groups, k, n) / 8, normal(rows, n)
        for used in (1.0, 0.5):
            sizes = random.multinomial(int(rows * used), random.dirichlet(np.ones(groups) * 4))
            ends = torch.tensor(np.cumsum(sizes), dtype=torch.int32, device="cuda")
            print_line(f"{rows}, {k}, {n}, {groups}", used, a, b, ends, slope)
        print_line("  sums over rows", used, a.t(), slope, ends, b)


if __name__ == "__main__":
    main()

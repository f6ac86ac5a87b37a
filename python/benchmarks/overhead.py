# SPDX-License-Identifier: Apache-2.0
"""Measures calls from Python and the GPU's time for them, compared with PyTorch's own calls, and
padding compared with loops. Prints Markdown. Takes a minute or two.

    TMAP_LIBRARY=build/release/libtmap.so python3 python/benchmarks/overhead.py [PART ...]

The parts are calls, products, padding, loops; none named are all. With libtmap_torch.so next to the
library, operators run in C++; TMAP_TORCH_LIBRARY= (empty) measures those in Python.
"""
import random
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the package next to this file

try:
    import torch
except ImportError:
    print("overhead: torch is not installed")
    sys.exit(0)
from torch.nn.functional import pad

REPEATS, CALLS = 7, 200
BURST = 0.2  # seconds


def host_microseconds(call, calls=CALLS):
    """Returns the median time of the host's thread for one call. The GPU's queue is never full."""
    for _ in range(20):
        call()
    times = []
    for _ in range(REPEATS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - start) / calls * 1e6)
    torch.cuda.synchronize()
    return statistics.median(times)


def burst(call, count):
    """Returns the GPU's microseconds for one call: the mean of the last three quarters of a row."""
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for i in range(count):
        if i == count // 4:
            start.record()
        call()
    stop.record()
    stop.synchronize()
    return start.elapsed_time(stop) * 1e3 / (count - count // 4)


def gpu_microseconds(calls):
    """Returns the GPU's time for one call of each, the median of bursts, the calls in turn. Bursts
    are long: a busy GPU sits at its power cap, so a short run depends on what ran before it."""
    counts = [4 + int(BURST * 1e6 / burst(call, 20)) for call in calls]
    times = [[burst(call, count) for call, count in zip(calls, counts)] for _ in range(REPEATS)]
    return [statistics.median(column) for column in zip(*times)]


LACKING = (AttributeError, NotImplementedError, RuntimeError, TypeError)


def say_lacking(case, reason):
    print(f"| {case} | - ({str(reason).splitlines()[0][:60]}) | |", flush=True)


def host_row(case, call, calls=CALLS):
    """Prints a line of the table, or the reason why this version of PyTorch has no such call."""
    try:
        print(f"| {case} | {host_microseconds(call, calls):.1f} | |", flush=True)
    except LACKING as reason:
        say_lacking(case, reason)


def gpu_rows(work, times=1, **calls):
    """Prints a line of the table for each, measured in turn. `work` is some work and its unit. A
    call does it some times."""
    able = {}
    for case, call in calls.items():
        try:
            call()
            able[case] = call
        except LACKING as reason:
            say_lacking(case, reason)
    amount, unit, case = work
    for name, took in zip(able, gpu_microseconds(list(able.values()))):
        took /= times
        print(f"| GPU, {case}: {name} | {took:.1f} | {amount / took * 1e-6:.0f} {unit} |",
              flush=True)


def products(groups, rows, n, k):
    source = random.Random(groups)
    cuts = sorted(source.randint(0, rows) for _ in range(groups - 1)) + [rows]
    if groups == rows:
        cuts = list(range(1, rows + 1))
    a = torch.randn(rows, k, device="cuda", dtype=torch.bfloat16)
    w = torch.randn(groups, n, k, device="cuda", dtype=torch.bfloat16).transpose(-2, -1)
    return a, w, torch.tensor(cuts, device="cuda", dtype=torch.int32)


def print_calls():
    import tmap
    a, w, ends = products(8, 64, 128, 128)
    ours, theirs = torch.ops.tmap.grouped_mm, getattr(torch, "_grouped_mm", None)
    host_row("host, grouped_mm: torch.ops.tmap", lambda: ours(a, w, ends))
    with torch.inference_mode():
        host_row("host, grouped_mm: torch.ops.tmap, inference_mode", lambda: ours(a, w, ends))
    compiled = torch.compile(lambda a, w, ends: ours(a, w, ends), fullgraph=True)
    host_row("host, grouped_mm: torch.ops.tmap, compiled", lambda: compiled(a, w, ends))
    as_before = torch.compile(lambda a, w: torch.mm(a, w), fullgraph=True)
    host_row("host, torch.mm, compiled", lambda: as_before(a, w[0]))
    host_row("host, grouped_mm: torch._grouped_mm", lambda: theirs(a, w, offs=ends))
    out = torch.empty(64, 128, device="cuda", dtype=torch.bfloat16)
    host_row("host, grouped_mm: tmap.grouped_mm", lambda: tmap.grouped_mm(a, w, ends, out=out))
    host_row("host, torch.mm", lambda: torch.mm(a, w[0]))
    with tmap.MapService() as service:
        host_row("host, encode_ragged, 8 maps, and release",
                 lambda: service.encode_ragged(a, ends, (32, 64), swizzle="128B").release())
    pad_ragged, unpad_ragged = torch.ops.tmap.pad_ragged, torch.ops.tmap.unpad_ragged
    dense = pad_ragged(a, ends, 64)
    host_row("host, pad_ragged", lambda: pad_ragged(a, ends, 64))
    host_row("host, unpad_ragged", lambda: unpad_ragged(dense, ends, 64))
    with torch.inference_mode():
        host_row("host, pad_ragged, inference_mode", lambda: pad_ragged(a, ends, 64))
        host_row("host, unpad_ragged, inference_mode", lambda: unpad_ragged(dense, ends, 64))


def print_products():
    for name, groups, rows, n, k in (("8 groups", 8, 8192, 2048, 2048),
                                     ("128 groups", 128, 65536, 1536, 2048),
                                     ("128 groups of 1 row", 128, 128, 1536, 2048)):
        a, w, ends = products(groups, rows, n, k)
        work = 2 * rows * n * k, "TFLOP/s", f"{name}, {rows} rows, n {n}, k {k}"
        gpu_rows(work, tmap=lambda: torch.ops.tmap.grouped_mm(a, w, ends),
                 torch=lambda: torch._grouped_mm(a, w, offs=ends))


def print_padding():
    source = random.Random(3)
    lengths = [source.randint(1, 1024) for _ in range(256)]
    values = torch.randn(sum(lengths), 512, device="cuda", dtype=torch.bfloat16)
    prefix = torch.tensor([0] + lengths, device="cuda").cumsum(0)
    moved = (values.numel() + 256 * 1024 * 512) * 2 * 1e3
    nested = torch.nested.nested_tensor(list(values.split(lengths)))
    gpu_rows((moved, "GB/s", "pad"),
             pad_ragged=lambda: torch.ops.tmap.pad_ragged(values, prefix, 1024, format="prefix"),
             to_padded_tensor=lambda: torch.nested.to_padded_tensor(nested, 0.0, (256, 1024, 512)),
             _jagged_to_padded_dense_forward=lambda: torch.ops.aten._jagged_to_padded_dense_forward(
                 values, [prefix], [1024], 0.0))


def padded_by_loop(values, lengths, longest):
    return torch.stack([pad(part, (0, 0, 0, longest - part.shape[0]))
                        for part in values.split(lengths)])


def unpadded_by_loop(dense, lengths):
    return torch.cat([one[:length] for one, length in zip(dense, lengths)])


def captured(call, count):
    """Returns a replay of a graph of some calls, in which the GPU never waits for the host."""
    call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            call()
    return graph.replay


def padding_rows(case, moved, ours, loop, calls, replayed):
    """Loops have their lengths from the host, which the operators need not know."""
    try:
        if not torch.equal(ours(), loop()):
            return say_lacking(case, "the results differ")
        host_row(f"host, {case}: tmap", ours, calls)
        host_row(f"host, {case}: loop", loop, calls)
        gpu_rows((moved * 1e3, "GB/s", f"{case}, replayed"), replayed,
                 tmap=captured(ours, replayed), loop=captured(loop, replayed))
    except LACKING as reason:
        say_lacking(case, reason)


def print_loops():
    source, longest = random.Random(4), 256
    # The start of a graph takes longer than a short call, so such calls are many in a graph.
    for count, calls, replayed in ((1, CALLS, 256), (8, CALLS, 64), (64, CALLS, 8), (512, 20, 1), (4096, 5, 1)):
        lengths = [source.randint(1, longest) for _ in range(count)]
        values = torch.randn(sum(lengths), 512, device="cuda", dtype=torch.bfloat16)
        prefix, total = torch.tensor([0] + lengths, device="cuda").cumsum(0), values.shape[0]
        dense = padded_by_loop(values, lengths, longest)
        padding_rows(f"pad {count} sequences of up to {longest} rows of 512",
                     (values.numel() + dense.numel()) * 2,
                     lambda: torch.ops.tmap.pad_ragged(values, prefix, longest, format="prefix"),
                     lambda: padded_by_loop(values, lengths, longest), calls, replayed)
        padding_rows(f"unpad {count} of them", 2 * values.numel() * 2,
                     lambda: torch.ops.tmap.unpad_ragged(dense, prefix, total, format="prefix"),
                     lambda: unpadded_by_loop(dense, lengths), calls, replayed)


PARTS = {"calls": print_calls, "products": print_products, "padding": print_padding,
         "loops": print_loops}


def main():
    if not torch.cuda.is_available():
        print("overhead: no GPU")
        return
    import tmap
    from tmap import torch_native, torch_ops  # noqa: F401
    kind = "C++" if torch_native.schemas else "Python"
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}, tmap {tmap.__version__}, "
          f"operators in {kind}\n")
    print("| case | microseconds | |\n| --- | --- | --- |")
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()


main()

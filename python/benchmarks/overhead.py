# SPDX-License-Identifier: Apache-2.0
"""What calls from Python cost, and what the GPU takes for them, beside PyTorch's own. Prints Markdown; some 20 seconds.

    TMAP_LIBRARY=build/release/libtmap.so python3 python/benchmarks/overhead.py
"""
import random
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the package beside this file

try:
    import torch
except ImportError:
    print("overhead: torch is not installed")
    sys.exit(0)

REPEATS, CALLS = 7, 200


def host_microseconds(call):
    """Of the host's thread for one call, the GPU's queue never full: the median."""
    for _ in range(20):
        call()
    times = []
    for _ in range(REPEATS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter() - start) / CALLS * 1e6)
    torch.cuda.synchronize()
    return statistics.median(times)


def gpu_microseconds(call):
    """Of the GPU for one call among calls in a row: the median. A sleep lets the host run ahead."""
    for _ in range(3):
        call()
    times = []
    for _ in range(REPEATS):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(2_000_000)
        start.record()
        for _ in range(10):
            call()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop) * 100)
    return statistics.median(times)


def row(case, measure, call, per_second=None):
    """One line of the table; what this version of PyTorch lacks says so."""
    try:
        took = measure(call)
        rate = "" if per_second is None else f"{per_second[0] / took * 1e-6:.0f} {per_second[1]}"
        print(f"| {case} | {took:.1f} | {rate} |", flush=True)
    except (AttributeError, NotImplementedError, RuntimeError, TypeError) as reason:
        print(f"| {case} | - ({str(reason).splitlines()[0][:60]}) | |", flush=True)


def products(groups, rows, n, k):
    source = random.Random(groups)
    cuts = sorted(source.randint(0, rows) for _ in range(groups - 1)) + [rows]
    if groups == rows:
        cuts = list(range(1, rows + 1))
    a = torch.randn(rows, k, device="cuda", dtype=torch.bfloat16)
    w = torch.randn(groups, n, k, device="cuda", dtype=torch.bfloat16).transpose(-2, -1)
    return a, w, torch.tensor(cuts, device="cuda", dtype=torch.int32)


def print_calls(tmap):
    a, w, ends = products(8, 64, 128, 128)
    ours, theirs = torch.ops.tmap.grouped_mm, getattr(torch, "_grouped_mm", None)
    row("host, grouped_mm: torch.ops.tmap", host_microseconds, lambda: ours(a, w, ends))
    row("host, grouped_mm: torch._grouped_mm", host_microseconds, lambda: theirs(a, w, offs=ends))
    out = torch.empty(64, 128, device="cuda", dtype=torch.bfloat16)
    row("host, grouped_mm: tmap.grouped_mm", host_microseconds, lambda: tmap.grouped_mm(a, w, ends, out=out))
    row("host, torch.mm", host_microseconds, lambda: torch.mm(a, w[0]))
    with tmap.MapService() as service:
        row("host, encode_ragged, 8 maps, and release", host_microseconds,
            lambda: service.encode_ragged(a, ends, (32, 64), swizzle="128B").release())
    row("host, pad_ragged", host_microseconds, lambda: torch.ops.tmap.pad_ragged(a, ends, 64))


def print_products():
    for name, groups, rows, n, k in (("8 groups", 8, 8192, 2048, 2048), ("128 groups", 128, 65536, 1536, 2048),
                                     ("128 groups of 1 row", 128, 128, 1536, 2048)):
        a, w, ends = products(groups, rows, n, k)
        work, shape = (2 * rows * n * k, "TFLOP/s"), f"{rows} rows, n {n}, k {k}"
        row(f"GPU, {name}, {shape}: tmap", gpu_microseconds, lambda: torch.ops.tmap.grouped_mm(a, w, ends), work)
        row(f"GPU, {name}, {shape}: torch", gpu_microseconds, lambda: torch._grouped_mm(a, w, offs=ends), work)


def print_padding():
    source = random.Random(3)
    lengths = [source.randint(1, 1024) for _ in range(256)]
    values = torch.randn(sum(lengths), 512, device="cuda", dtype=torch.bfloat16)
    prefix = torch.tensor([0] + lengths, device="cuda").cumsum(0)
    moved = ((values.numel() + 256 * 1024 * 512) * 2 * 1e3, "GB/s")
    nested = torch.nested.nested_tensor(list(values.split(lengths)))
    row("GPU, pad: tmap.pad_ragged", gpu_microseconds,
        lambda: torch.ops.tmap.pad_ragged(values, prefix, 1024, format="prefix"), moved)
    row("GPU, pad: torch.nested.to_padded_tensor", gpu_microseconds,
        lambda: torch.nested.to_padded_tensor(nested, 0.0, (256, 1024, 512)), moved)
    row("GPU, pad: _jagged_to_padded_dense_forward", gpu_microseconds,
        lambda: torch.ops.aten._jagged_to_padded_dense_forward(values, [prefix], [1024], 0.0), moved)


def main():
    if not torch.cuda.is_available():
        print("overhead: no GPU")
        return
    import tmap
    import tmap.torch_ops  # noqa: F401
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}, tmap {tmap.__version__}\n")
    print("| case | microseconds | |\n| --- | --- | --- |")
    print_calls(tmap)
    print_products()
    print_padding()


main()

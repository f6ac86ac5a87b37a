# SPDX-License-Identifier: Apache-2.0
"""Measures PyTorch on the shapes of ragged_bench: padding of jagged sequences, and transposes one
by one. Prints Markdown with GB/s, counted as in ragged_bench."""
import math
import random
import statistics
import sys

try:
    import torch
except ImportError:
    print("ragged_torch: torch is not installed")
    sys.exit(0)

SEQUENCES, FEATURES, LONGEST = 512, 512, 4096
MATRICES = 4096
REPEATS, WARM_UP = 9, 2


def microseconds(enqueue):
    """Returns the median time of one call, measured with events."""
    times = []
    for i in range(WARM_UP + REPEATS):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        enqueue()
        stop.record()
        stop.synchronize()
        if i >= WARM_UP:
            times.append(start.elapsed_time(stop) * 1000)
    return statistics.median(times)


def row(case, bytes_moved, enqueue):
    """Prints one row of the table, or that this version of torch lacks the operation."""
    try:
        print(f"| {case} | {bytes_moved * 1e-3 / microseconds(enqueue):.0f} |", flush=True)
    except (AttributeError, NotImplementedError, RuntimeError) as reason:
        print(f"| {case} | - ({str(reason).splitlines()[0]}) |", flush=True)


def sequences(source):
    lengths = [source.randint(1, LONGEST) for _ in range(SEQUENCES)]
    values = torch.randn(sum(lengths), FEATURES, device="cuda", dtype=torch.bfloat16)
    ends = torch.tensor([0] + lengths, device="cuda").cumsum(0)
    return lengths, values, ends


def print_padding(source):
    lengths, values, ends = sequences(source)
    ragged_bytes = values.numel() * 2
    dense_bytes = SEQUENCES * LONGEST * FEATURES * 2
    nested = torch.nested.nested_tensor(list(values.split(lengths)))
    row("pad: torch.nested.to_padded_tensor", ragged_bytes + dense_bytes,
        lambda: torch.nested.to_padded_tensor(nested, 0.0, (SEQUENCES, LONGEST, FEATURES)))
    row("pad: _jagged_to_padded_dense_forward", ragged_bytes + dense_bytes,
        lambda: torch.ops.aten._jagged_to_padded_dense_forward(values, [ends], [LONGEST], 0.0))
    dense = torch.zeros(SEQUENCES, LONGEST, FEATURES, device="cuda", dtype=torch.bfloat16)
    row("unpad: _padded_dense_to_jagged_forward", 2 * ragged_bytes,
        lambda: torch.ops.aten._padded_dense_to_jagged_forward(dense, [ends], values.shape[0]))


def matrices(source, element_bytes, multiple):
    shapes = []
    for _ in range(MATRICES):
        elements = 16384 * 16 ** source.random() / element_bytes
        ratio = 0.5 * 4 ** source.random()
        sides = (math.sqrt(elements * ratio), math.sqrt(elements / ratio))
        shapes.append(tuple(-(-math.ceil(side) // multiple) * multiple for side in sides))
    return shapes


def print_transposes(source, dtype, multiple):
    shapes = matrices(source, dtype.itemsize, multiple)
    inputs = [torch.zeros(shape, device="cuda", dtype=dtype) for shape in shapes]
    outputs = [torch.empty(shape[::-1], device="cuda", dtype=dtype) for shape in shapes]

    def run():
        for matrix, turned in zip(inputs, outputs):
            turned.copy_(matrix.t())

    moved = 2 * sum(rows * columns for rows, columns in shapes) * dtype.itemsize
    row(f"transpose: {MATRICES} copies of .t(), {dtype}, one by one", moved, run)


def main():
    if not torch.cuda.is_available():
        print("ragged_torch: no GPU")
        return
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}\n")
    print("| case | GB/s |\n| --- | --- |")
    source = random.Random(5)
    print_padding(source)
    print_transposes(source, torch.float32, 4)
    print_transposes(source, torch.bfloat16, 8)


main()

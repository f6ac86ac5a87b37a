# SPDX-License-Identifier: Apache-2.0
"""Compares the handlers of `tmap.jax.pad_ragged` and `unpad_ragged` with the gathers that XLA
compiles for other platforms.

Usage: jax_padding.py [seconds for each figure]. Prints microseconds and GB/s of one operation: a
program does it eight times, with rows of its own each time. Needs a Hopper GPU."""
import statistics
import sys
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import tmap.jax
from tmap import _jax_padding as parts

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 0.3
SHAPES = ((16384, 2048, 64, 512), (65536, 512, 128, 1024), (32768, 64, 256, 256))  # rows, columns, groups, slot
TIMES = 8


def microseconds(call, many, ends):
    program = jax.jit(lambda many, ends: [call(each, ends) for each in many])
    for _ in range(3):
        jax.block_until_ready(program(many, ends))
    taken, finish = [], time.perf_counter() + SECONDS
    while time.perf_counter() < finish or len(taken) < 3:
        begin = time.perf_counter()
        for _ in range(10):
            out = program(many, ends)
        jax.block_until_ready(out)
        taken.append((time.perf_counter() - begin) / 10 / TIMES * 1e6)
    return statistics.median(taken)


def main():
    print(f"JAX {jax.__version__}, {jax.devices()[0].device_kind}")
    print(f"{'rows, columns, groups, slot':30}{'operation':>10}{'tmap us':>10}{'GB/s':>8}{'XLA us':>10}")
    for rows, columns, groups, slot in SHAPES:
        random = np.random.default_rng(7)
        sizes = np.minimum(random.multinomial(rows, random.dirichlet(np.ones(groups) * 4)), slot)
        ends = jnp.cumsum(jnp.asarray(sizes, jnp.int32))
        values = [jnp.full((rows, columns), each, jnp.bfloat16) for each in range(TIMES)]
        dense = [jnp.full((groups, slot, columns), each, jnp.bfloat16) for each in range(TIMES)]
        layout = parts._Layout(rows, slot)
        for name, given, written, ours, theirs in (
                ("pad", values, groups * slot, partial(parts._pad_on_cuda, layout, 0),
                 partial(parts._pad_elsewhere, layout, 0)),
                ("unpad", dense, rows, partial(parts._unpad_on_cuda, layout), partial(parts._unpad_elsewhere, layout))):
            moved = (int(sizes.sum()) + written) * columns * 2
            mine, peer = (microseconds(call, given, ends) for call in (ours, theirs))
            print(f"{f'{rows}, {columns}, {groups}, {slot}':30}{name:>10}{mine:10.1f}{moved / mine / 1e3:8.0f}{peer:10.1f}")


if __name__ == "__main__":
    main()

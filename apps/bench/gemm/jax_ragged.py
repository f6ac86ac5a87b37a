# SPDX-License-Identifier: Apache-2.0
"""Compares `tmap.jax.ragged_dot` and its gradients with XLA's own lowering of `jax.lax.ragged_dot`
and with the Pallas kernels for Hopper that JAX brings.

Usage: jax_ragged.py [seconds for each figure]. Prints microseconds, medians of batches of calls,
and the temporary memory of XLA's gradient of weights. Needs a Hopper GPU."""
import os
import statistics
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.6")

try:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import lax

    import tmap.jax
except ImportError as missing:
    sys.exit(f"jax_ragged: {missing}")

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 0.3
SHAPES = ((8192, 2048, 1408, 64), (16384, 4096, 2048, 32), (16384, 2048, 2048, 16))  # rows, k, n, groups
SUMS = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
TURNED = lax.RaggedDotDimensionNumbers((((1,), (2,)), ((), ())), (0,), (0,))
BLOCKS = dict(block_m=128, block_n=128, block_k=64, max_concurrent_steps=4, grid_block_n=8)


def microseconds(call, *given):
    """Returns the median over batches of calls that are enqueued together."""
    call = jax.jit(call)
    for _ in range(3):
        jax.block_until_ready(call(*given))
    taken, end = [], time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(taken) < 3:
        begin = time.perf_counter()
        for _ in range(20):
            out = call(*given)
        jax.block_until_ready(out)
        taken.append((time.perf_counter() - begin) / 20 * 1e6)
    return statistics.median(taken)


def figure(call, *given):
    """Returns the figure as text, or why there is none."""
    try:
        return f"{microseconds(call, *given):10.1f}"
    except Exception as reason:  # a peer that does not run is a result, too
        print(f"  {type(reason).__name__}: {str(reason)[:160]}", file=sys.stderr)
        return f"{'-':>10}"


def pallas():
    try:
        from jax.experimental.pallas.ops.gpu import ragged_dot_mgpu, transposed_ragged_dot_mgpu
        return (lambda a, b, s: ragged_dot_mgpu.ragged_dot(a, b, group_sizes=s, **BLOCKS),
                lambda a, b, s: ragged_dot_mgpu.ragged_dot(a, b, group_sizes=s, transpose_rhs=True, **BLOCKS),
                lambda a, b, s: transposed_ragged_dot_mgpu.transposed_ragged_dot(a, b, group_sizes=s, **BLOCKS))
    except ImportError as reason:
        print(f"no kernels of Pallas: {reason}", file=sys.stderr)
        return None


def main():
    if jax.default_backend() != "gpu":
        sys.exit("jax_ragged: JAX sees no GPU")
    kernels = pallas()
    print(f"JAX {jax.__version__}, {jax.devices()[0].device_kind}")
    print(f"{'rows, k, n, groups':28}{'product':>10}{'tmap':>10}{'XLA':>10}{'Pallas':>10}")
    for rows, k, n, groups in SHAPES:
        random = np.random.default_rng(7)
        sizes = jnp.asarray(random.multinomial(rows, random.dirichlet(np.ones(groups) * 4)), jnp.int32)
        lhs, slope = (jnp.asarray(random.standard_normal((rows, width)), jnp.bfloat16) for width in (k, n))
        rhs = jnp.asarray(random.standard_normal((groups, k, n)) / 8, jnp.bfloat16)
        cases = (
            ("forward", (lhs, rhs, sizes), tmap.jax.ragged_dot, lax.ragged_dot),
            ("dlhs", (slope, rhs, sizes), lambda *of: tmap.jax.ragged_dot_general(*of, TURNED),
             lambda *of: lax.ragged_dot_general(*of, TURNED)),
            ("drhs", (lhs, slope, sizes), lambda *of: tmap.jax.ragged_dot_general(*of, SUMS),
             lambda *of: lax.ragged_dot_general(*of, SUMS)))
        for place, (name, given, ours, theirs) in enumerate(cases):
            peer = figure(kernels[place], *given) if kernels else f"{'-':>10}"
            print(f"{f'{rows}, {k}, {n}, {groups}':28}{name:>10}{figure(ours, *given)}{figure(theirs, *given)}{peer}",
                  flush=True)
        used = jax.jit(cases[2][3]).lower(*cases[2][1]).compile().memory_analysis()
        print(f"{'':28}{'drhs':>10} of XLA: {used.temp_size_in_bytes / 2**20:.0f} MiB of temporary memory")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""The calls of the package `grouped_gemm`.

ops.gmm(a, b, batch_sizes, trans_b=False)
    Multiplies rows `a` [tokens, k], sorted by group, by `b` [groups, k, n], or [groups, n, k] with
    `trans_b`. Returns [tokens, n]. a and b have gradients.
backend.gmm(a, b, batch_sizes, trans_a=False, trans_b=False, c=None)
    Does the same without gradients. With `trans_a`, it multiplies a [tokens, m], turned, by
    b [tokens, n] in each group, and returns [groups, m, n]. A result `c` of yours, without gaps, is
    written and returned.

a and b are bfloat16 or float16. `batch_sizes` has the rows of each group, int32 or int64, on the
CPU or on the device. Rows after those of all groups are undefined in the result, or stay as they
are in `c`; in gradients they are zero.
"""
from . import backend, ops

__all__ = ["backend", "ops"]

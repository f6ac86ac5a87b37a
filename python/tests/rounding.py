# SPDX-License-Identifier: Apache-2.0
"""How far rounding moves a number, by its format. Tolerances of tests follow from this."""
import torch

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
# Half a unit in the last place, of a normal number and relative to it.
HALF_UNIT = {torch.bfloat16: 2 ** -8, torch.float16: 2 ** -11, E4M3: 2 ** -4, E5M2: 2 ** -3}
# Half of the smallest number above 0: how far smaller numbers may move.
HALF_SMALLEST = {E4M3: 2 ** -10, E5M2: 2 ** -17}
# Tensor cores add 32 terms of 8 bits at a time, and drop what lies 13 bits below the largest. The
# largest of normal terms is some 4 times their root mean square, and errors of either sign do not
# add up: 2^-11 of the norm of the sums. This leaves a factor of 2. Sums in f32 are far better.
OF_SUMS = 2 ** -10


def exact(values, scales, lines=1):
    """Returns what 8-bit values stand for, in f64. A scale is of `lines` lines of 128 elements."""
    columns = scales.repeat_interleave(128, -1)[..., :values.shape[-1]]
    return values.double() * columns.repeat_interleave(lines, -2)[..., :values.shape[-2], :].double()


def is_rounded(found, wanted, scales, dtype):
    """Whether `found`, [rows, columns] times the scales, is `wanted` rounded to 8 bits."""
    each = scales.repeat_interleave(128, 1)[:, :wanted.shape[1]].double()
    error = (exact(found, scales) - wanted.double()).abs()
    # The last factor is for the reciprocal of the scale and the product, which are rounded to f32.
    allowed = (wanted.double().abs() * HALF_UNIT[dtype] + each * HALF_SMALLEST[dtype]) * (1 + 2 ** -15)
    return bool((error <= allowed).all())

# SPDX-License-Identifier: Apache-2.0
"""Padding by definition, with which the tests of tmap.jax compare."""
import numpy as np

SIZES = np.array([3, 0, 5, 2], np.int32)  # of 13 rows: three belong to no group


def _groups(sizes, rows):
    ends = np.cumsum(sizes)
    return [(max(end - size, 0), min(end, rows)) for end, size in zip(ends, sizes)]


def padded_by_definition(values, sizes, slot, fill):
    values = np.asarray(values)
    padded = np.full((len(sizes), slot, *values.shape[1:]), fill, values.dtype)
    for group, (begin, end) in enumerate(_groups(sizes, len(values))):
        taken = values[begin:end][:slot]
        padded[group, :len(taken)] = taken
    return padded


def unpadded_by_definition(padded, sizes, rows):
    padded = np.asarray(padded)
    values = np.zeros((rows, *padded.shape[2:]), padded.dtype)
    for group, (begin, end) in enumerate(_groups(sizes, rows)):
        taken = max(min(end - begin, padded.shape[1]), 0)
        values[begin:begin + taken] = padded[group, :taken]
    return values

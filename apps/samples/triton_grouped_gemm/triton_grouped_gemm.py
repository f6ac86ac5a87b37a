#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Multiplies ragged groups of rows by a matrix each, in a Triton kernel whose maps are made on the
GPU: c[rows of g] = a[rows of g] @ b[g].T, in bf16.

The host never learns how many rows a group has. Rows after the end of a group load as zeros and are
not stored, because each map ends where its group ends.

    python3 apps/samples/triton_grouped_gemm/triton_grouped_gemm.py
"""
import sys

import torch
import triton
import triton.language as tl

import tmap
import tmap.triton

BM, BN, BK = 128, 128, 64


@triton.jit
def find_tile(ends, groups, tile, BM: tl.constexpr, MOST: tl.constexpr):
    """Returns the group of a tile of rows, its first row in the group, and whether there is one."""
    i = tl.arange(0, MOST)
    end = tl.load(ends + i, mask=i < groups, other=0)
    begin = tl.load(ends + i - 1, mask=(i > 0) & (i < groups), other=0)
    tiles = tl.where(i < groups, tl.cdiv(end - begin, BM), 0)
    group = tl.sum((tl.cumsum(tiles, 0) <= tile).to(tl.int32), 0)
    before = tl.sum(tl.where(i < group, tiles, 0), 0)
    return group, (tile - before) * BM, group < groups


@triton.jit
def multiply_tile(left, right, out, row, column, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Multiplies by three tensor descriptors."""
    sums = tl.zeros([BM, BN], tl.float32)
    for at in range(0, K, BK):
        sums = tl.dot(left.load([row, at]), right.load([column, at]).T, sums)
    out.store([row, column], sums.to(tl.bfloat16))


@triton.jit
def multiply_groups(a, b, c, ends, groups, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                    MOST: tl.constexpr):
    """Multiplies one tile. a, b and c are arrays of a map for each group."""
    group, row, exists = find_tile(ends, groups, tl.program_id(1), BM, MOST)
    if exists:
        left = tmap.triton.tensor_map(a, group, [BM, BK])
        right = tmap.triton.tensor_map(b, group, [BN, BK])
        out = tmap.triton.tensor_map(c, group, [BM, BN])
        multiply_tile(left, right, out, row, tl.program_id(0) * BN, K, BM, BN, BK)


def grid_of(a, b):
    """Returns a grid that has a program for each tile, for any sizes of groups."""
    return triton.cdiv(b.shape[1], BN), a.shape[0] // BM + b.shape[0]


def maps_of_weights(service, b):
    """Encodes a map for each group's matrix, once for all products."""
    groups, n, k = b.shape
    ends = torch.arange(1, groups + 1, device="cuda", dtype=torch.int32) * n
    return service.encode_ragged(b.view(groups * n, k), ends, **tmap.triton.modes("bf16", (BN, BK)))


def encode(service, a, c, ends):
    """Encodes a map for the rows of each group in a and in c."""
    return (service.encode_ragged(a, ends, **tmap.triton.modes("bf16", (BM, BK))),
            service.encode_ragged(c, ends, **tmap.triton.modes("bf16", (BM, BN))))


def launch(a_maps, b_maps, c_maps, a, b, ends):
    """Multiplies through maps and returns the kernel."""
    return multiply_groups[grid_of(a, b)](
        tmap.triton.tensor_maps(a_maps, (BM, BK)), tmap.triton.tensor_maps(b_maps, (BN, BK)),
        tmap.triton.tensor_maps(c_maps, (BM, BN)), ends, len(ends), a.shape[1], BM, BN, BK,
        triton.next_power_of_2(len(ends)), num_warps=8, num_stages=3)


def multiply(service, a, b, b_maps, ends, c):
    """Enqueues the product. Nothing waits for the GPU."""
    a_maps, c_maps = encode(service, a, c, ends)
    with a_maps, c_maps:
        return launch(a_maps, b_maps, c_maps, a, b, ends)


def main():
    if not torch.cuda.is_available() or torch.cuda.get_device_capability()[0] < 9:
        sys.exit("triton_grouped_gemm: needs a Hopper GPU")
    torch.manual_seed(1)
    groups, n, k = 24, 512, 1024
    ends = torch.cumsum(torch.randint(0, 300, (groups,)), 0).int().cuda()
    a = torch.randn(int(ends[-1]), k, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(groups, n, k, device="cuda", dtype=torch.bfloat16)
    c = torch.full((a.shape[0], n), float("nan"), device="cuda", dtype=torch.bfloat16)
    with tmap.MapService() as service, maps_of_weights(service, b) as b_maps:
        kernel = multiply(service, a, b, b_maps, ends, c)
        begin, wrong = 0, 0
        for group, end in enumerate(ends.tolist()):
            wanted = (a[begin:end].float() @ b[group].float().T)
            wrong += not torch.allclose(c[begin:end].float(), wanted, rtol=0.02, atol=0.5)
            begin = end
    print(f"{groups} groups of {a.shape[0]} rows: {wrong} wrong; {kernel.metadata.global_scratch_size} bytes of scratch")
    return int(wrong != 0)


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Times dispatches of experts in graphs on one GPU, of one rank and of virtual ranks. Prints
Markdown. Checks bytes first. Needs PyTorch and a Hopper GPU."""
import sys

try:
    import torch
except ImportError as reason:
    sys.exit(f"experts_graphs.py: needs PyTorch: {reason}")
import virtual_ranks
from expert_arrays import ExpertArrays, expert_shape, window_bytes
from virtual_ranks import VirtualRank, windows

RANKS, BLOCKS = (1, 2, 4, 8), 8  # the blocks of all ranks run at the same time
SIZES = ((16, 7168, 256, 8), (128, 7168, 256, 8), (1024, 4096, 64, 2))  # tokens, values, experts, choices


def expected_rows(arrays, rank):
    """Returns the rows for the experts of a rank: those of each expert by rank, then by token."""
    here = arrays[0].sizes.experts // len(arrays)
    return torch.cat([each.x[(each.ids == expert).any(1)] for expert in range(rank * here, (rank + 1) * here)
                      for each in arrays])


def has_expected_rows(arrays, rank):
    rows = expected_rows(arrays, rank)
    return torch.equal(arrays[rank].rows[:len(rows)].view(torch.int16), rows.view(torch.int16))


def microseconds(ranks, sizes, blocks):
    shape = expert_shape(*sizes, "sums", ranks)
    arrays = [ExpertArrays(window, shape) for window in windows(ranks, window_bytes(shape, ranks))]
    for each in arrays:
        each.draw()
    everyone = [VirtualRank(each.window, lambda each=each: each.dispatch(blocks)) for each in arrays]
    return virtual_ranks.microseconds(everyone, lambda: all(has_expected_rows(arrays, rank) for rank in range(ranks)))


def main():
    if not torch.cuda.is_available():
        sys.exit("experts_graphs.py: needs a GPU")
    print(f"{torch.cuda.get_device_name()}, microseconds a dispatch by {BLOCKS} blocks in graphs of {virtual_ranks.CALLS}\n")
    print(f"| tokens, values, experts, choices | {' | '.join(f'ranks: {each}' for each in RANKS)} |")
    print("|---" * (1 + len(RANKS)) + "|")
    for sizes in SIZES:
        cells = [f"{microseconds(ranks, sizes, BLOCKS):.1f}" for ranks in RANKS]
        print(f"| {', '.join(map(str, sizes))} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Times exchanges of rows in graphs on one GPU, of one rank and of two and eight virtual ranks.
Prints Markdown. Checks bytes first. Needs PyTorch and a Hopper GPU."""
import sys

try:
    import torch
except ImportError as reason:
    sys.exit(f"exchange_graphs.py: needs PyTorch: {reason}")
import virtual_ranks
from virtual_ranks import VirtualRank, windows

SPLITS, OUT_SPLITS, ROWS = 0, 4096, 8192  # places in a window
ALIGNED = ((1, 16), (128, 80), (4, 1024), (128, 8192), (2048, 8192))
MANY_RANKS = ((1, 16), (128, 80), (4, 1024))
ODD = ((100, 81, 1), (16384, 1023, 1), (200000, 81, 0))  # rows, bytes of a row, bytes off an aligned address


class Rows:
    """One rank's arrays in its window. It sends all rows to the next rank."""

    def __init__(self, window, rows, row_bytes, blocks, skew):
        def tensor(shape, dtype, offset):
            return torch.from_dlpack(window.array(shape, dtype, offset))

        self.window, self.blocks = window, blocks
        self.splits = tensor((window.ranks,), "i32", SPLITS)
        self.out_splits = tensor((window.ranks,), "i32", OUT_SPLITS)
        self.rows = tensor((rows, row_bytes), "u8", ROWS + skew)
        self.out = tensor((rows, row_bytes), "u8", (ROWS + rows * row_bytes + 511) // 256 * 256 + 3 * skew)
        self.splits.zero_()
        self.splits[(window.rank + 1) % window.ranks] = rows
        self.rows.random_(0, 256)
        self.out.zero_()

    def exchange(self):
        self.window.exchange_rows(self.rows, self.splits, self.out, self.out_splits, blocks=self.blocks)


def microseconds(ranks, rows, row_bytes, blocks, skew=0):
    made = [Rows(window, rows, row_bytes, blocks, skew) for window in windows(ranks, 2 * rows * row_bytes + 65536)]
    everyone = [VirtualRank(each.window, each.exchange) for each in made]
    return virtual_ranks.microseconds(
        everyone, lambda: all(torch.equal(each.out, made[i - 1].rows) for i, each in enumerate(made)))


def main():
    if not torch.cuda.is_available():
        sys.exit("exchange_graphs.py: needs a GPU")
    print(f"{torch.cuda.get_device_name()}, microseconds a call in graphs of {virtual_ranks.CALLS}\n")
    aligned = [(ranks, *size, 0) for ranks in (1, 2) for size in ALIGNED] + [(8, *size, 0) for size in MANY_RANKS]
    odd = [(2, *size) for size in ODD]
    for sizes, blocks in ((aligned, (1, 2, 16)), (odd, (4, 16, 32))):
        print(f"{blocks[0]}, {blocks[1]} and {blocks[2]} blocks\n\n| ranks | rows | bytes off | | | |\n|---|---|---|---|---|---|")
        for ranks, rows, row_bytes, skew in sizes:
            cells = [f"{microseconds(ranks, rows, row_bytes, each, skew):.2f}" for each in blocks]
            print(f"| {ranks} | {rows} x {row_bytes} | {skew} | {' | '.join(cells)} |", flush=True)
        print()


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Times exchanges of rows in graphs on one GPU, of one rank and of two virtual ranks. Prints
Markdown. Checks bytes first. Needs PyTorch and a Hopper GPU."""
import sys

try:
    import torch
except ImportError as reason:
    sys.exit(f"exchange_graphs.py: needs PyTorch: {reason}")
from tmap import peer

CALLS, REPEATS = 40, 7
SPLITS, OUT_SPLITS, ROWS = 0, 4096, 8192  # places in a window
ALIGNED = ((1, 16), (128, 80), (4, 1024), (128, 8192), (2048, 8192))
ODD = ((100, 81, 1), (16384, 1023, 1), (200000, 81, 0))  # rows, bytes of a row, bytes off an aligned address


class Rank:
    """One rank's arrays in its window. It sends all rows to the next rank."""

    def __init__(self, window, rows, row_bytes, blocks, skew):
        def tensor(shape, dtype, offset):
            return torch.from_dlpack(window.array(shape, dtype, offset))

        self.window, self.blocks, self.stream = window, blocks, torch.cuda.Stream()
        self.splits = tensor((window.ranks,), "i32", SPLITS)
        self.out_splits = tensor((window.ranks,), "i32", OUT_SPLITS)
        self.rows = tensor((rows, row_bytes), "u8", ROWS + skew)
        self.out = tensor((rows, row_bytes), "u8", (ROWS + rows * row_bytes + 511) // 256 * 256 + 3 * skew)
        self.splits.zero_()
        self.splits[(window.rank + 1) % window.ranks] = rows
        self.rows.random_(0, 256)
        self.out.zero_()
        torch.cuda.synchronize()

    def call(self):
        with torch.cuda.stream(self.stream):
            self.window.exchange_rows(self.rows, self.splits, self.out, self.out_splits, blocks=self.blocks)

    def capture(self):
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(self.stream):
            self.graph.capture_begin()
            for _ in range(CALLS):
                self.call()
            self.graph.capture_end()

    def replay(self):
        self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with torch.cuda.stream(self.stream):
            self.begin.record()
            self.graph.replay()
            self.end.record()


def windows(ranks, nbytes):
    buffer_bytes = peer.Window.HEADER_BYTES + nbytes
    memory = [torch.zeros(buffer_bytes, dtype=torch.uint8, device="cuda") for _ in range(ranks)]
    torch.cuda.synchronize()
    pointers = [each.data_ptr() for each in memory]
    return [peer.Group.from_pointers(pointers, rank, buffer_bytes, keep=memory).allocate(nbytes)
            for rank in range(ranks)]


def microseconds(ranks, rows, row_bytes, blocks, skew=0):
    everyone = [Rank(window, rows, row_bytes, blocks, skew) for window in windows(ranks, 2 * rows * row_bytes + 65536)]
    for each in everyone:
        each.call()
    for each in everyone:
        each.window.last_outcome(stream=each.stream)
    for i, each in enumerate(everyone):
        if not torch.equal(each.out, everyone[i - 1].rows):
            sys.exit("exchange_graphs.py: wrong rows came")
    for each in everyone:
        each.capture()
    times = []
    for _ in range(REPEATS):
        torch.cuda.synchronize()
        for each in everyone:
            each.replay()
        torch.cuda.synchronize()
        times.append(min(each.begin.elapsed_time(each.end) for each in everyone) * 1000 / CALLS)
    for each in everyone:
        each.window.last_outcome(stream=each.stream)
    return sorted(times)[REPEATS // 2]


def main():
    if not torch.cuda.is_available():
        sys.exit("exchange_graphs.py: needs a GPU")
    print(f"{torch.cuda.get_device_name()}, microseconds a call in graphs of {CALLS}\n")
    aligned = [(ranks, *size, 0) for ranks in (1, 2) for size in ALIGNED]
    odd = [(2, *size) for size in ODD]
    for sizes, blocks in ((aligned, (1, 2, 16)), (odd, (4, 16, 32))):
        print(f"{blocks[0]}, {blocks[1]} and {blocks[2]} blocks\n\n| ranks | rows | bytes off | | | |\n|---|---|---|---|---|---|")
        for ranks, rows, row_bytes, skew in sizes:
            cells = [f"{microseconds(ranks, rows, row_bytes, each, skew):.2f}" for each in blocks]
            print(f"| {ranks} | {rows} x {row_bytes} | {skew} | {' | '.join(cells)} |", flush=True)
        print()


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Times dispatches to experts on two GPUs and their combines, a process each, by tmap.peer in CUDA
graphs and by PyTorch's operators with NCCL. PyTorch's sizes come from the GPU as tmap's do. Prints
Markdown. Checks results first. Needs PyTorch 2.8 and two Hopper GPUs."""
import argparse

import two_processes

CASES = ((4096, 4096, 16, 1), (4096, 4096, 16, 2), (128, 7168, 16, 8), (128, 7168, 256, 8),
         (8192, 7168, 256, 8))  # tokens of each rank, width, experts of both, k
BLOCKS = (16, 32, 64, 128)
COLUMNS = ("tokens of each rank", "width", "experts", "k", "blocks", "MB to the other rank", "MB home",
           "dispatch (GB/s)", "combine (GB/s)", "PyTorch's dispatch", "PyTorch's combine", "PyTorch / tmap")


def rows_of(text):
    rows = [int(each) for each in text.split(",")]
    if not all(0 <= row < len(CASES) for row in rows):
        raise argparse.ArgumentTypeError(f"{text!r} must be numbers from 0 to {len(CASES) - 1}")
    return rows


def options():
    parser = argparse.ArgumentParser(prog="experts_torch.py", description=__doc__.split(" PyTorch's sizes")[0])
    parser.add_argument("--rows", type=rows_of, default=list(range(len(CASES))), metavar="NUMBER,...",
                        help="rows of the table, counted from 0 (default: all)")
    parser.add_argument("--returned", choices=("sums", "rows"), default="sums",
                        help="what comes home to tmap's combine (default: sums)")
    two_processes.add_memory_option(parser)
    return parser.parse_args()


def lines_of(case):
    """Returns the lines of the table for a case: one for each number of blocks."""
    case.check()
    theirs, across, lines = case.times_of_torch(), case.bytes_across(), []
    for blocks in BLOCKS:
        ours = case.times_of_tmap(blocks)
        cells = [case.sizes.tokens, case.sizes.columns, case.sizes.experts, case.sizes.k, blocks,
                 *(f"{nbytes / 1e6:.2f}" for nbytes in across),
                 *(f"{time:.1f} ({nbytes / time / 1e3:.0f})" for time, nbytes in zip(ours, across)),
                 *(f"{time:.1f}" for time in theirs), f"{sum(theirs) / sum(ours):.2f}"]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def measure(torch, rank, given):
    from expert_arrays import expert_shape, meet, open_window, window_bytes
    from expert_case import Case
    shapes = [expert_shape(*CASES[row], given.returned) for row in given.rows]
    torch.manual_seed(1 + rank)
    window = open_window(max(map(window_bytes, shapes)), given.memory)
    if rank == 0:
        print(f"{two_processes.versions(torch)}\n\nMicroseconds a call, of the slower rank. "
              f"tmap runs in graphs, and {given.returned} come home.\n\n"
              "| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|", flush=True)
    for sizes in shapes:
        lines = lines_of(Case(rank, window, sizes))
        if rank == 0:
            print("\n".join(lines), flush=True)
    meet()
    window.close()


def main():
    given = options()
    two_processes.run("experts_torch.py", lambda torch, rank: measure(torch, rank, given))


if __name__ == "__main__":
    main()

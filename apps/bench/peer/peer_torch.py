# SPDX-License-Identifier: Apache-2.0
"""Times exchanges of rows between two GPUs, a process each, by tmap.peer and by PyTorch with NCCL:
peer_torch.py [--sizes BYTES,...]. PyTorch's sizes are known to the host, or come from the GPU as
tmap's do. Prints Markdown. Checks bytes first. Needs PyTorch 2.8 and two Hopper GPUs."""
import argparse

import two_processes

SIZES = (4096, 1 << 20, 16 << 20, 128 << 20)
CALLS, REPEATS = 20, 7
TILE = 8192  # most bytes of a row


def sizes_of(text):
    sizes = [int(each) for each in text.split(",")]
    if any(size <= 0 or size % 4096 or (size > TILE and size % TILE) for size in sizes):
        raise argparse.ArgumentTypeError(f"{text!r} must be multiples of 4096, and of {TILE} above it")
    return sizes


def options():
    parser = argparse.ArgumentParser(prog="peer_torch.py", description=__doc__.split(" PyTorch's sizes")[0])
    parser.add_argument("--sizes", type=sizes_of, default=SIZES, metavar="BYTES,...",
                        help="bytes each way, multiples of 4096 (default: 4 KiB to 128 MiB)")
    return parser.parse_args()


class Ranks:
    """This rank's window and its arrays, for exchanges with the other rank of two."""

    def __init__(self, torch, peer, rank, most):
        self.torch, self.rank, self.group = torch, rank, peer.Group.from_torch()
        self.window = self.group.allocate(2 * most + (1 << 20))
        self.splits = self.tensor((2,), torch.int32, 0)
        self.out_splits = self.tensor((2,), torch.int32, 4096)
        self.most = most

    def tensor(self, shape, dtype, offset):
        return self.torch.from_dlpack(self.window.array(shape, dtype, offset))

    def arrays(self, size):
        columns = min(size, TILE)
        shape = (size // columns, columns)
        return (self.tensor(shape, self.torch.uint8, 1 << 20),
                self.tensor(shape, self.torch.uint8, (1 << 20) + self.most))

    def microseconds(self, call, calls=CALLS):
        """Returns the median time of a call. A kernel keeps the GPU busy while the host enqueues
        calls, and an all-reduce lets both ranks begin together."""
        torch, times, one = self.torch, [], self.torch.zeros(1, device="cuda")
        call()
        for _ in range(REPEATS):
            begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
            torch.cuda._sleep(20_000_000)
            torch.distributed.all_reduce(one)
            begin.record()
            for _ in range(calls):
                call()
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end) * 1e3 / calls)
        return sorted(times)[REPEATS // 2]

    def row(self, size):
        torch, dist = self.torch, self.torch.distributed
        rows, out = self.arrays(size)
        counts = [0, 0]
        counts[1 - self.rank] = rows.shape[0]
        self.splits.copy_(torch.tensor(counts, dtype=torch.int32))
        rows.copy_(torch.arange(size, device="cuda").view_as(rows) * 7 % 251 + self.rank)
        out.zero_()
        torch.cuda.synchronize()
        dist.barrier()

        def exchange(blocks):
            self.window.exchange_rows(rows, self.splits, out, self.out_splits, blocks=blocks)

        def by_torch():
            dist.all_to_all_single(out, rows, counts, counts)

        def with_sizes_of_the_gpu():
            dist.all_to_all_single(self.out_splits, self.splits)
            dist.all_to_all_single(out, rows, self.out_splits.tolist(), self.splits.tolist())

        exchange(16)
        self.window.last_outcome()
        assert torch.equal(out, rows - self.rank + (1 - self.rank)), "rows came wrong"
        ours = min(self.microseconds(lambda: exchange(blocks)) for blocks in (16, 32))
        self.window.last_outcome()
        theirs = self.microseconds(by_torch), self.microseconds(with_sizes_of_the_gpu, calls=5)
        return "| " + " | ".join([f"{size:,}", *(f"{time:.1f} ({size / time / 1e3:.0f})"
                                                 for time in (ours, *theirs))]) + " |"


def measure(torch, rank, sizes):
    from tmap import peer
    ranks = Ranks(torch, peer, rank, max(sizes))
    if rank == 0:
        print(f"{two_processes.versions(torch)}\n\n"
              "Microseconds a call (GB/s each way).\n\n"
              "| bytes each way | tmap, sizes on the GPU | all_to_all_single, sizes known | "
              "the same, sizes from the GPU |\n|---|---|---|---|", flush=True)
    for size in sizes:
        line = ranks.row(size)
        if rank == 0:
            print(line, flush=True)
    torch.distributed.barrier()
    torch.cuda.synchronize()
    ranks.window.close()
    ranks.group.close()


def main():
    sizes = options().sizes
    two_processes.run("peer_torch.py", lambda torch, rank: measure(torch, rank, sizes))


if __name__ == "__main__":
    main()

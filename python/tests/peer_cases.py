# SPDX-License-Identifier: Apache-2.0
"""Exchanges of PyTorch's tensors, for tests on ranks of every kind."""
import torch

RANKS, GROUPS, COLUMNS = 2, 3, 64
NBYTES = 1 << 20  # of a window
PAIR_NBYTES = 1 << 15  # of a window that peers do not reach
CAPACITY = 256
_ROWS = 8192
_OUT = _ROWS + CAPACITY * COLUMNS * 4


class Rank:
    """The arrays of one rank in its window, and a stream. They are made before any call waits."""

    def __init__(self, window, ranks=RANKS):
        self.window, self.ranks = window, ranks
        with torch.cuda.device(window.device):
            self.stream = torch.cuda.Stream()
            self.splits = torch.from_dlpack(window.array((ranks, GROUPS), "i32"))
            self.out_splits = torch.from_dlpack(window.array((ranks, GROUPS), "i32", 4096))
            self.rows = torch.from_dlpack(window.array((CAPACITY, COLUMNS), "i32", _ROWS))
            self.out = torch.from_dlpack(window.array((CAPACITY, COLUMNS), "i32", _OUT))

    def write(self, call):
        """Writes the rows of a call on this rank's stream."""
        counts = [[count_of(call, self.window.rank, to, group) for group in range(GROUPS)] for to in range(self.ranks)]
        values = torch.tensor([value for to in range(self.ranks) for group in range(GROUPS)
                               for value in values_of(call, self.window.rank, to, group)], dtype=torch.int32)
        with torch.cuda.stream(self.stream):
            self.splits.copy_(torch.tensor(counts, dtype=torch.int32))
            self.rows[:len(values)] = values.to(self.rows.device)[:, None]
        self.stream.synchronize()

    def exchange(self, placed="rank_major", rows=None, out=None, patience=None):
        with torch.cuda.device(self.window.device), torch.cuda.stream(self.stream):
            self.window.exchange_rows(self.rows if rows is None else rows, self.splits,
                                      self.out if out is None else out, self.out_splits, placed=placed,
                                      patience=patience)

    def await_pulls(self, patience=None):
        self.window.await_pulls(stream=self.stream, patience=patience)

    def check(self, test, call, placed="rank_major", columns=slice(None)):
        """Waits for the exchange and compares what came with the definition. Rows came to some
        columns, and all others are -1."""
        self.window.last_outcome(stream=self.stream)
        me = self.window.rank
        counts = [[count_of(call, source, me, group) for group in range(GROUPS)] for source in range(self.ranks)]
        test.assertEqual(self.out_splits.tolist(), counts)
        blocks = ([(source, group) for source in range(self.ranks) for group in range(GROUPS)]
                  if placed == "rank_major" else
                  [(source, group) for group in range(GROUPS) for source in range(self.ranks)])
        expected = [value for source, group in blocks for value in values_of(call, source, me, group)]
        wanted = torch.full((len(expected), COLUMNS), -1, dtype=torch.int32)
        wanted[:, columns] = torch.tensor(expected, dtype=torch.int32)[:, None]
        test.assertTrue(torch.equal(self.out[:len(expected)].cpu(), wanted))


def count_of(call, source, to, group):
    return (7 * call + 5 * source + 3 * to + 11 * group) % 9


def values_of(call, source, to, group):
    first = (((call * 8 + source) * 8 + to) * 8 + group) * 64
    return range(first, first + count_of(call, source, to, group))

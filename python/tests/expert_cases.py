# SPDX-License-Identifier: Apache-2.0
"""Dispatches and combines of experts with PyTorch's tensors, for tests on ranks of every kind."""
import torch

from tmap import peer

TOKENS, EXPERTS, K, COLUMNS, SCALES = (37, 53), 8, 3, 64, 2  # TOKENS: of each rank


class ExpertRank:
    """The arrays of one rank, in its window and outside, and a stream. They are made before any
    call waits. The experts multiply by 2 in f32."""

    def __init__(self, window, returned="sums", **sizes):
        self.window, self.ranks = window, window.ranks
        self.sizes = peer.ExpertShape(**{
            **dict(tokens=TOKENS[window.rank], k=K, experts=EXPERTS, columns=COLUMNS, arrivals=sum(TOKENS), dtype="f32",
                   scales=SCALES, result_type="f32", returned=returned), **sizes})
        rows, here = self.sizes.row_count(self.ranks), EXPERTS // self.ranks
        with torch.cuda.device(window.device):
            self.stream, self.used = torch.cuda.Stream(), 0
            self.x = self.part((self.sizes.tokens, COLUMNS), "f32")
            self.rows = self.part((rows, COLUMNS), "f32")
            self.results = self.part((rows, COLUMNS), "f32")
            self.workspace = self.part((self.sizes.workspace_bytes(self.ranks),), "u8")

            def array(*shape, dtype=torch.float32):
                return torch.zeros(shape, device="cuda", dtype=dtype)

            self.ids = array(self.sizes.tokens, K, dtype=torch.int32)
            self.weights, self.x_scales = array(self.sizes.tokens, K), array(self.sizes.tokens, SCALES)
            self.base, self.out = array(self.sizes.tokens, COLUMNS), array(self.sizes.tokens, COLUMNS)
            self.out_scales, self.weight_of_row = array(rows, SCALES), array(rows)
            self.counts, self.ends = (array(here, dtype=torch.int32) for _ in range(2))
            self.begins = array(here + 1, dtype=torch.int32)
            with torch.cuda.stream(self.stream):
                torch.mul(self.rows, 2, out=self.results)  # the kernel is loaded
            torch.cuda.synchronize()

    def part(self, shape, dtype):
        """Returns the next memory of the window."""
        made = torch.from_dlpack(self.window.array(shape, dtype, self.used))
        self.used += (made.nbytes + 255) // 256 * 256
        return made

    def write(self, call):
        """Writes the inputs of a call."""
        rank = self.window.rank
        with torch.cuda.stream(self.stream):
            for array, values in ((self.x, tokens_of(call, rank)), (self.ids, ids_of(call, rank)),
                                  (self.weights, weights_of(call, rank)), (self.x_scales, scales_of(call, rank)),
                                  (self.base, base_of(call, rank))):
                array.copy_(values)
            for array in (self.rows, self.out, self.out_scales, self.weight_of_row):
                array.fill_(-7)
        self.stream.synchronize()

    def run(self):
        """Enqueues a layer."""
        with torch.cuda.device(self.window.device), torch.cuda.stream(self.stream):
            peer.dispatch(self.window, self.sizes, self.x, self.ids, out=self.rows, workspace=self.workspace,
                          weights=self.weights, x_scales=self.x_scales, out_scales=self.out_scales, counts=self.counts,
                          begins=self.begins, ends=self.ends, weight_of_row=self.weight_of_row, blocks=4)
            torch.mul(self.rows, 2, out=self.results)
            peer.combine(self.window, self.sizes, self.results, out=self.out, base=self.base, workspace=self.workspace,
                         weights=self.weights if self.sizes.returned == "rows" else None, blocks=4)

    def check(self, test, call):
        """Waits, and compares all results with their definition."""
        self.window.last_outcome(stream=self.stream)
        me, here = self.window.rank, EXPERTS // self.ranks
        begin, by_expert = 0, [[], [], []]
        for local in range(here):
            found = [choices_of(call, source, me * here + local) for source in range(self.ranks)]
            count = sum(len(part[2]) for part in found)
            test.assertEqual([self.counts[local].item(), self.begins[local].item(), self.ends[local].item()],
                             [count, begin, begin + count])
            begin += count
            for kept, parts in zip(by_expert, zip(*found)):
                kept.extend(parts)
        test.assertEqual(self.begins[here].item(), begin)
        for array, parts in zip((self.rows, self.out_scales, self.weight_of_row), by_expert):
            test.assertTrue(torch.equal(array[:begin].cpu(), torch.cat(parts)))
        test.assertTrue((self.rows[begin:] == -7).all())
        test.assertTrue(torch.equal(self.out.cpu(), results_of(call, me)))


# All numbers are small integers, so that sums are exact.

def tokens_of(call, rank):
    count = TOKENS[rank]
    return ((torch.arange(count * COLUMNS) * (7 + call) + 11 * rank) % 61).reshape(count, COLUMNS).float()


def scales_of(call, rank):
    return (torch.arange(TOKENS[rank] * SCALES) + 1000 * (rank + 1) + call).reshape(-1, SCALES).float()


def base_of(call, rank):
    return torch.full((TOKENS[rank], COLUMNS), 5. + call + rank)


def ids_of(call, rank):
    """Draws different experts for each token; some choices are left out."""
    draw = torch.Generator().manual_seed(100 * call + rank)
    chosen = torch.rand((TOKENS[rank], EXPERTS), generator=draw).argsort(1)[:, :K].int()
    chosen[torch.rand((TOKENS[rank], K), generator=draw) < 0.1] = -1
    return chosen


def weights_of(call, rank):
    return ((torch.arange(TOKENS[rank] * K) * 3 + call + rank) % 5 + 1).reshape(-1, K).float()


def choices_of(call, rank, expert):
    """Returns the rows, scales and weights of the choices of an expert, in their order."""
    token, j = (ids_of(call, rank) == expert).nonzero(as_tuple=True)
    return tokens_of(call, rank)[token], scales_of(call, rank)[token], weights_of(call, rank)[token, j]


def results_of(call, rank):
    weight = (weights_of(call, rank) * (ids_of(call, rank) >= 0)).sum(1, keepdim=True)
    return base_of(call, rank) + 2 * weight * tokens_of(call, rank)

# SPDX-License-Identifier: Apache-2.0
"""One row of experts_torch.py: the same tokens and choices for tmap and for PyTorch."""
import torch

from expert_arrays import RANKS, ExpertArrays, graph_of, meet, microseconds
from torch_exchange import TorchExchange, inverse, sums_in_f32, sums_of_bags

CALLS, CALLS_OF_TORCH = 20, 5
UNIT = 2 ** -8  # the most error of a rounding to bf16, in parts of the number


class Case:
    def __init__(self, rank, window, sizes):
        self.rank, self.sizes = rank, sizes
        self.ours, self.theirs = ExpertArrays(window, sizes), TorchExchange(sizes.experts)
        self.ours.draw()

    def check(self):
        """Compares each byte of the rows that came, and the combined results with sums in f32."""
        meet()
        self.ours.dispatch(16)
        self.ours.window.last_outcome()
        rows, plan = self.theirs.dispatch(self.ours.x, self.ours.ids)
        count = rows.shape[0]
        assert torch.equal(self.ours.ends, plan.ends), "experts got other numbers of rows"
        assert torch.equal(self.ours.rows[:count].view(torch.int16), rows.view(torch.int16)), "rows came wrong"
        self.ours.results[:count] = rows * factors(plan.ends, count)
        meet()
        self.ours.combine(16)
        self.ours.window.last_outcome()
        self.check_results(self.theirs.bring_home(self.ours.results[:count], plan), plan)

    def check_results(self, home, plan):
        """Compares the results of tmap and of PyTorch's other way to add. Each has two roundings:
        of a rank's sum or of a weight, and of the result."""
        weights = self.ours.weights
        place = inverse(plan.order).view(weights.shape)
        want, allowed = sums_in_f32(home, place, weights), 2.02 * UNIT * sums_in_f32(home.abs(), place, weights)
        for results in (self.ours.out, sums_of_bags(home, place, weights)):
            off = (results.float() - want).abs() - allowed
            assert (off <= 0).all(), f"results are wrong by {off.max().item()} more than roundings"

    def bytes_across(self):
        """Returns the bytes that this rank sends the other one in a dispatch of tmap, and those
        that it gets home in a combine."""
        row_bytes, here = 2 * self.sizes.columns, self.sizes.experts // RANKS
        away = self.ours.ids // here != self.rank
        tokens, choices = away.any(1).sum().item(), away.sum().item()
        return tokens * row_bytes, (choices if self.sizes.returned == "rows" else tokens) * row_bytes

    def times_of_tmap(self, blocks):
        """Returns the microseconds of a dispatch and of a combine."""
        def dispatch():
            self.ours.dispatch(blocks)

        def both():
            self.ours.dispatch(blocks)
            self.ours.combine(blocks)

        alone, pair = (microseconds(graph_of(call, CALLS).replay, CALLS) for call in (dispatch, both))
        self.ours.window.last_outcome()
        return alone, pair - alone

    def times_of_torch(self):
        """Returns the same of PyTorch, with the faster way to add."""
        def dispatches():
            for _ in range(CALLS_OF_TORCH):
                self.theirs.dispatch(self.ours.x, self.ours.ids)

        def pairs(add):
            for _ in range(CALLS_OF_TORCH):
                rows, plan = self.theirs.dispatch(self.ours.x, self.ours.ids)
                self.theirs.combine(rows, plan, self.ours.weights, add)

        meet()
        alone = microseconds(dispatches, CALLS_OF_TORCH)
        pair = min(microseconds(lambda: pairs(add), CALLS_OF_TORCH) for add in (sums_in_f32, sums_of_bags))
        return alone, pair - alone


def factors(ends, count):
    """Returns the number that the expert of each row multiplies by."""
    places = torch.arange(count, device="cuda", dtype=ends.dtype)
    return ((torch.searchsorted(ends, places, right=True) % 7 + 1) / 4).bfloat16().unsqueeze(1)

# SPDX-License-Identifier: Apache-2.0
"""Dispatches and combines of experts on two ranks, assembled from PyTorch's operators. The rows of
all choices cross, in the order by expert. Their numbers come from the GPU."""
from typing import List, NamedTuple

import torch
import torch.distributed as dist

from expert_arrays import RANKS


class Plan(NamedTuple):
    """Holds what a combine needs of its dispatch."""
    order: torch.Tensor      # of this rank's choices, by expert
    sent: List[int]          # rows to each rank
    came: List[int]          # rows from each rank
    by_expert: torch.Tensor  # the place among all rows that came, of each row in the order by expert
    ends: torch.Tensor       # of the rows of each expert, int32


class TorchExchange:
    """Makes dispatches and combines for a number of experts of both ranks."""

    def __init__(self, experts):
        self.experts, self.here = experts, experts // RANKS
        self.every_expert = torch.arange(experts, device="cuda", dtype=torch.int32)
        self.expert_of_count = torch.arange(self.here, device="cuda", dtype=torch.int32).repeat(RANKS)
        self.zero = torch.zeros(1, device="cuda", dtype=torch.int64)

    def dispatch(self, x, ids):
        """Returns the rows of this rank's experts, in the order by expert, and the plan."""
        chosen, order = torch.sort(ids.flatten(), stable=True)
        counts = torch.searchsorted(chosen, self.every_expert, right=True).diff(prepend=self.zero)
        counts_here = torch.empty_like(counts)
        dist.all_to_all_single(counts_here, counts)
        sent, came = torch.stack((counts, counts_here)).view(2, RANKS, self.here).sum(2).tolist()
        rows = x[order // ids.shape[1]]
        got = torch.empty(sum(came), x.shape[1], device="cuda", dtype=x.dtype)
        dist.all_to_all_single(got, rows, came, sent)
        experts = torch.repeat_interleave(self.expert_of_count, counts_here, output_size=sum(came))
        by_expert = torch.sort(experts, stable=True).indices
        ends = counts_here.view(RANKS, self.here).sum(0).cumsum(0).int()
        return got[by_expert], Plan(order, sent, came, by_expert, ends)

    def bring_home(self, results, plan):
        """Returns the results of this rank's choices, in the order by expert."""
        home = torch.empty(plan.order.numel(), results.shape[1], device="cuda", dtype=results.dtype)
        dist.all_to_all_single(home, results[inverse(plan.by_expert)], plan.sent, plan.came)
        return home

    def combine(self, results, plan, weights, add):
        """Returns the weighted sums of the results of each token, in bf16. `add` is `sums_in_f32`
        or `sums_of_bags`."""
        home = self.bring_home(results, plan)
        return add(home, inverse(plan.order).view(weights.shape), weights).bfloat16()


def inverse(permutation):
    made = torch.empty_like(permutation)
    made[permutation] = torch.arange(permutation.numel(), device="cuda")
    return made


def sums_in_f32(home, place, weights):
    """Returns the sums with f32 weights, in f32."""
    rows = home[place.flatten()].view(*place.shape, -1)
    return (rows * weights.unsqueeze(2)).sum(1)


def sums_of_bags(home, place, weights):
    """Returns the sums by one operator, which takes weights in bf16 and adds in f32."""
    return torch.nn.functional.embedding_bag(place, home, mode="sum",
                                             per_sample_weights=weights.to(home.dtype))

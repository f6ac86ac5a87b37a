# SPDX-License-Identifier: Apache-2.0
"""The layer of experts that layer_torch.py times: one rank's tokens, its half of the experts, and
the work of each part."""
import functools

import torch

import tmap
from expert_arrays import RANKS, ExpertArrays, begin_together, graph_of, larger_of_ranks, meet
from tmap import moe
from torch_exchange import TorchExchange, sums_in_f32, sums_of_bags

CALLS_OF_ROUTE = 10  # in a graph
MOST_DIFFERENCE = 0.02  # of results, in parts of the largest


def bf16(make, *shape):
    return make(*shape, device="cuda", dtype=torch.bfloat16)


class Layer:
    def __init__(self, window, sizes, inner, blocks):
        self.arrays, self.theirs = ExpertArrays(window, sizes), TorchExchange(sizes.experts)
        self.sizes, self.inner, self.blocks = sizes, inner, blocks
        self.arrays.draw()
        here, width = sizes.experts // RANKS, sizes.columns
        self.logits = torch.randn(sizes.tokens, sizes.experts, device="cuda")
        self.gate_up = bf16(torch.randn, here, 2 * inner, width).mul_(width ** -0.5)
        self.down = bf16(torch.randn, here, width, inner).mul_(inner ** -0.5)
        self.hidden = bf16(torch.empty, self.arrays.rows.shape[0], inner)
        self.side, self.ready = torch.cuda.Stream(), torch.cuda.Event()
        self.ready.record()  # so that it has a handle

    def route(self):
        moe.route(self.logits, ids=self.arrays.ids, weights=self.arrays.weights, k=self.sizes.k, renormalise=True,
                  check="off")

    def multiply(self, rows, ends, hidden, results, pending=None):
        tmap.grouped_mm(rows, self.gate_up.transpose(1, 2), ends, out=hidden, gate="silu", pending=pending,
                        check="off")
        tmap.grouped_mm(hidden, self.down.transpose(1, 2), ends, out=results, check="off")

    def products(self, pending=None):
        self.multiply(self.arrays.rows, self.arrays.ends, self.hidden, self.arrays.results, pending)

    def exchange(self):
        self.arrays.dispatch(self.blocks)
        self.arrays.combine(self.blocks)

    def whole(self):
        self.route()
        self.arrays.dispatch(self.blocks)
        self.products()
        self.arrays.combine(self.blocks)

    def overlapped(self):
        """Runs the layer with products that begin while rows come."""
        self.route()
        self.arrays.dispatch(self.blocks, self.arrays.pending, self.ready)
        self.side.wait_event(self.ready)
        with torch.cuda.stream(self.side):
            self.products(self.arrays.pending)
        torch.cuda.current_stream().wait_stream(self.side)
        self.arrays.combine(self.blocks)

    def assembled(self, add):
        """Returns the results by PyTorch's exchange."""
        self.route()
        rows, plan = self.theirs.dispatch(self.arrays.x, self.arrays.ids)
        hidden, results = bf16(torch.empty, rows.shape[0], self.inner), torch.empty_like(rows)
        self.multiply(rows, plan.ends, hidden, results)
        return self.theirs.combine(results, plan, self.arrays.weights, add)

    def operations(self):
        """Returns the additions and multiplications of this rank's products."""
        return 2 * 3 * self.arrays.ends[-1].item() * self.sizes.columns * self.inner

    def check(self):
        """Returns the largest difference from an assembled layer, in parts of the largest
        value."""
        meet()
        self.whole()
        self.arrays.window.last_outcome()
        differences = []
        for add in (sums_in_f32, sums_of_bags):
            want = self.assembled(add).float()
            differences.append(((self.arrays.out.float() - want).abs().max() / want.abs().max()).item())
            assert differences[-1] <= MOST_DIFFERENCE, f"results are wrong by {differences[-1]} of the largest"
        return max(larger_of_ranks(differences))

    def check_graph(self, graph):
        """Compares a replay with the calls, bit by bit."""
        want = self.arrays.out.clone()
        self.arrays.out.zero_()
        meet()
        graph.replay()
        self.arrays.window.last_outcome()
        assert torch.equal(self.arrays.out, want), "a graph has other results"

    def times(self, seconds, rounds):
        """Returns the microseconds of the layer, of its products, its exchange and its route alone,
        of the overlapped layer, and of both assembled layers."""
        whole, overlapped = graph_of(self.whole), graph_of(self.overlapped)
        for graph in (whole, overlapped):
            self.check_graph(graph)
        graphs = (whole, graph_of(self.products), graph_of(self.exchange),
                  graph_of(self.route, CALLS_OF_ROUTE), overlapped)
        made = times_of([*(graph.replay for graph in graphs), functools.partial(self.assembled, sums_in_f32),
                         functools.partial(self.assembled, sums_of_bags)], seconds, rounds)
        self.arrays.window.last_outcome()
        made[3] /= CALLS_OF_ROUTE
        return made


def burst(enqueue, count):
    """Returns the microseconds of a call, after as many calls that are not timed."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin_together()
    for event in (begin, end):
        for _ in range(count):
            enqueue()
        event.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1e3 / count


def times_of(calls, seconds, rounds):
    """Returns the median burst of each call, of the slower rank. Both ranks make equally many."""
    once = larger_of_ranks([burst(call, 3) for call in calls])
    counts = [max(3, int(seconds * 1e6 / time)) for time in once]
    bursts = [larger_of_ranks([burst(call, count) for call, count in zip(calls, counts)]) for _ in range(rounds)]
    return [sorted(each)[rounds // 2] for each in zip(*bursts)]

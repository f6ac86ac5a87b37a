# SPDX-License-Identifier: Apache-2.0
"""Ranks that share one GPU, with a stream each, and the time of their calls in graphs. Needs
PyTorch and a Hopper GPU."""
import sys
from pathlib import Path

import torch

from tmap import peer

CALLS, REPEATS = 40, 7


def windows(ranks, nbytes):
    """Makes the window of each rank."""
    buffer_bytes = peer.Window.HEADER_BYTES + nbytes
    memory = [torch.zeros(buffer_bytes, dtype=torch.uint8, device="cuda") for _ in range(ranks)]
    torch.cuda.synchronize()
    pointers = [each.data_ptr() for each in memory]
    return [peer.Group.from_pointers(pointers, rank, buffer_bytes, keep=memory).allocate(nbytes)
            for rank in range(ranks)]


class VirtualRank:
    """One rank. `enqueue` makes its call, in the current stream."""

    def __init__(self, window, enqueue):
        self.window, self.enqueue, self.stream = window, enqueue, torch.cuda.Stream()

    def call(self):
        with torch.cuda.stream(self.stream):
            self.enqueue()

    def capture(self):
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(self.stream):
            self.graph.capture_begin()
            for _ in range(CALLS):
                self.enqueue()
            self.graph.capture_end()

    def replay(self):
        self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with torch.cuda.stream(self.stream):
            self.begin.record()
            self.graph.replay()
            self.end.record()


def call_once(everyone):
    """Lets all ranks make a call, and waits for its end. Raises if one failed."""
    torch.cuda.synchronize()
    for each in everyone:
        each.call()
    for each in everyone:
        each.window.last_outcome(stream=each.stream)


def microseconds(everyone, right):
    """Returns the median time of a call in graphs of `CALLS`. Before that all ranks make one, and
    the program ends unless `right()` returns that the right rows came."""
    call_once(everyone)
    if not right():
        sys.exit(f"{Path(sys.argv[0]).name}: wrong rows came")
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

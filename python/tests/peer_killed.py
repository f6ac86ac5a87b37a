# SPDX-License-Identifier: Apache-2.0
"""A process of `test_peer_killed_gpu.py`: peer_killed.py <folder> stays|<moment>|joins. One process
stays and sees its peer end at a moment of an exchange. Then both it and a process that joins make
a new group."""
import os
import signal
import sys
import time
import unittest

import torch
from peer_cases import NBYTES, Rank

import tmap
from tmap import Status, peer

CALLS_BEFORE = 20
PATIENCE = 2.0
LOST = (Status.PEER_TIMEOUT, Status.PEER_LOST, Status.GROUP_BROKEN)
test = unittest.TestCase()


def make_rank(folder, rank, start):
    group = peer.Group.create(rank, 2, id_file=os.path.join(folder, f"id_{start}"), run=start, patience=20)
    return group, Rank(group.allocate(NBYTES))


def run_call(arrays, call):
    arrays.write(call)
    arrays.exchange(patience=PATIENCE)
    arrays.check(test, call)
    arrays.await_pulls(patience=PATIENCE)


def end_here():
    os.kill(os.getpid(), signal.SIGKILL)


def end_at(moment, arrays):
    """Ends this process in the first call that it does not finish."""
    arrays.write(CALLS_BEFORE)
    if moment == "before":
        end_here()
    arrays.exchange()
    if moment == "after":
        arrays.check(test, CALLS_BEFORE)
    end_here()


def see_the_end(group, arrays):
    """Expects a failure inside the deadline. The GPU, its memory and its graphs live on."""
    begin = time.monotonic()
    with test.assertRaises(tmap.Error) as caught:
        for call in range(CALLS_BEFORE, CALLS_BEFORE + 3):
            run_call(arrays, call)
            arrays.window.last_outcome(stream=arrays.stream)
    test.assertIn(caught.exception.status, LOST)
    test.assertLess(time.monotonic() - begin, 3 * PATIENCE)
    print(caught.exception)
    begin = time.monotonic()
    with test.assertRaises(tmap.Error) as caught:
        arrays.exchange()
        arrays.window.last_outcome(stream=arrays.stream)
    test.assertIn(caught.exception.status, LOST)
    test.assertLess(time.monotonic() - begin, 1, "a broken group ends its calls at once")
    numbers = torch.arange(1 << 20, device="cuda")
    test.assertEqual(int(numbers.sum()), (1 << 19) * ((1 << 20) - 1))


def main():
    folder, role = sys.argv[1:]
    rank = 0 if role == "stays" else 1
    torch.cuda.set_device(rank % torch.cuda.device_count())
    if role != "joins":
        group, arrays = make_rank(folder, rank, 1)
        for call in range(CALLS_BEFORE):
            run_call(arrays, call)
        see_the_end(group, arrays) if role == "stays" else end_at(role, arrays)
    group, arrays = make_rank(folder, rank, 2)
    for call in range(5):
        run_call(arrays, call)
    print("made a new group")


main()

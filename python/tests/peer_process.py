# SPDX-License-Identifier: Apache-2.0
"""One rank of the test `test_peer_gpu.TwoProcesses`: peer_process.py PROVIDER [local]. Makes its
group in one of three ways, "torch", "create" or "symmetric", and exchanges rows, with a window that
peers do not reach if `local` is given. Prints SKIP and the reason if PyTorch cannot do that."""
import os
import sys
import unittest

import torch
import torch.distributed as dist
from peer_cases import NBYTES, PAIR_NBYTES, Rank

import tmap
from tmap import Status, peer

_CANNOT = (Status.NCCL_MISSING, Status.NCCL_VERSION, Status.NO_PEER_ACCESS)


def of_symmetric_memory(nbytes):
    import torch.distributed._symmetric_memory as symmetric
    buffer = symmetric.empty(nbytes, dtype=torch.uint8, device="cuda").zero_()
    handle = symmetric.rendezvous(buffer, dist.group.WORLD)
    torch.cuda.synchronize()
    dist.barrier()  # the memory is zero on all ranks
    return peer.Group.from_pointers(handle.buffer_ptrs, handle.rank, nbytes, keep=(buffer, handle))


def make_group(provider, rank):
    if provider == "torch":
        return peer.Group.from_torch()
    if provider == "create":
        ids = [peer.new_id() if rank == 0 else None]
        dist.broadcast_object_list(ids, src=0)
        return peer.Group.create(rank, 2, id=ids[0])
    return of_symmetric_memory(peer.Window.HEADER_BYTES + NBYTES)


def main():
    rank = int(os.environ["RANK"])
    device = torch.device("cuda", rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    try:
        with make_group(sys.argv[1], rank) as group:
            is_local = sys.argv[2:] == ["local"]
            window = group.allocate_local(NBYTES, PAIR_NBYTES) if is_local else group.allocate(NBYTES)
    except (tmap.Error, RuntimeError) as reason:
        if isinstance(reason, tmap.Error) and reason.status not in _CANNOT:
            raise
        print(f"SKIP {reason}")
        return
    test, arrays = unittest.TestCase(), Rank(window)
    test.assertEqual((window.rank, window.ranks), (rank, 2))
    for call, placed in enumerate(("rank_major", "group_major")):
        arrays.write(call)
        arrays.exchange(placed)
        arrays.await_pulls()
        arrays.check(test, call, placed)
    dist.barrier()  # no kernel uses the windows any more
    torch.cuda.synchronize()
    window.close()
    dist.destroy_process_group()


main()

# SPDX-License-Identifier: Apache-2.0
"""The NCCL communicators of PyTorch's process groups."""
from typing import Any


def communicator_of(process_group: Any, torch: Any) -> int:
    """Returns the `ncclComm_t` of a process group on the current device. All ranks must call it: if
    there is no communicator yet, a collective call makes PyTorch make one."""
    distributed = torch.distributed
    group = distributed.group.WORLD if process_group is None else process_group
    if group is None:
        raise ValueError("there is no process group: call torch.distributed.init_process_group")
    device = torch.device("cuda", torch.cuda.current_device())
    backend = _backend_of(group, device, distributed)
    if not hasattr(backend, "_comm_ptr"):
        raise RuntimeError("tmap.peer.Group.from_torch needs PyTorch 2.8 or newer, not "
                           f"{torch.__version__}: take Group.from_pointers or Group.create")
    if not backend._comm_ptr():
        distributed.all_reduce(torch.zeros(1, device=device), group=group)
        torch.cuda.synchronize(device)
    return backend._comm_ptr()


def _backend_of(group, device, distributed):
    try:
        backend = group._get_backend(device)
    except (AttributeError, RuntimeError) as reason:
        raise ValueError(f"process_group has no backend for CUDA: {reason}") from None
    expected = getattr(distributed, "ProcessGroupNCCL", None)
    if expected is None or not isinstance(backend, expected):
        raise ValueError(f"process_group has a {type(backend).__name__} for CUDA, and must have a "
                         "ProcessGroupNCCL")
    return backend

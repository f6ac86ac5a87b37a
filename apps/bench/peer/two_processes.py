# SPDX-License-Identifier: Apache-2.0
"""Runs a benchmark of PyTorch as two processes, each with a GPU of its own."""
import os
import subprocess
import sys
import time
import traceback

_PORT = "29541"
_POLL_SECONDS, _END_SECONDS = 0.2, 10


def run(program, work):
    """Runs `work(torch, rank)` in two processes, each in a process group with NCCL. This process
    only waits for them. It ends with a message if PyTorch or a GPU is missing."""
    torch = _torch_of(program)
    if "RANK" in os.environ:
        _run_rank(torch, work)
    else:
        sys.exit(_run_ranks())


def add_memory_option(parser):
    parser.add_argument("--memory", choices=("nccl", "symmetric"), default="nccl",
                        help="who makes the window: NCCL, or PyTorch's symmetric memory (default: nccl)")


def versions(torch):
    return (f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, "
            f"NCCL {'.'.join(map(str, torch.cuda.nccl.version()))}")


def _torch_of(program):
    try:
        import torch
    except ImportError as reason:
        sys.exit(f"{program}: needs PyTorch: {reason}")
    if torch.cuda.device_count() < 2:
        sys.exit(f"{program}: needs two GPUs, and here are {torch.cuda.device_count()}")
    return torch


def _run_ranks():
    """Starts a process for each rank, and returns the worst of their exit codes. If one fails, the
    other would wait for it, and is ended."""
    variables = {**os.environ, "NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
                 "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": _PORT, "WORLD_SIZE": "2"}
    ranks = [subprocess.Popen([sys.executable, *sys.argv], env={**variables, "RANK": str(rank)})
             for rank in range(2)]
    try:
        codes = [rank.poll() for rank in ranks]
        while None in codes and not any(codes):
            time.sleep(_POLL_SECONDS)
            codes = [rank.poll() for rank in ranks]
    finally:
        for rank in ranks:
            _end(rank)
    return max(abs(code or 0) for code in codes)


def _end(rank):
    """Ends a process that still runs."""
    if rank.poll() is not None:
        return
    rank.terminate()
    try:
        rank.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        rank.kill()
        rank.wait()


def _run_rank(torch, work):
    """Runs the work of one rank. A failure ends the process at once: destructors of PyTorch might
    wait for the other rank."""
    rank = int(os.environ["RANK"])
    try:
        torch.cuda.set_device(rank)
        torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", rank))
        work(torch, rank)
        torch.distributed.destroy_process_group()
    except BaseException:
        traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)

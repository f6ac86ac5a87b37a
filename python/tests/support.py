# SPDX-License-Identifier: Apache-2.0
"""What the test files share: which libraries and GPUs this machine has."""
import ctypes
import importlib
import os
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Settings of processes whose ranks may share a GPU.
NCCL_OF_TESTS = {"NCCL_NVLS_ENABLE": "0", "NCCL_MULTI_RANK_GPU_ENABLE": "1"}
FIRST_NCCL_WITH_SHARED_GPUS = 23003

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX must leave memory to the others


def need(name):
    """A library, or the file's tests are skipped."""
    try:
        return importlib.import_module(name)
    except ImportError as reason:
        raise unittest.SkipTest(f"{name} is not here: {reason}") from reason


def need_torch_gpu():
    """PyTorch with a Hopper GPU, or the file's tests are skipped."""
    torch = need("torch")
    if not torch.cuda.is_available() or torch.cuda.get_device_capability()[0] < 9:
        raise unittest.SkipTest("no Hopper GPU")
    return torch


def need_ranks_over_nccl(ranks):
    """PyTorch's NCCL with a GPU for each rank, or one that lets ranks share a GPU."""
    import torch
    version = ctypes.c_int()
    try:
        ctypes.CDLL("libnccl.so.2").ncclGetVersion(ctypes.byref(version))  # the one that PyTorch loaded
    except OSError as reason:
        raise unittest.SkipTest(f"NCCL is not here: {reason}") from reason
    if torch.cuda.device_count() < ranks and version.value < FIRST_NCCL_WITH_SHARED_GPUS:
        raise unittest.SkipTest(f"needs {ranks} GPUs, or an NCCL that lets ranks share one, not {version.value}")


def need_cupy_gpu():
    """CuPy with a GPU, or the file's tests are skipped."""
    cupy = need("cupy")
    try:
        if cupy.cuda.runtime.getDeviceCount() > 0:
            return cupy
    except cupy.cuda.runtime.CUDARuntimeError:
        pass
    raise unittest.SkipTest("no GPU")


def need_jax_gpu():
    """JAX with a GPU, or the file's tests are skipped."""
    jax = need("jax")
    if jax.default_backend() != "gpu":
        raise unittest.SkipTest("JAX sees no GPU")
    return jax


def ends_of(sizes):
    """Cumulative ends."""
    ends, total = [], 0
    for size in sizes:
        total += size
        ends.append(total)
    return ends


def jax_on_cpu():
    """A `with` in which JAX's arrays are in memory of the host."""
    import jax
    return jax.default_device(jax.devices("cpu")[0])

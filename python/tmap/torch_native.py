# SPDX-License-Identifier: Apache-2.0
"""Finds the operators of PyTorch that are in C++: libtmap_torch.so, next to the library or where
TMAP_TORCH_LIBRARY names it. Without it, or if it does not fit, operators in Python do the same."""
import ctypes
import os
import warnings
from functools import lru_cache, partial
from pathlib import Path

import torch

from . import _library


def _path():
    named = os.environ.get("TMAP_TORCH_LIBRARY")
    if named is not None:
        return named or None
    beside = Path(_library._path()).with_name("libtmap_torch.so")
    return str(beside) if beside.exists() else None


def _warn(path, reason):
    warnings.warn(f"tmap: {path} is not used: {reason}. Operators in Python take its place, and "
                  "a call takes longer. TMAP_TORCH_LIBRARY= (empty) silences this",
                  RuntimeWarning, stacklevel=3)


def _version_text(number):
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def _load(path):
    """Returns the schemas of the operators that the library has registered, by name."""
    if path is None:
        return {}
    if not hasattr(torch.library, "get_kernel"):
        if "TMAP_TORCH_LIBRARY" in os.environ:  # nobody chose the one of the wheel
            _warn(path, f"it needs PyTorch 2.10 or newer, not {torch.__version__}")
        return {}
    try:
        library = ctypes.CDLL(path)
        version, schemas = library.tmap_torch_version, library.tmap_torch_schemas
    except (OSError, AttributeError) as reason:
        _warn(path, reason)
        return {}
    version.restype, schemas.restype = ctypes.c_uint32, ctypes.c_char_p
    ours = _library.lib.tmap_version()
    if version() != ours:
        _warn(path, f"it was built with version {_version_text(version())} of tmap, and "
                    f"{_library._path()} is {_version_text(ours)}. Build both together")
        return {}
    return {schema.split("(")[0]: schema for schema in schemas().decode().splitlines()}


path = _path()
schemas = _load(path)


@lru_cache(maxsize=None)
def has(name, key):
    """Finds out whether the library has a kernel of an operator. Call it first when the operator
    has been defined and has no kernel in Python."""
    return name in schemas and torch._C._dispatch_has_kernel_for_dispatch_key(f"tmap::{name}", key)


def kernel(name, key="CUDA"):
    """Returns what calls the kernel of an operator, past the dispatcher."""
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))
    return partial(torch.library.get_kernel(f"tmap::{name}", key).call_boxed, keys)

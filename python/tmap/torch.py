# SPDX-License-Identifier: Apache-2.0
"""Makes PyTorch's own grouped products call tmap, so that programs need not change.

`install()` replaces the CUDA kernels of `aten::_grouped_mm`, `aten::_scaled_grouped_mm` and
`aten::_scaled_grouped_mm_v2`. `torch.nn.functional.grouped_mm` and `scaled_grouped_mm` call them,
as do their gradients and compiled programs. A call that tmap does not take goes on to PyTorch's
kernel, which multiplies or raises its own error. `docs/pytorch_names.md` lists what is taken.
"""
import threading
import warnings
from functools import lru_cache
from typing import Dict

import torch

from . import torch_rules as rules
from ._calls import CallCounts, Calls
from ._errors import Error, Status
from .torch_products import grouped_mm_cuda
from .torch_scaled import scaled_cuda

__all__ = ["Calls", "Installation", "install", "installed_calls", "uninstall"]

_REFUSALS = (Status.INVALID_ARGUMENT, Status.COMPUTE_CAPABILITY_TOO_LOW, Status.NO_KERNEL_IMAGE,
             Status.UNSUPPORTED)
_lock = threading.Lock()


@lru_cache(maxsize=None)
def _capability_of(device):
    """Returns that of a device of CUDA, or None: one operand may be elsewhere."""
    return torch.cuda.get_device_capability(device) if device >= 0 else None


class Sockets:
    """Kernels that stand in front of PyTorch's for one dispatch key."""

    def __init__(self, key="CUDA", capability_of=_capability_of, multiply=grouped_mm_cuda,
                 multiply_scaled=scaled_cuda):
        self._capability_of, self._counts = capability_of, CallCounts()
        self._multiply, self._multiply_scaled = multiply, multiply_scaled
        kernels = {"_grouped_mm": self.grouped_mm, "_scaled_grouped_mm": self.scaled_grouped_mm,
                   "_scaled_grouped_mm_v2": self.scaled_grouped_mm_v2}
        # PyTorch without CUDA has no kernels of products with scales.
        self._originals = {name: original for name in kernels
                           if (original := _kernel_of(name, key)) is not None}
        self._library = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings():  # PyTorch warns that kernels are replaced, as they should be
            warnings.filterwarnings("ignore", "Warning only once")
            for name in self._originals:
                self._library.impl(name, kernels[name], key, with_keyset=True, allow_override=True)

    def remove(self):
        self._library._destroy()

    def calls(self):
        return self._counts.of(*self._originals)

    def grouped_mm(self, keys, a, b, offs=None, bias=None, out_dtype=None):
        reason = rules.refuse_product(
            rules.form_of(a), rules.form_of(b), rules.form_of_any(offs), bias is not None, out_dtype,
            self._capability_of(a.get_device())) or _refuse_now(a, b)
        return self._run("_grouped_mm", reason, lambda: self._multiply(a, b, offs), keys,
                         (a, b, offs, bias, out_dtype))

    def scaled_grouped_mm(self, keys, a, b, a_scales, b_scales, offs=None, bias=None,
                          result_scale=None, out_dtype=None, use_fast_accum=False):
        has_terms = bias is not None or result_scale is not None
        return self._run_scaled(
            "_scaled_grouped_mm", None, (a, b, a_scales, b_scales, offs), has_terms, out_dtype,
            use_fast_accum, keys,
            (a, b, a_scales, b_scales, offs, bias, result_scale, out_dtype, use_fast_accum))

    def scaled_grouped_mm_v2(self, keys, a, b, a_scales, a_recipe, a_swizzle, b_scales, b_recipe,
                             b_swizzle, offs=None, bias=None, out_dtype=None, contraction_dim=(),
                             use_fast_accum=False):
        reason = rules.refuse_recipes((len(a_scales), len(b_scales)), (a_recipe, b_recipe),
                                      (a_swizzle, b_swizzle), contraction_dim)
        operands = None if reason else (a, b, a_scales[0], b_scales[0], offs)
        return self._run_scaled(
            "_scaled_grouped_mm_v2", reason, operands, bias is not None, out_dtype, use_fast_accum,
            keys, (a, b, a_scales, a_recipe, a_swizzle, b_scales, b_recipe, b_swizzle, offs, bias,
                   out_dtype, contraction_dim, use_fast_accum))

    def _run_scaled(self, name, reason, operands, has_terms, out_dtype, is_fast, keys, arguments):
        if reason is None:
            a, b = operands[:2]
            reason = rules.refuse_scaled(
                *map(rules.form_of_any, operands), has_terms, out_dtype,
                self._capability_of(a.get_device())) or _refuse_now(a, b)
        return self._run(name, reason,
                         lambda: self._multiply_scaled(*operands, fast_accumulation=is_fast), keys,
                         arguments)

    def _run(self, name, reason, multiply, keys, arguments):
        if reason is None:
            try:
                product = multiply()
            except Error as error:  # the library has done nothing then
                if error.status not in _REFUSALS:
                    raise
                reason = f"the library refuses the call: {error.status.name}"
        self._counts.add(name, reason)
        return product if reason is None else self._originals[name].call_boxed(keys, *arguments)


def _kernel_of(name, key):
    # PyTorch raises if there is no such kernel.
    full_name = f"aten::{name}"
    try:
        return torch.library.get_kernel(full_name, key)
    except RuntimeError:
        return None


def _refuse_now(a, b):
    """Judges what may differ between calls of the same form."""
    if (a.data_ptr() | b.data_ptr()) % 16:
        return rules.ADDRESS
    if torch._C._get_sm_carveout_experimental() is not None:
        return rules.CARVEOUT
    return None


class Installation:
    """What `install` returns. A `with` statement that ends undoes it, unless tmap had been
    installed before."""

    def __init__(self, is_first: bool):
        self._is_first = is_first

    def __enter__(self) -> "Installation":
        return self

    def __exit__(self, *reason) -> None:
        if self._is_first:
            uninstall()


_installed = _latest = None


def install() -> Installation:
    """Puts tmap in front of PyTorch's kernels of grouped products. Calls that it does not take go
    on to them. Counts both again from zero, unless it is installed already, which changes nothing.
    Needs PyTorch 2.10."""
    global _installed, _latest
    if not hasattr(torch.library, "get_kernel"):
        raise RuntimeError(f"tmap.torch.install needs PyTorch 2.10 or newer, not {torch.__version__}")
    with _lock:
        is_first = _installed is None
        if is_first:
            _installed = _latest = Sockets()
    return Installation(is_first)


def uninstall() -> None:
    """Gives PyTorch its kernels back. Does nothing if tmap is not installed. No thread may run a
    grouped product meanwhile."""
    global _installed
    with _lock:
        sockets, _installed = _installed, None
    if sockets is not None:
        sockets.remove()


def installed_calls() -> Dict[str, Calls]:
    """Counts the calls since the latest `install`, by the names of PyTorch's operators. Calls in a
    graph that is replayed count once, when it is captured."""
    return {} if _latest is None else _latest.calls()

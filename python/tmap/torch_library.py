# SPDX-License-Identifier: Apache-2.0
"""Registers operators of PyTorch: their schemas, kernels, fakes and gradients."""
import functools

import torch

from . import torch_native


class _Library(torch.library.Library):
    """Sends an operator to its device's kernel at once if no gradient is wanted and nothing
    watches: a mode, a transform, a subclass. The kernel that `register_autograd` makes dispatches a
    second time, in Python, which takes a third of the call."""
    kernels: dict = {}

    def impl(self, op_name, fn, dispatch_key="", **options):
        if dispatch_key == "Autograd":
            fn = _shortened(fn, self.kernels[op_name])
        super().impl(op_name, fn, dispatch_key, **options)


def _shortened(differentiable, kernels):
    # Sets of dispatch keys as numbers. A second dispatch would look only at the keys below
    # Autograd.
    try:
        below = torch._C._after_autograd_keyset.raw_repr()
        alone = {torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, name)).raw_repr(): kernel
                 for name, kernel in kernels.items()}
    except AttributeError:  # this version of PyTorch has no such numbers
        return differentiable

    is_grad_enabled = torch.is_grad_enabled

    # A kernel gets tensors by position, no matter how they were passed.
    def kernel(keyset, *arguments, **keywords):
        direct = alone.get(keyset.raw_repr() & below)
        if direct is not None and is_grad_enabled():
            for argument in arguments:  # faster than `any` and a list
                if getattr(argument, "requires_grad", False):
                    direct = None
        if direct is None:
            return differentiable(keyset, *arguments, **keywords)
        return direct(*arguments, **keywords)

    return kernel


_library = _Library("tmap", "DEF")
# Results depend on strides of operands, so no compiler may choose others.
_exact = getattr(torch.Tag, "needs_exact_strides", torch.Tag.needs_fixed_stride_order)


def define(*schemas):
    for schema in schemas:
        _library.define(schema, tags=(torch.Tag.pt2_compliant_tag, _exact))


def register(name, kernels, fake, backward=None, setup=None):
    """Registers an operator. Without `backward` it has no gradients. Kernels in C++ go before those
    given."""
    native = {key: torch_native.kernel(name, key) for key in kernels if torch_native.has(name, key)}
    _library.kernels[name] = {**kernels, **native}
    for key, kernel in kernels.items():
        if key not in native:
            _library.impl(name, kernel, key)
    torch.library.register_fake(f"tmap::{name}", fake, lib=_library)
    if backward is not None:
        torch.library.register_autograd(f"tmap::{name}", backward, setup_context=setup,
                                        lib=_library)


class _Refusing(torch.autograd.Function):
    """Passes on the first `count` tensors. The results depend on all tensors, and refuse to be
    differentiated."""

    @staticmethod
    def forward(ctx, words, count, *tensors):
        ctx.words = words
        return tuple(tensor.view_as(tensor) for tensor in tensors[:count])

    @staticmethod
    def backward(ctx, *gradients):
        raise RuntimeError(ctx.words)


def differentiable_once(name):
    """Marks a backward whose results lack a part of their own derivative. If somebody asks for that
    (`create_graph`), an error states so. Saved tensors must be all on which results depend."""
    words = f"{name} has gradients, and these have none: it can be differentiated once"

    def mark(backward):
        @functools.wraps(backward)
        def once(ctx, *gradients):
            with torch.no_grad():
                made = backward(ctx, *gradients)
            if not torch.is_grad_enabled():
                return made
            present = [each for each in made if each is not None]
            sources = [each for each in (*gradients, *ctx.saved_tensors) if each is not None]
            passed = iter(_Refusing.apply(words, len(present), *present, *sources))
            return tuple(each if each is None else next(passed) for each in made)
        return once
    return mark

# SPDX-License-Identifier: Apache-2.0
"""Compiles what a test calls, as one program."""
import torch


def compiled(call, backend="aot_eager", **options):
    """Compiles a call without a break of its graph. Earlier compilations are forgotten, so that no
    case depends on those before it."""
    torch._dynamo.reset()
    return torch.compile(call, fullgraph=True, backend=backend, **options)

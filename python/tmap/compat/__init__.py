# SPDX-License-Identifier: Apache-2.0
"""Modules with the calls of other projects, made of tmap's products.

`tmap.compat.grouped_gemm` has those of the package `grouped_gemm`, which Megatron-LM and MegaBlocks
import. `install_grouped_gemm` gives it that name.
"""
import sys

__all__ = ["install_grouped_gemm"]


def install_grouped_gemm() -> None:
    """Makes `import grouped_gemm` give `tmap.compat.grouped_gemm` in this process. Call it before
    anything imports the package of that name. Then it raises `RuntimeError`, since what was
    imported would stay in use."""
    from . import grouped_gemm
    if sys.modules.get("grouped_gemm", grouped_gemm) is not grouped_gemm:
        raise RuntimeError("grouped_gemm is imported already: call install_grouped_gemm first")
    for name, module in (("", grouped_gemm), (".ops", grouped_gemm.ops),
                         (".backend", grouped_gemm.backend)):
        sys.modules[f"grouped_gemm{name}"] = module

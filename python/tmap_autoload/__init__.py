# SPDX-License-Identifier: Apache-2.0
"""Runs whenever a program imports PyTorch in an environment that has tmap: PyTorch calls the entry
points of the group `torch.backends`. Imports tmap only if the program's environment asks for it."""
import os


def install() -> None:
    """Calls `tmap.torch.install` if the variable TMAP_TORCH_INSTALL is 1."""
    asked = os.environ.get("TMAP_TORCH_INSTALL", "0")
    if asked not in ("0", "1"):
        raise ValueError(f"TMAP_TORCH_INSTALL is {asked!r}: it must be 0 or 1")
    if asked == "1":
        import tmap.torch
        tmap.torch.install()

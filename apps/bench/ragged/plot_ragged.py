# SPDX-License-Identifier: Apache-2.0
"""Draws GB/s over the size of a tensor from the output of `ragged_bench --curve FILE`:

    python3 apps/bench/ragged/plot_ragged.py FILE docs/pictures/ragged_copy.svg
"""
import json
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "tmap"  # makes the file depend on the figures only
import matplotlib.pyplot as plt  # noqa: E402

LINES = (
    ("chosen", "tmap, route chosen", {"linewidth": 2.5, "color": "black"}),
    ("tensor_map", "tmap, tensor maps", {"marker": "o"}),
    ("bulk", "tmap, bulk copies", {"marker": "s"}),
    ("ldgsts", "tmap, LDGSTS", {"marker": "^"}),
    ("plain", "tmap, plain loads", {"marker": "v"}),
    ("cub", "cub::DeviceMemcpy::Batched", {"linestyle": "--", "color": "gray"}),
)


def size_text(size):
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.0f} GiB"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        curve = json.load(file)
    sizes = [point["bytes"] for point in curve["points"]]
    figure, axes = plt.subplots(figsize=(8, 4.5))
    for key, label, style in LINES:
        axes.plot(sizes, [point[key] for point in curve["points"]], label=label, **style)
    axes.axhline(curve["memcpy"], color="gray", linestyle=":", label="cudaMemcpyAsync, one piece")
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes[::2], [size_text(size) for size in sizes[::2]])
    axes.set_xlabel("bytes of a tensor; 256 MiB in all")
    axes.set_ylabel("GB/s, read and written")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(sys.argv[2], metadata={"Date": None})


main()

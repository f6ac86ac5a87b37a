# SPDX-License-Identifier: Apache-2.0
"""Draws the results of `grouped_gemm_bench --json FILE` over the number of groups and over K:

    python3 apps/bench/gemm/plot_gemm.py FILE docs/pictures/grouped_gemm.svg
"""
import json
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "tmap"  # makes the file depend on the figures only
import matplotlib.pyplot as plt  # noqa: E402


def draw(axes, points, label, value, title):
    places = [point["at"] for point in points]
    axes.plot(places, [value(point) for point in points], marker="o", color="black")
    axes.set_xscale("log", base=2)
    axes.set_xticks(places, [str(place) for place in places], rotation=45)
    axes.set_xlabel(title)
    axes.set_ylabel(label)
    axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))
    axes.grid(alpha=0.3)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        measured = json.load(file)
    figure, (groups, ks) = plt.subplots(1, 2, figsize=(10, 4))
    alone = measured["groups"][0]["us"]
    draw(groups, measured["groups"], "us more than one group takes", lambda point: point["us"] - alone,
         "groups; 65,536 rows in all, N 2,048, K 512")
    if measured["dense"]:
        ks.axhline(measured["dense"], color="gray", linestyle=":", label="dense, cuBLAS")
        ks.legend(loc="lower right")
    draw(ks, measured["k"], "TFLOP/s", lambda point: point["teraflops"], "K; 32 groups, 8,192 rows, N 4,096")
    figure.tight_layout()
    figure.savefig(sys.argv[2], metadata={"Date": None})


main()

# SPDX-License-Identifier: Apache-2.0
"""Compares tmap with its peers on the sizes of grouped_gemm_bench. Prints TFLOP/s as Markdown.

    grouped_gemm_bench --shapes > shapes.json
    export TMAP_LIBRARY=build/release/libtmap.so
    python3 apps/bench/gemm/gemm_torch.py shapes.json --json gemm_torch.json
"""
import argparse
import json
import re
import statistics
from pathlib import Path

from gemm_cases import cases_of, torch

PEERS = {"tmap": "tmap", "torch": "torch", "triton": "Triton, persistent, plain pointers", "grouped": "cuBLAS grouped",
         "loop": "cuBLAS loop"}
# The first quarter of a burst is left out: by then the GPU has settled at the clock that its power
# cap allows.
ROUNDS, WARM_UP, BURST_MICROSECONDS = 2, 3, 360000


def microseconds(enqueue, skipped, timed):
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for _ in range(skipped):
        enqueue()
    start.record()
    for _ in range(timed):
        enqueue()
    stop.record()
    stop.synchronize()
    return start.elapsed_time(stop) * 1000 / timed


def measured(operations, peers, is_right):
    """Returns the TFLOP/s of each from bursts in turn, or the reason for its failure. All results
    are kept until they are compared, so that none passes by reusing the memory of another."""
    found, timed, kept = {}, {}, []
    for name, enqueue in peers.items():
        try:
            kept.append(enqueue())
            if not is_right(kept[-1]):
                raise ArithmeticError("wrong")
            once = microseconds(enqueue, WARM_UP, 1)
        except Exception as reason:  # a library that fails must not stop the others
            found[name] = {"reason": (str(reason).splitlines() or [type(reason).__name__])[0]}
            continue
        timed[name] = enqueue, max(1, int(BURST_MICROSECONDS / 4 / once)), []
    kept.clear()
    for _ in range(ROUNDS):
        for enqueue, quarter, times in timed.values():
            times.append(microseconds(enqueue, quarter, 3 * quarter))
    for name, (_, _, times) in timed.items():
        found[name] = {"tflops": operations / statistics.mean(times) * 1e-6, "microseconds": times}
    return found


def text_of(figure):
    if figure is None:
        return "-"
    return f"{figure['tflops']:.0f}" if "tflops" in figure else f"- ({figure['reason'][:60]})"


def parsed(arguments=None):
    parser = argparse.ArgumentParser(description="tmap and its peers on the sizes of grouped_gemm_bench")
    parser.add_argument("shapes", help="output of grouped_gemm_bench --shapes")
    parser.add_argument("--json", metavar="FILE", help="file for all figures, including those of each burst")
    parser.add_argument("--only", metavar="REGEX", type=re.compile, default="", help="run only the cases whose name matches")
    return parser.parse_args(arguments)


def main():
    options = parsed()
    cases = cases_of(json.loads(Path(options.shapes).read_text(encoding="utf-8")), options.only)
    if torch is None or not torch.cuda.is_available():
        print("gemm_torch: " + ("torch is not installed" if torch is None else "no GPU"))
        return
    print(f"torch {torch.__version__}, CUDA {torch.version.cuda}, {torch.cuda.get_device_name()}; TFLOP/s\n")
    print("| groups, rows, N, K | " + " | ".join(PEERS.values()) + " |\n|" + " --- |" * (1 + len(PEERS)))
    torch.backends.cuda.matmul.allow_tf32 = False
    figures = []
    for name, make in cases:
        found = measured(*make())
        print(f"| {name} | " + " | ".join(text_of(found.get(peer)) for peer in PEERS) + " |", flush=True)
        figures.append({"case": name, "peers": found})
        torch.cuda.empty_cache()
    if options.json:
        about = {"torch": torch.__version__, "cuda": torch.version.cuda, "device": torch.cuda.get_device_name()}
        Path(options.json).write_text(json.dumps({**about, "cases": figures}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Times a whole layer of experts in bf16 on two GPUs, a process each: by tmap as one CUDA graph,
the same with products that begin while rows come, its parts alone, and assembled from tmap's route
and products and PyTorch's exchange. All of them run in bursts that take turns. A burst is timed
after it has run as long untimed, because the GPU's clock follows the power of what ran last. Prints
Markdown. Checks results first. Needs PyTorch 2.8 and two Hopper GPUs."""
import argparse

import two_processes

ALLOWED, WANTED = 1.10, 1.25
COLUMNS = ("products", "layer", "its products (TFLOP/s)", "dispatch and combine", "route",
           "assembled, sums in f32", "assembled, embedding_bag", f"layer / products (goal: at most {ALLOWED:.2f})",
           f"assembled / layer (goal: at least {WANTED:.2f})", "difference")


def options():
    parser = argparse.ArgumentParser(prog="layer_torch.py", description=__doc__.split(" A burst is")[0])
    for name, default, words in (("tokens", 8192, "tokens of each rank"), ("width", 7168, "elements of a token"),
                                 ("inner", 2048, "elements between the products"),
                                 ("experts", 256, "experts of both ranks"), ("k", 8, "choices of a token"),
                                 ("blocks", 64, "blocks of the kernels that move rows"),
                                 ("rounds", 3, "bursts of each")):
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help=f"{words} (default: {default})")
    parser.add_argument("--seconds", type=float, default=0.3, help="length of a burst (default: 0.3)")
    two_processes.add_memory_option(parser)
    given = parser.parse_args()
    for name, is_good, words in (
            ("tokens", given.tokens > 0, "more than 0"),
            ("width", given.width > 0 and given.width % 8 == 0, "a multiple of 8"),
            ("inner", given.inner > 0 and given.inner % 8 == 0, "a multiple of 8"),
            ("experts", given.experts > 0 and given.experts % 2 == 0, "even"),
            ("k", 0 < given.k <= min(32, given.experts), "from 1 to 32, and at most the experts"),
            ("blocks", given.blocks > 0, "more than 0"),
            ("rounds", given.rounds > 0, "more than 0"), ("seconds", given.seconds > 0, "more than 0")):
        if not is_good:
            parser.error(f"argument --{name}: it must be {words}")
    return given


def table(times, operations, difference):
    """Returns a row for the layer whose products follow its dispatch, and one for the layer whose
    products begin while rows come."""
    whole, products, exchange, route, overlapped, in_f32, of_bags = times
    rows = [" | ".join(COLUMNS), "|".join("---" for _ in COLUMNS)]
    for name, layer in (("one after the other", whole), ("overlapped", overlapped)):
        rows.append(" | ".join((
            name, f"{layer:.0f}", f"{products:.0f} ({operations / products / 1e6:.0f})", f"{exchange:.0f}",
            f"{route:.1f}", f"{in_f32:.0f}", f"{of_bags:.0f}", f"{layer / products:.3f}",
            f"{min(in_f32, of_bags) / layer:.2f}", f"{difference:.4f}")))
    return "\n".join(f"| {row} |" for row in rows)


def measure(torch, rank, given):
    from expert_arrays import expert_shape, meet, open_window, window_bytes
    from expert_layer import Layer
    sizes = expert_shape(given.tokens, given.width, given.experts, given.k, "sums")
    torch.manual_seed(1 + rank)
    window = open_window(window_bytes(sizes), given.memory)
    layer = Layer(window, sizes, given.inner, given.blocks)
    difference = layer.check()
    times = layer.times(given.seconds, given.rounds)
    if rank == 0:
        print(f"{two_processes.versions(torch)}\n\n{given.tokens} tokens of each rank, {given.width} -> {given.inner}, "
              f"{given.experts} experts, top {given.k}, {given.blocks} blocks. Microseconds of the slower rank.\n\n"
              + table(times, layer.operations(), difference), flush=True)
    meet()
    window.close()


def main():
    given = options()
    two_processes.run("layer_torch.py", lambda torch, rank: measure(torch, rank, given))


if __name__ == "__main__":
    main()

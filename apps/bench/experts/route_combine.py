# SPDX-License-Identifier: Apache-2.0
"""Times tmap.moe.route, combine and combine_backward in CUDA graphs, next to a sort and a copy by
PyTorch. Prints Markdown. Needs PyTorch and a Hopper GPU."""
import torch

from graphs import graph_of
from tmap import moe

CALLS, REPLAYS = 20, 20
ROUTES = ((16, 128, 8), (256, 128, 8), (1024, 32, 4), (4096, 128, 8), (8192, 128, 8),
          (8192, 256, 8), (16384, 128, 8), (65536, 128, 8))  # tokens, experts, k
SUMS = ((16, 8, 7168), (256, 8, 7168), (1024, 2, 4096), (4096, 8, 2048), (4096, 8, 7168),
        (8192, 8, 7168))  # tokens, k, columns


def microseconds(call):
    """Returns the median time of a call, of which a graph holds many."""
    graph, times = graph_of(call, CALLS), []
    for _ in range(REPLAYS + 1):
        begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / CALLS)
    return sorted(times[1:])[REPLAYS // 2]


def int32(*shape):
    return torch.empty(*shape, device="cuda", dtype=torch.int32)


def route_row(tokens, experts, k):
    logits = torch.randn(tokens, experts, device="cuda")
    given = torch.topk(logits, k).indices.to(torch.int32).contiguous()
    ids, weights = int32(tokens, k), torch.empty(tokens, k, device="cuda")
    results = {"counts": int32(experts), "begins": int32(experts + 1), "ends": int32(experts),
               "row_of_choice": int32(tokens, k), "token_of_row": int32(tokens * k)}
    sort = microseconds(lambda: torch.sort(given.view(-1), stable=True))
    of_ids = microseconds(lambda: moe.route(ids=given, experts=experts, **results))
    of_logits = microseconds(lambda: moe.route(logits, ids=ids, weights=weights, k=k,
                                               renormalise=True, **results))
    return f"| {tokens} | {experts} | {k} | {of_ids:.1f} | {of_logits:.1f} | {sort:.1f} |"


def combine_row(tokens, k, columns):
    values = torch.randn(tokens * k, columns, device="cuda", dtype=torch.bfloat16)
    out = torch.empty(tokens, columns, device="cuda", dtype=torch.bfloat16)
    rows = torch.randperm(tokens * k, device="cuda").to(torch.int32).view(tokens, k)
    weights, copied = torch.rand(tokens, k, device="cuda"), torch.empty_like(values)
    time = microseconds(lambda: moe.combine(values, rows, out=out, weights=weights))
    of_values, of_weights = torch.empty_like(values), torch.empty_like(weights)
    back = microseconds(lambda: moe.combine_backward(out, rows, values=values, weights=weights,
                                                     d_values=of_values, d_weights=of_weights))
    copy = microseconds(lambda: copied.copy_(values))
    rate, of_copy = (values.nbytes + out.nbytes) / time / 1e3, 2 * values.nbytes / copy / 1e3
    of_back = (2 * values.nbytes + out.nbytes) / back / 1e3
    return (f"| {tokens} | {k} | {columns} | {time:.1f} | {rate:.0f} | {back:.1f} | {of_back:.0f} | "
            f"{of_copy:.0f} |")


def main():
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n")
    print("| tokens | experts | k | ids given, us | logits, us | torch.sort alone, us |\n"
          "|---|---|---|---|---|---|")
    for case in ROUTES:
        print(route_row(*case), flush=True)
    print("\n| tokens | k | columns | combine, us | GB/s | combine_backward, us | GB/s | "
          "copy of the rows, GB/s |\n|---|---|---|---|---|---|---|---|")
    for case in SUMS:
        print(combine_row(*case), flush=True)


if __name__ == "__main__":
    main()

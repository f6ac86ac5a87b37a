# SPDX-License-Identifier: Apache-2.0
"""Records calls in CUDA graphs, for the benchmarks of this folder."""
import torch


def graph_of(call, calls=1):
    """Returns a graph of `calls` calls, after one that is not recorded."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(calls):
                call()
    return graph

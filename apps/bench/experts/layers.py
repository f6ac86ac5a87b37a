# SPDX-License-Identifier: Apache-2.0
"""Times a whole layer of experts: by PyTorch's operators, by tmap.moe.layer in bf16 and with
block-scaled weights of 8 bits, and the two products of sorted rows alone in bf16. All of them run
as CUDA graphs in one program, in bursts that take turns. A burst is timed after it has run as long
untimed, because the GPU's clock follows the power of what ran last. Prints Markdown. Needs PyTorch
and a Hopper GPU.

    python3 layers.py [rows of the table, counted from 0]"""
import sys
import time

import torch

import tmap
from graphs import graph_of
from tmap import moe

# experts, width, inner, k, and the numbers of tokens
MODELS = ((128, 2048, 768, 8, (16, 256, 4096)), (8, 4096, 14336, 2, (16, 1024)),
          (32, 2880, 2880, 4, (16, 256, 4096)), (32, 7168, 2048, 8, (16, 256, 1024)))
BURST_SECONDS, ROUNDS = 0.2, 3
ALLOWED, ALLOWED_US = 1.12, 20


def burst(graph, replays):
    """Returns the microseconds of a replay, after as many replays that are not timed."""
    begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
    for event in (begin, end):
        for _ in range(replays):
            graph.replay()
        event.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1e3 / replays


def times_of(graphs):
    """Returns the median burst of each graph."""
    replays = [max(3, int(BURST_SECONDS * 1e6 / burst(graph, 3))) for graph in graphs]
    bursts = [[burst(graph, count) for graph, count in zip(graphs, replays)] for _ in range(ROUNDS)]
    return [sorted(each)[ROUNDS // 2] for each in zip(*bursts)]


def bf16(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


class Layer:
    def __init__(self, experts, width, inner, k, tokens):
        self.k, self.experts = k, experts
        self.x, self.logits = bf16(tokens, width), torch.randn(tokens, experts, device="cuda")
        self.gate_up = bf16(experts, 2 * inner, width).mul_(width ** -0.5)
        self.down = bf16(experts, width, inner).mul_(inner ** -0.5)
        self.out = torch.empty_like(self.x)

    def by_torch(self):
        weights, ids = torch.topk(torch.softmax(self.logits, 1), self.k)
        weights = weights / weights.sum(1, keepdim=True)
        chosen, order = torch.sort(ids.flatten())
        ends = torch.searchsorted(chosen, torch.arange(self.experts, device="cuda"), right=True).int()
        tokens = order // self.k
        up = torch._grouped_mm(self.x[tokens], self.gate_up.transpose(1, 2), offs=ends)
        gate, value = up.chunk(2, 1)
        rows = torch._grouped_mm(torch.nn.functional.silu(gate) * value, self.down.transpose(1, 2),
                                 offs=ends)
        rows *= weights.flatten()[order].unsqueeze(1)
        return torch.zeros_like(self.x).index_add_(0, tokens, rows)

    def by_tmap(self):
        moe.layer(self.x, self.gate_up, self.down, self.logits, out=self.out, k=self.k,
                  renormalise=True)

    def scaled(self):
        """Returns a call of the layer with weights of 8 bits and block scales."""
        gate_up, gate_up_scales = quantized(self.gate_up)
        down, down_scales = quantized(self.down)

        def call():
            moe.layer(self.x, gate_up, down, self.logits, out=self.out, k=self.k, renormalise=True,
                      gate_up_scales=gate_up_scales, down_scales=down_scales)
        return call

    def products(self):
        """Returns a call of the two products, of rows that are sorted already."""
        ids = torch.topk(self.logits, self.k).indices.flatten()
        chosen, order = torch.sort(ids)
        ends = torch.bincount(chosen, minlength=self.experts).cumsum(0).int()
        rows, inner = self.x[order // self.k], self.down.shape[2]
        hidden = torch.empty(rows.shape[0], inner, device="cuda", dtype=torch.bfloat16)
        outputs = torch.empty_like(rows)

        def call():
            tmap.grouped_mm(rows, self.gate_up.transpose(1, 2), ends, out=hidden, gate="silu")
            tmap.grouped_mm(hidden, self.down.transpose(1, 2), ends, out=outputs)
        return call


def quantized(weights):
    """Returns weights [experts, n, k] in e4m3, and a scale for each 128 x 128."""
    experts, n, k = weights.shape
    padded = torch.nn.functional.pad(weights, (0, -k % 128, 0, -n % 128))
    blocks = padded.view(experts, -(-n // 128), 128, -(-k // 128), 128)
    scales = blocks.abs().amax((2, 4)).float() / 448
    values = (blocks / scales[:, :, None, :, None]).to(torch.float8_e4m3fn)
    return values.view(padded.shape)[:, :n, :k].contiguous(), scales


def difference(layer, call):
    """Returns the largest difference of two results, in parts of the largest of torch's."""
    want = layer.by_torch().float()
    call()
    return ((layer.out.float() - want).abs().max() / want.abs().max()).item()


def row_of(case):
    layer = Layer(*case)
    has_scaled = case[2] % 128 == 0  # gates in halves
    scaled = layer.scaled() if has_scaled else layer.by_tmap
    off, scaled_off = difference(layer, layer.by_tmap), difference(layer, scaled)
    torch_us, tmap_us, products_us, scaled_us = times_of(
        [graph_of(call) for call in (layer.by_torch, layer.by_tmap, layer.products(), scaled)])
    goal = ALLOWED * products_us + ALLOWED_US
    experts, width, inner, k, tokens = case
    return (f"| {experts} x {width} -> {inner}, top {k} | {tokens} | {torch_us:.1f} | {tmap_us:.1f} | "
            f"{products_us:.1f} | {tmap_us - products_us:.1f} | {tmap_us / products_us:.2f} | "
            f"{'yes' if tmap_us <= goal else 'no'} | {torch_us / tmap_us:.2f} | {off:.4f} | "
            + (f"{scaled_us:.1f} | {tmap_us / scaled_us:.2f} | {scaled_off:.4f} |" if has_scaled
               else "- | - | - |"))


def main():
    torch.manual_seed(1)
    cases = [(*model[:4], tokens) for model in MODELS for tokens in model[4]]
    wanted = [int(number) for number in sys.argv[1:]] or range(len(cases))
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; microseconds\n")
    print("| experts | tokens | torch | layer | products | around them | ratio | goal | torch / layer | "
          "difference | 8 bits | bf16 / 8 bits | difference |\n" + "|---" * 13 + "|")
    for number in wanted:
        begin = time.time()
        print(row_of(cases[number]), flush=True)
        print(f"row {number}: {time.time() - begin:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main()

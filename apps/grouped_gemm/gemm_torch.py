# SPDX-License-Identifier: Apache-2.0
"""tmap, PyTorch and Triton in one program, on the sizes of grouped_gemm_bench. Prints Markdown.

    grouped_gemm_bench --shapes > shapes.json
    TMAP_LIBRARY=build/release/libtmap.so python3 apps/grouped_gemm/gemm_torch.py shapes.json
"""
import json
import statistics
import sys
from pathlib import Path

try:
    import torch
except ImportError:
    print("gemm_torch: torch is not installed")
    sys.exit(0)
try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None
sys.path.append(str(Path(__file__).resolve().parents[2] / "python"))
try:
    import tmap
    import tmap.torch_ops
except ImportError:
    tmap = None

# Of a burst the first quarter is left out: by then the GPU has come to the clock at which it keeps to its power.
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


def rates(operations, peers, is_right):
    """TFLOP/s of each as text: means of bursts in turn. What is missing here, or computes wrongly, says so."""
    texts, timed = {}, {}
    for name, enqueue in peers.items():
        try:
            if not is_right(enqueue()):
                texts[name] = "wrong"
                continue
            once = microseconds(enqueue, WARM_UP, 1)
        except (AttributeError, BufferError, NotImplementedError, RuntimeError, TypeError, ValueError) as reason:
            texts[name] = f"- ({str(reason).splitlines()[0][:60]})"
            continue
        timed[name] = enqueue, max(1, int(BURST_MICROSECONDS / 4 / once)), []
    for _ in range(ROUNDS):
        for enqueue, quarter, times in timed.values():
            times.append(microseconds(enqueue, quarter, 3 * quarter))
    for name, (_, _, times) in timed.items():
        texts[name] = f"{operations / statistics.mean(times) * 1e-6:.0f}"
    return texts


def print_row(name, texts):
    print(f"| {name} | " + " | ".join(texts.get(peer, "-") for peer in ("tmap", "torch", "triton")) + " |", flush=True)


if triton is not None:

    @triton.autotune(
        configs=[triton.Config({"BM": bm, "BN": bn, "BK": 64}, num_warps=8, num_stages=stages)
                 for bm in (64, 128) for bn in (128, 256) for stages in (3, 4)],
        key=["N", "K", "GROUPS"])
    @triton.jit
    def rows_kernel(a, b, c, ends, N, K, GROUPS, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
        """Persistent: each program takes every n-th tile of all groups. Plain pointers."""
        tile = tl.program_id(0)
        step = tl.num_programs(0)
        columns = tl.cdiv(N, BN)
        first_tile = 0
        begin = 0
        for group in range(GROUPS):
            end = tl.load(ends + group).to(tl.int32)
            tiles = tl.cdiv(end - begin, BM) * columns
            while tile < first_tile + tiles:
                local = tile - first_tile
                row = begin + local // columns * BM + tl.arange(0, BM)
                column = local % columns * BN + tl.arange(0, BN)
                k = tl.arange(0, BK)
                from_a = a + row[:, None].to(tl.int64) * K + k[None, :]
                from_b = b + group.to(tl.int64) * N * K + column[None, :].to(tl.int64) * K + k[:, None]
                sums = tl.zeros((BM, BN), dtype=tl.float32)
                for at in range(0, K, BK):
                    in_k = k < K - at
                    left = tl.load(from_a + at, mask=(row < end)[:, None] & in_k[None, :], other=0.0)
                    right = tl.load(from_b + at, mask=(column < N)[None, :] & in_k[:, None], other=0.0)
                    sums = tl.dot(left, right, sums)
                place = c + row[:, None].to(tl.int64) * N + column[None, :]
                tl.store(place, sums.to(c.dtype.element_ty), mask=(row < end)[:, None] & (column < N)[None, :])
                tile += step
            first_tile += tiles
            begin = end

    def triton_rows(a, b, ends):
        n = b.shape[1]
        c = torch.empty(a.shape[0], n, device="cuda", dtype=a.dtype)
        blocks = torch.cuda.get_device_properties(0).multi_processor_count
        rows_kernel[(blocks,)](a, b, c, ends, n, a.shape[1], b.shape[0])
        return c


def begins_of(sizes):
    """Begin of each group and of what follows the last."""
    begins = [0]
    for size in sizes:
        begins.append(begins[-1] + size)
    return begins


def loop_is_right(a, b, sizes, scale=None, most=0.02):
    """Compares a few groups with one product each; no element may be off by more than `most` deviations and 2 %."""
    begins = begins_of(sizes)

    def is_right(c):
        for group in range(0, len(sizes), max(1, len(sizes) // 4)):
            rows = slice(begins[group], begins[group + 1])
            want = a[rows].float() @ b[group].float().t()
            if scale is not None:
                want = want * scale[0][rows, None] * scale[1][group][None, :]
            if sizes[group] and not torch.allclose(c[rows].float(), want, rtol=2e-2, atol=most * want.std().item()):
                return False
        return True

    return is_right


def print_rows(shape):
    groups, rows, n, k, sizes = (shape[key] for key in ("groups", "rows", "n", "k", "sizes"))
    operations = 2.0 * rows * n * k
    name = f"{groups}, {rows}, {n}, {k}"
    a = torch.randn(rows, k, device="cuda", dtype=torch.bfloat16)
    b = torch.empty(groups, n, k, device="cuda", dtype=torch.bfloat16).normal_()
    ends = torch.tensor(begins_of(sizes)[1:], device="cuda", dtype=torch.int32)
    right = loop_is_right(a, b, sizes)
    peers = {"torch": lambda: torch._grouped_mm(a, b.transpose(-2, -1), offs=ends)}
    if tmap is not None:
        peers["tmap"] = lambda: torch.ops.tmap.grouped_mm(a, b.transpose(-2, -1), ends)
    if triton is not None:
        peers["triton"] = lambda: triton_rows(a, b, ends)
    print_row(name, rates(operations, peers, right))
    if shape["in_8_bits"]:
        print_8_bits(name, a, b, ends, sizes, operations)


def print_8_bits(name, a, b, ends, sizes, operations):
    """Sums in f32, and what PyTorch calls fast accumulation: in the 13 bits that the tensor cores keep."""
    a8, b8 = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
    scale_a = torch.rand(a.shape[0], device="cuda") + 0.5
    scale_b = torch.rand(b.shape[0], b.shape[1], device="cuda") + 0.5
    c = torch.empty(a.shape[0], b.shape[1], device="cuda", dtype=torch.bfloat16)
    for fast, most in ((False, 0.02), (True, 0.2)):
        peers = {"torch": lambda fast=fast: torch._scaled_grouped_mm(
            a8, b8.transpose(-2, -1), scale_a, scale_b, offs=ends, out_dtype=torch.bfloat16, use_fast_accum=fast)}
        if tmap is not None:
            peers["tmap"] = lambda fast=fast: tmap.grouped_mm(
                a8, b8.transpose(-2, -1), ends, out=c, row_scales=scale_a, column_scales=scale_b, fast_accumulation=fast)
        right = loop_is_right(a8, b8, sizes, (scale_a, scale_b), most)
        print_row(f"{name}, f8{' fast' if fast else ''}", rates(operations, peers, right))


def print_weights(shape):
    groups, rows, m, n, sizes = (shape[key] for key in ("groups", "rows", "n", "k", "sizes"))
    a = torch.randn(rows, m, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(rows, n, device="cuda", dtype=torch.bfloat16)
    begins = begins_of(sizes)
    ends = torch.tensor(begins[1:], device="cuda", dtype=torch.int32)

    def is_right(c):
        rows_of = slice(begins[1], begins[2])
        want = a[rows_of].float().t() @ b[rows_of].float()
        return torch.allclose(c[1].float(), want, rtol=2e-2, atol=0.02 * want.std().item())

    peers = {"torch": lambda: torch._grouped_mm(a.t(), b, offs=ends)}
    if tmap is not None:
        peers["tmap"] = lambda: torch.ops.tmap.grouped_mm(a.t(), b, ends)
    print_row(f"gradient: {groups}, {rows}, {m}, {n}", rates(2.0 * rows * m * n, peers, is_right))


def main():
    if not torch.cuda.is_available():
        print("gemm_torch: no GPU")
        return
    with open(sys.argv[1], encoding="utf-8") as file:
        shapes = json.load(file)
    version = "not installed" if triton is None else triton.__version__
    print(f"torch {torch.__version__}, Triton {version}, {torch.cuda.get_device_name()}; TFLOP/s\n")
    if tmap is None:
        print("tmap is left out: TMAP_LIBRARY names no library\n")
    print("| groups, rows, N, K | tmap | torch | Triton, persistent, plain pointers |\n| --- | --- | --- | --- |")
    torch.backends.cuda.matmul.allow_tf32 = False
    for shape in shapes["rows"]:
        print_rows(shape)
        torch.cuda.empty_cache()
    print_weights(shapes["weights"])


main()

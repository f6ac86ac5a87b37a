# SPDX-License-Identifier: Apache-2.0
"""Calls of the operators of PyTorch in C++: good ones, and refused ones with the kernels in Python
that refuse them in the same words."""
import torch

from tmap import torch_native, torch_padding, torch_products, torch_scaled

IN_PYTHON = {"grouped_mm": torch_products.grouped_mm_cuda, "grouped_scaled_mm": torch_scaled.scaled_cuda,
             "pad_ragged": torch_padding._pad, "unpad_ragged": torch_padding._unpad}


def short(value):
    return f"{tuple(value.shape)} {value.dtype}" if isinstance(value, torch.Tensor) else repr(value)


def _random(device, *shape, dtype=torch.bfloat16):
    return (torch.randn(*shape, device=device) * 0.3).to(dtype)


class Operands:
    def __init__(self, device):
        self.device, self.ends = device, torch.tensor((5, 5, 64, 77), device=device, dtype=torch.int32)
        self.rows, self.columns = self.random(77, 64), self.random(77, 48)
        self.weights, self.bias = self.random(4, 96, 64), self.random(4, 96)

    def random(self, *shape, dtype=torch.bfloat16):
        return _random(self.device, *shape, dtype=dtype)


def good(device):
    """Returns calls that both kinds of kernel take: the name, arguments and keywords."""
    of = Operands(device)
    along_k, ends = of.weights.transpose(-2, -1), of.ends
    calls = [
        (of.rows, along_k, ends), (of.rows, along_k.contiguous(), ends.long()), (of.weights, of.rows.t(), ends),
        (of.weights, of.random(64, 80)[:, :72], ends.clamp(max=72) // 8 * 8), (of.rows.t(), of.columns, ends),
        (of.rows, along_k, ends, of.bias), (of.rows, along_k, ends, of.bias, torch.float32),
        (of.rows, along_k, ends, of.bias.t().contiguous().t()), (of.rows.t(), of.columns, ends, None, torch.float32),
        (of.rows.half(), along_k.half(), ends), (of.rows[:0], along_k, ends * 0), (of.rows[:, :0], along_k[:, :0], ends),
        (of.rows.t()[:, :0], of.columns[:0], ends * 0), (of.random(4, 8, 64), along_k),
    ]
    return ([("grouped_mm", arguments, {"zero_rest": True}) for arguments in calls] + scaled(of) + padding(of))


def checked(device):
    """Returns some good calls for PyTorch's own check, which takes no 8-bit types."""
    return [call for call in good(device)[::4] if call[0] != "grouped_scaled_mm"]


class ScaledOperands:
    """Operands of 8 bits, k 272 and n 160, with scales of blocks and of rows."""

    def __init__(self, of):
        def uniform(*shape):
            return torch.rand(*shape, device=of.device) + 0.5

        self.a = torch.randn(77, 272, device=of.device).to(torch.float8_e4m3fn)
        self.b = torch.randn(4, 160, 272, device=of.device).to(torch.float8_e4m3fn).transpose(-2, -1)
        self.of_blocks = uniform(77, 3), uniform(4, 3, 2)
        self.of_rows = uniform(77), uniform(4, 160)
        self.bias, self.ends = of.random(4, 160), of.ends


def scaled(of):
    eight = ScaledOperands(of)
    a, b, ends, bias = eight.a, eight.b, eight.ends, eight.bias
    by_columns = eight.of_blocks[0].t().contiguous().t(), eight.of_blocks[1].transpose(1, 2).contiguous().transpose(1, 2)
    strided = torch.stack((eight.of_rows[0],) * 2, 1)[:, 0], eight.of_rows[1]
    other = a.float().to(torch.float8_e5m2)
    calls = [((a, b, *scales, ends), {}) for scales in (eight.of_blocks, eight.of_rows, by_columns, strided)]
    calls += [((other, b, *eight.of_blocks, ends.long(), bias), {}), ((other, b, *eight.of_rows, ends), {}),
              ((a, b, *eight.of_rows, ends, bias, torch.float32), {}), ((a, b, *eight.of_blocks, ends, bias.t().contiguous().t()), {}),
              ((a[:0], b, *(one[:0] for one in eight.of_blocks[:1]), eight.of_blocks[1], ends * 0), {}),
              ((a[:, :0], b[:, :0], eight.of_blocks[0][:, :0], eight.of_blocks[1][:, :0], ends), {})]
    if of.device != "cpu":  # sums on the CPU are exact
        calls.append(((a, b, *eight.of_rows, ends), {"fast_accumulation": True}))
    return [("grouped_scaled_mm", arguments, {**options, "zero_rest": True}) for arguments, options in calls]


def refused_scaled(of):
    eight = ScaledOperands(of)
    a, b, ends, bias, blocks, rows = eight.a, eight.b, eight.ends, eight.bias, eight.of_blocks, eight.of_rows
    other = a.float().to(torch.float8_e5m2)
    calls = [
        ((a.float(), b, *blocks, ends), {}), ((a, other, *blocks, ends), {}), ((a, b[0], *blocks, ends), {}),
        ((a[:, :256], b, *blocks, ends), {}), ((a, b, *blocks, ends.float()), {}), ((a, b, *blocks, ends[1:]), {}),
        ((a, b, *blocks, ends.to("meta")), {}), ((a, b, *blocks, ends, bias.float()), {}),
        ((a, b, *blocks, ends, None, torch.float16), {}), ((a, b, blocks[0], rows[1], ends), {}),
        ((a, b, rows[0][1:], rows[1], ends), {}), ((a, b, rows[0].double(), rows[1], ends), {}),
        ((a, b, blocks[0], blocks[1].to("meta"), ends), {}), ((a, b, *blocks, ends), {"fast_accumulation": True}),
        ((other, b, *rows, ends), {"fast_accumulation": True}),
    ]
    return [("grouped_scaled_mm", arguments, options) for arguments, options in calls]


def padding(of):
    prefix = torch.cat((of.ends.new_zeros(1), of.ends))
    numbers = torch.arange(77 * 3, device=of.device).reshape(77, 3)
    calls = []
    for values, fill in ((of.rows, -1.5), (of.rows[:, :33], 0.0), (of.rows[:, 0], 2.0), (numbers, -7.0),
                         (numbers.to(torch.uint8), 255.0), (numbers.double(), 1e300), (numbers.half(), 65504.0),
                         (of.rows.view(77, 4, 16), float("inf")), (of.rows[:0], 3.0), (numbers % 2 == 0, 1.0)):
        for longest in (0, 1, 59, 70):
            calls.append(("pad_ragged", (values, of.ends, longest), {"fill": fill}))
    for offsets, format in ((prefix.long(), "prefix"), (prefix[::2], "prefix"), (of.ends - of.ends.roll(1), "sizes"),
                            (of.ends * 1000, "ends"), (prefix[:1], "prefix")):
        calls.append(("pad_ragged", (of.rows, offsets, 60), {"format": format}))
        count = offsets.shape[0] - (format == "prefix")
        for dense in (of.random(count, 60, 64), of.random(count, 9, 3), of.random(count, 60), of.random(count, 0, 8),
                      of.random(60, count, 64).transpose(0, 1)):
            calls.append(("unpad_ragged", (dense, offsets, 80), {"format": format}))
    return calls


def refused(device):
    of = Operands(device)
    a, b, ends = of.rows, of.weights.transpose(-2, -1), of.ends
    calls = [
        (a, b, None), (b, b, ends), (a, b.half(), ends), (a.float(), b.float(), ends), (a, b, ends.float()),
        (a, b, ends.short()), (a, b, ends.repeat_interleave(2)[::2]), (a, b, ends[None]), (a, b, ends[1:]),
        (b, a.t(), ends[1:]), (a[:, ::2], b[:, ::2], ends), (a[:, :60], b[:, :60], ends), (a[:, :32], b, ends),
        (of.weights[:, :, :32], a.t(), ends), (a, of.random(60, 48), ends), (a.t(), of.columns[:, :44], ends),
        (a, of.random(4, 100, 64).transpose(-2, -1), ends), (a, b, ends, of.bias[:3]),
        (a, b, ends, of.bias[:, :90]), (a, b, ends, of.bias.float()), (a, b, ends, of.bias.to("meta")),
        (of.weights, a.t(), ends, of.bias), (a, b.to("meta"), ends), (a, b, ends, None, torch.float64),
        (a, b, ends, None, torch.float16), (of.weights, a.t(), ends, None, torch.float32),
        (of.random(4, 8, 64), b, None, None, torch.float32), (a[0], b, ends), (a, b[None], ends),
        (a.t(), of.random(77, 4), ends, None, torch.bfloat16),
    ]
    return [("grouped_mm", arguments, {}) for arguments in calls] + refused_scaled(of) + refused_padding(of)


def refused_padding(of):
    rows, ends, dense = of.rows, of.ends, of.random(4, 5, 8)
    return [
        ("pad_ragged", (rows, ends, 4), {"format": "begins"}), ("pad_ragged", (rows, ends.float(), 4), {}),
        ("pad_ragged", (rows, ends[None], 4), {}), ("pad_ragged", (rows, ends[:0], 4), {"format": "prefix"}),
        ("pad_ragged", (rows[0, 0], ends, 4), {}), ("pad_ragged", (rows, ends.to("meta"), 4), {}),
        ("pad_ragged", (rows.half(), ends, 4), {"fill": 65520.0}), ("pad_ragged", (rows, ends, 4), {"fill": 1e39}),
        ("pad_ragged", (rows.float(), ends, 4), {"fill": -1e300}), ("pad_ragged", (ends, ends, 4), {"fill": 1.5}),
        ("pad_ragged", (rows.to(torch.uint8), ends, 4), {"fill": 256.0}), ("pad_ragged", (ends, ends, 4), {"fill": 2.0**31}),
        ("pad_ragged", (rows > 0, ends, 4), {"fill": 2.0}), ("pad_ragged", (ends.long(), ends, 4), {"fill": 2.0**63}),
        ("pad_ragged", (rows, ends, -1), {}), ("unpad_ragged", (dense, ends, -9), {}),
        ("unpad_ragged", (dense, ends, 9), {"format": "begins"}), ("unpad_ragged", (dense, ends.double(), 9), {}),
        ("unpad_ragged", (dense, ends, 9), {"format": "prefix"}), ("unpad_ragged", (dense[:3], ends, 9), {}),
        ("unpad_ragged", (rows[0], ends, 9), {}), ("unpad_ragged", (dense, ends.to("meta"), 9), {}),
    ]


def expect_words_of_python(test, device):
    """Expects each refused call to end with the same words in C++ and in Python. Returns the names
    of the operators that were called."""
    seen = set()
    for name, arguments, keywords in refused(device):
        with test.subTest(name, arguments=[short(each) for each in arguments], **keywords):
            with test.assertRaises((TypeError, ValueError)) as of_python:
                IN_PYTHON[name](*arguments, **keywords)
            with test.assertRaises(ValueError) as native:
                torch_native.kernel(name)(*arguments, **keywords)
            test.assertEqual(str(native.exception), str(of_python.exception))
            seen.add(name)
    return seen

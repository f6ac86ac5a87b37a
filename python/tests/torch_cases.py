# SPDX-License-Identifier: Apache-2.0
"""What torch.ops.tmap.* promises on every device. The test files of a device say which, and add
what is its own."""
import contextlib
import sys

import support
import torch
import torch_reference as reference
from compiling import compiled

import tmap.torch_ops
from tmap import ragged, torch_native

SIZES = (5, 0, 128, 1, 77, 300)


def grouped(a, b, offs, *rest):
    return torch.ops.tmap.grouped_mm(a, b, offs, *rest)


def is_native(name, device):
    """Whether the operator's kernel is the one in C++, which raises ValueError and RuntimeError in
    place of TypeError and tmap.Error."""
    return torch_native.has(name, device.upper())


def python_calls(call):
    """The names of functions in Python that a call runs, in turn."""
    names = []

    def note(frame, event, _):
        if event == "call":
            names.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return names


class GroupedProductCases:
    dtype = torch.bfloat16

    @property
    def type_error(self):
        return ValueError if is_native("grouped_mm", self.device) else TypeError

    def setUp(self):
        torch.manual_seed(1)
        self.ends = torch.tensor(support.ends_of(SIZES), device=self.device, dtype=torch.int32)
        self.rows, self.groups = sum(SIZES), len(SIZES)

    def random(self, *shape):
        return (torch.randn(*shape, device=self.device) * 0.3).to(self.dtype)

    def assertNear(self, found, expected):
        self.assertEqual((found.shape, found.dtype), (expected.shape, expected.dtype))
        torch.testing.assert_close(found.float(), expected.float(), rtol=2e-2, atol=2e-2)

    def cases(self):
        a, x = self.random(self.rows, 64), self.random(self.rows, 48)
        w = self.random(self.groups, 96, 64)
        return {"rows, [n, k]": (a, w.transpose(-2, -1)), "rows, [k, n]": (a, w.transpose(-2, -1).contiguous()),
                "columns": (w, a.t()), "sums": (a.t(), x)}

    def test_values_and_gradients(self):
        for name, (a, b) in self.cases().items():
            for width in (torch.int32, torch.int64):
                with self.subTest(name, width=width):
                    a, b = a.detach().requires_grad_(), b.detach().requires_grad_()
                    product = grouped(a, b, self.ends.to(width))
                    expected = reference.grouped_mm(a, b, SIZES)
                    self.assertNear(product, expected)
                    direction = self.random(*product.shape)
                    found = torch.autograd.grad(product, (a, b), direction)
                    for one, other in zip(found, torch.autograd.grad(expected, (a, b), direction)):
                        self.assertNear(one, other)

    def test_a_batch_with_no_ragged_dim(self):
        a, b = self.random(3, 40, 64).requires_grad_(), self.random(3, 64, 24).requires_grad_()
        product, expected = grouped(a, b, None), torch.bmm(a, b)
        self.assertTrue(torch.equal(product, expected))
        direction = self.random(*product.shape)
        for one, other in zip(torch.autograd.grad(product, (a, b), direction),
                              torch.autograd.grad(expected, (a, b), direction)):
            self.assertTrue(torch.equal(one, other))
        again = compiled(lambda a, b: grouped(a, b, None))(a, b)
        self.assertTrue(torch.equal(again, expected))

    def test_a_bias_and_its_gradient(self):
        a, b = self.cases()["rows, [n, k]"]
        for out_dtype in (None, torch.float32):
            with self.subTest(out_dtype):
                bias = self.random(self.groups, 96).requires_grad_()
                product = grouped(a, b, self.ends, bias, out_dtype)
                which = torch.repeat_interleave(torch.arange(self.groups, device=self.device),
                                                torch.tensor(SIZES, device=self.device))
                expected = (reference.grouped_mm(a.float(), b.float(), SIZES) + bias.float()[which])
                self.assertNear(product, expected.to(out_dtype or self.dtype))
                direction = self.random(*product.shape).to(product.dtype)
                found, = torch.autograd.grad(product, bias, direction)
                other, = torch.autograd.grad(expected, bias, direction.float())
                self.assertNear(found, other)
        again = compiled(lambda *of: grouped(*of))(a, b, self.ends, bias)
        self.assertNear(again, grouped(a, b, self.ends, bias))

    def test_the_gradient_of_a_bias_leaves_out_bad_groups(self):
        a, b = self.cases()["rows, [n, k]"]
        wild = torch.tensor((5, 3, 133, 134, 9999, 511), device=self.device, dtype=torch.int32)
        bias = self.random(self.groups, 96).requires_grad_()
        product = torch.ops.tmap.grouped_mm(a, b, wild, bias, zero_rest=True)
        product.sum().backward()
        self.assertEqual(bias.grad[:, 0].tolist(), [5, 0, 0, 1, 0, 0])

    def test_products_in_f32(self):
        for name, (a, b) in self.cases().items():
            if name == "columns":
                with self.assertRaisesRegex(self.type_error, "operands' type"):
                    grouped(a, b, self.ends, None, torch.float32)
                continue
            with self.subTest(name):
                a, b = a.detach().requires_grad_(), b.detach().requires_grad_()
                product = grouped(a, b, self.ends, None, torch.float32)
                expected = reference.grouped_mm(a.float(), b.float(), SIZES)
                self.assertEqual(product.dtype, torch.float32)
                torch.testing.assert_close(product, expected, rtol=1e-4, atol=1e-4)
                direction = self.random(*product.shape).float()
                for one, other in zip(torch.autograd.grad(product, (a, b), direction),
                                      torch.autograd.grad(expected, (a, b), direction)):
                    self.assertNear(one, other)

    def test_half_precision(self):
        self.dtype = torch.float16
        for name, (a, b) in self.cases().items():
            with self.subTest(name):
                self.assertNear(grouped(a, b, self.ends), reference.grouped_mm(a, b, SIZES))

    def test_gradients_of_a_sum_and_of_rows_without_a_group(self):
        a, b = self.cases()["rows, [n, k]"]
        a = torch.cat((a, self.random(9, 64))).requires_grad_()
        grouped(a, b, self.ends)[:self.rows].sum().backward()
        self.assertEqual(a.grad[self.rows:].abs().max().item(), 0)
        self.assertGreater(a.grad[:self.rows].abs().max().item(), 0)

    def test_compiled(self):
        a, b = self.cases()["rows, [n, k]"]
        a.requires_grad_()
        product = compiled(lambda a, b, offs: torch.relu(grouped(a, b, offs) * 2))(a, b, self.ends)
        self.assertNear(product, torch.relu(reference.grouped_mm(a, b, SIZES) * 2))
        product.sum().backward()
        self.assertEqual(a.grad.shape, a.shape)

    def test_one_compilation_serves_other_sizes(self):
        _, b = self.cases()["rows, [n, k]"]
        b.requires_grad_()
        program = compiled(lambda a, b, offs: torch.ops.tmap.unpad_ragged(torch.ops.tmap.pad_ragged(
            grouped(a, b, offs), offs, 512), offs, a.shape[0]), dynamic=True)
        for sizes in (SIZES, (9, 1, 0, 0, 70, 2), (500, 0, 0, 0, 0, 100)):
            ends = torch.tensor(support.ends_of(sizes), device=self.device, dtype=torch.int32)
            a = self.random(sum(sizes), 64).requires_grad_()
            with torch._dynamo.config.patch(error_on_recompile=sizes != SIZES):
                product = program(a, b, ends)
            self.assertNear(product, reference.grouped_mm(a, b, sizes))
            product.sum().backward()
            self.assertEqual(a.grad.shape, a.shape)

    def test_bad_groups_are_left_alone(self):
        a, b = self.cases()["rows, [n, k]"]
        wild = torch.tensor((5, 3, 133, 134, 9999, 511), device=self.device, dtype=torch.int32)
        product = torch.ops.tmap.grouped_mm(a, b, wild, zero_rest=True)
        self.assertNear(product[:5], a[:5] @ b[0])
        self.assertNear(product[133:134], a[133:134] @ b[3])
        self.assertEqual(product[5:133].abs().max().item() + product[134:].abs().max().item(), 0)

    def test_gradients_of_bad_groups_are_zero(self):
        wild = torch.tensor((5, 3, 133, 134, 9999, 511), device=self.device, dtype=torch.int32)
        good = {0: slice(0, 5), 3: slice(133, 134)}
        for name, (a, b) in self.cases().items():
            with self.subTest(name):
                a, b = a.detach().requires_grad_(), b.detach().requires_grad_()
                # Memory that nobody writes must not show.
                noise = [torch.full_like(one, torch.nan, requires_grad=False) for one in (a, b) for _ in range(4)]
                del noise
                product = grouped(a, b, wild)
                direction = torch.ones_like(product)
                of_a, of_b = torch.autograd.grad(product, (a, b), direction)
                self.assertTrue(of_a.isfinite().all() and of_b.isfinite().all())
                if name.startswith("rows"):
                    weights, rows, ragged_side = of_b, a, of_a
                elif name == "columns":
                    weights, rows, ragged_side = of_a.transpose(-2, -1), b.t(), of_b.t()
                else:
                    outside = torch.ones(self.rows, dtype=torch.bool, device=self.device)
                    for part in good.values():
                        outside[part] = False
                    self.assertEqual(of_a.t()[outside].abs().max().item() + of_b[outside].abs().max().item(), 0)
                    continue
                for group in range(self.groups):
                    if group in good:
                        part = rows[good[group]].detach()
                        expected = part.sum(0, dtype=torch.float32)[:, None].expand_as(weights[group]).to(self.dtype)
                        self.assertNear(weights[group], expected)
                    else:
                        self.assertEqual(weights[group].abs().max().item(), 0, f"group {group}")
                self.assertEqual(ragged_side[5:133].abs().max().item(), 0)

    def test_operands_that_were_good_once_are_judged_again(self):
        a, b = self.cases()["rows, [n, k]"]
        expected = grouped(a, b, self.ends)
        for error, arguments in ((self.type_error, (a, b.half(), self.ends)), (ValueError, (a, b, self.ends[:-1])),
                                 (self.type_error, (a, b, self.ends.repeat_interleave(2)[::2])),
                                 (self.type_error, (a, b, self.ends.short())),
                                 (ValueError, (a, b, self.ends, self.random(5, 96))),
                                 (self.type_error, (a, b, self.ends, None, torch.float64))):
            with self.assertRaises(error):
                grouped(*arguments)
        self.assertNear(grouped(a, b.contiguous(), self.ends), expected)
        self.assertNear(grouped(a, b, self.ends.long()), expected)

    def test_transforms_are_right_or_refused(self):
        a, b = self.cases()["rows, [n, k]"]
        try:
            found = torch.func.grad(lambda a: grouped(a, b, self.ends).float().sum())(a)
        except RuntimeError:  # of versions of PyTorch that know no transforms of operators in Python
            return
        a.requires_grad_()
        expected, = torch.autograd.grad(reference.grouped_mm(a, b, SIZES).float().sum(), a)
        self.assertNear(found, expected)

    def test_modes_see_the_operator(self):
        seen = []

        class Recorder(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                seen.append(function)
                return function(*args, **(kwargs or {}))

        a, b = self.cases()["rows, [n, k]"]
        with Recorder():
            grouped(a, b, self.ends)
        self.assertIs(seen[0], torch.ops.tmap.grouped_mm.default)

    def test_operands_that_are_negative_only_by_name(self):
        for name, (a, b) in self.cases().items():
            with self.subTest(name):
                expected = reference.grouped_mm(-a, b, SIZES)
                self.assertNear(grouped(torch._neg_view(a), b, self.ends), expected)

    def test_a_product_is_no_view_and_may_be_changed(self):
        for name, (a, b) in self.cases().items():
            with self.subTest(name), torch.no_grad():
                product = grouped(a, b, self.ends)
            self.assertFalse(product._is_view())
            factor = torch.ones((), device=self.device, dtype=self.dtype, requires_grad=True)
            product.mul_(factor).sum().backward()
            self.assertTrue(factor.grad.isfinite())

    def test_only_who_wants_a_gradient_goes_round(self):
        a, b = self.cases()["rows, [n, k]"]
        for watch in (contextlib.nullcontext, torch.no_grad, torch.inference_mode):
            with self.subTest(watch.__name__), watch():
                names = python_calls(lambda: grouped(a, b, self.ends))
                self.assertEqual(f"grouped_mm_{self.device}" in names, not is_native("grouped_mm", self.device))
                self.assertNotIn("redispatch", names)
            a.requires_grad_()
        self.assertIn("_keep_operands", python_calls(lambda: grouped(a, b, self.ends)))

    def test_products_of_nothing(self):
        none = self.random(0, 64)
        w = self.random(self.groups, 96, 64)
        zeros = torch.zeros_like(self.ends)
        self.assertEqual(grouped(none, w.transpose(-2, -1), zeros).shape, (0, 96))
        sums = grouped(none.t(), self.random(0, 48), zeros)
        self.assertEqual((sums.shape, sums.abs().max().item()), ((self.groups, 64, 48), 0))

    def test_hostile_operands(self):
        a, b = self.cases()["rows, [n, k]"]
        ends = self.ends
        for error, arguments in (
                (ValueError, (a, b, None)), (ValueError, (a, b, ends[1:])), (ValueError, (a[:, ::2], b, ends)),
                (ValueError, (a[:, :60], b[:, :60], ends)), (ValueError, (a[:, :32], b, ends)), (ValueError, (b, b, ends)),
                (self.type_error, (a, b.half(), ends)), (self.type_error, (a.float(), b.float(), ends)),
                (self.type_error, (a, b, ends.float())), (self.type_error, (a, b, ends.short())),
                (ValueError, (a, self.random(self.rows, 48), ends)), (ValueError, (a, b, ends, self.random(6, 97))),
                (ValueError, (b, a.t(), ends, self.random(6, 96))), (ValueError, (a, b, ends, self.random(6, 96).float())),
                (self.type_error, (a, b, ends, None, torch.float64))):
            with self.assertRaises(error):
                grouped(*arguments)



class PaddingCases:
    def cases(self):
        ends = torch.tensor(support.ends_of(SIZES), device=self.device)
        return {"ends": ends, "prefix": torch.cat((ends.new_zeros(1), ends)), "sizes": torch.tensor(SIZES, device=self.device)}

    def test_there_and_back_with_gradients(self):
        for form, offsets in self.cases().items():
            for dtype, inner in ((torch.float32, (33,)), (torch.bfloat16, (4, 24)), (torch.float16, ())):
                for longest in (300, 64):
                    with self.subTest(form, dtype=dtype, longest=longest):
                        self.check(form, offsets.to(torch.int32), dtype, inner, longest)

    def check(self, form, offsets, dtype, inner, longest):
        values = torch.randn(sum(SIZES) + 3, *inner, device=self.device).to(dtype).requires_grad_()
        dense = torch.ops.tmap.pad_ragged(values, offsets, longest, fill=-1.5, format=form)
        expected = reference.pad(values, SIZES, longest, -1.5)
        self.assertTrue(torch.equal(dense, expected))
        direction = torch.randn_like(dense)
        found, = torch.autograd.grad(dense, values, direction)
        self.assertTrue(torch.equal(found, torch.autograd.grad(expected, values, direction)[0]))
        back = torch.ops.tmap.unpad_ragged(dense.detach().requires_grad_(), offsets, values.shape[0], format=form)
        self.assertTrue(torch.equal(back, reference.unpad(dense, SIZES, values.shape[0])))

    def test_offsets_that_lie_lead_nowhere_else(self):
        values = torch.randn(8, 16, device=self.device)
        dense = torch.ops.tmap.pad_ragged(values, torch.tensor((3, 1_000_000), device=self.device), 8)
        self.assertTrue(torch.equal(dense, reference.pad(values, (3, 5), 8, 0)))
        back = torch.ops.tmap.unpad_ragged(dense, torch.tensor((-7, 1_000_000), device=self.device), 8)
        self.assertTrue(torch.equal(back, dense[1]))

    def test_offsets_that_cut_nothing(self):
        values, none = torch.randn(8, 16, device=self.device), torch.zeros(0, device=self.device, dtype=torch.int64)
        for form in ("ends", "sizes"):
            self.assertEqual(torch.ops.tmap.pad_ragged(values, none, 4, format=form).shape, (0, 4, 16))
        with self.assertRaisesRegex(ValueError, "one value at least"):
            torch.ops.tmap.pad_ragged(values, none, 4, format="prefix")

    def test_compiled(self):
        values, offsets = torch.randn(30, 16, device=self.device), torch.tensor((10, 30), device=self.device)
        padded = compiled(lambda v, o: torch.ops.tmap.pad_ragged(v, o, 20) + 1)(values, offsets)
        self.assertTrue(torch.equal(padded, reference.pad(values, (10, 20), 20, 0) + 1))


class WritingCases:
    """What a call writes counts as changed, so that autograd sees it."""

    def setUp(self):
        self.values, self.out = self.tensor(6, 4), self.tensor(6, 4)
        self.ends = torch.tensor((2, 6), device=self.device)

    def tensor(self, *shape):
        return torch.ones(shape, device=self.device)

    def counts(self, call, written, read):
        before = [tensor._version for tensor in (*written, *read)]
        call()
        changes = [tensor._version > version for tensor, version in zip((*written, *read), before)]
        self.assertEqual(changes, [True] * len(written) + [False] * len(read))

    def test_every_operation(self):
        values, ends, out = self.values, self.ends, self.out
        source, to = ragged.Rows(values, ends), ragged.Rows(out, ends)
        dense, packed = self.tensor(2, 4, 4), torch.zeros(128, device=self.device, dtype=torch.uint8)
        begins, few = torch.zeros(3, device=self.device, dtype=torch.int64), self.tensor(6, 1)
        statuses, header = (torch.zeros(n, device=self.device, dtype=torch.int32) for n in (2, 4))
        turned, square = self.tensor(4, 6), ragged.Tensors([values])
        narrow, line = torch.zeros(6, 4, device=self.device, dtype=torch.float8_e4m3fn), self.tensor(1, 4)
        for call, written, read in (
                (lambda: ragged.copy(source, to, statuses=statuses, header=header), (out, statuses, header),
                 (values, ends)),
                (lambda: ragged.pack(source, packed, begins=begins), (packed, begins), (values, ends)),
                (lambda: ragged.unpack(packed, to, begins=begins), (out, begins), (packed, ends)),
                (lambda: ragged.pad(source, dense), (dense,), (values, ends)),
                (lambda: ragged.unpad(dense, to), (out,), (dense, ends)),
                (lambda: ragged.gather_rows(values, ends[:1], out), (out,), (values, ends)),
                (lambda: ragged.scatter_rows(values, ends[:1], out), (out,), (values, ends)),
                (lambda: ragged.transpose(square, ragged.Tensors([turned])), (turned,), (values,)),
                (lambda: ragged.cast(source, to), (out,), (values, ends)),
                (lambda: ragged.saxpy(2, source, to), (out,), (values,)),
                (lambda: ragged.max_pool_1d(source, to, radius=1), (out,), (values, ends)),
                (lambda: ragged.reduce_rows(source, ragged.Rows(few, ends)), (few,), (values, ends)),
                (lambda: ragged.quantize(source, ragged.Rows(narrow, ends), ragged.Rows(few, ends)), (narrow, few),
                 (values, ends)),
                (lambda: ragged.column_sums(square, ragged.Tensors([line])), (line,), (values,))):
            self.counts(call, written, read)

    def test_autograd_notices_that_a_saved_tensor_was_written(self):
        weight = self.tensor(6, 4).requires_grad_()
        product = (self.out * weight).sum()
        ragged.copy(ragged.Rows(self.values, self.ends), ragged.Rows(self.out, self.ends))
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            product.backward()

    def test_tensors_that_count_nothing_are_written_as_well(self):
        with torch.inference_mode():
            out = torch.zeros(6, 4, device=self.device)
            ragged.copy(ragged.Rows(self.values, self.ends), ragged.Rows(out, self.ends))
        self.assertEqual(out.sum().item(), 24)

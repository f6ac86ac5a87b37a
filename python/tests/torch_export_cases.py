# SPDX-License-Identifier: Apache-2.0
"""A call of every operator of PyTorch that tmap registers, and what compilers may expect of it."""
import copy
import io
import warnings

import torch
from torch.utils._pytree import tree_leaves

import tmap.torch_moe  # noqa: F401: registers all operators

OPS = torch.ops.tmap
GROUPS, K, N, CHOICES = 4, 256, 512, 2
ROWS, TOKENS = 77, 19
OTHER_ROWS, OTHER_TOKENS = 91, 33
# The part of PyTorch's own check that computes with operands, which those of 8 bits cannot do.
SCHEMA = "test_schema"
PARTS = ("test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
# Operators whose gradients depend on more than they pass on.
ONCE = ("grouped_gated_mm", "grouped_mlp", "grouped_quantized_mm", "moe_combine")


def calls(device, count=ROWS, tokens=TOKENS):
    """Returns the arguments and keywords of a call by the name of the operator. Rows after the last
    group are no result of a product, so there are none."""
    def bf16(*shape):
        return (torch.randn(*shape, device=device) * 0.3).bfloat16()

    ends = torch.tensor((5, 5, 64, count), device=device, dtype=torch.int32)
    x, d_out, weights, down = bf16(count, K), bf16(count, N), bf16(GROUPS, K, N), bf16(GROUPS, N // 2, K)
    bias, sums = bf16(GROUPS, N), torch.randn(GROUPS, N, K, device=device)
    eight, of_eight = OPS.quantize(x)
    lines, of_lines = OPS.quantize(weights.transpose(1, 2), block="128x128")
    scaled = eight, lines.transpose(1, 2), of_eight, of_lines.transpose(1, 2)
    x_of_tokens, logits = bf16(tokens, K), torch.randn(tokens, GROUPS, device=device)
    ids, chances = logits.softmax(1).topk(CHOICES)[::-1]
    _, _, row_of_choice, token_of_row, _ = OPS.moe_sort(ids, GROUPS)
    rows = OPS.moe_gather(x_of_tokens, token_of_row, row_of_choice)
    return {
        "grouped_mm": ((x, weights, ends, bias), {}),
        "group_sums": ((d_out, ends), {}),
        "pad_ragged": ((x, ends, 60), {"fill": -1.5}),
        "unpad_ragged": ((bf16(GROUPS, 60, K), ends, count), {}),
        "quantize": ((x,), {"powers_of_two": True}),
        "grouped_scaled_mm": ((*scaled, ends, bias), {}),
        "grouped_quantized_mm": ((x, *scaled[1::2], ends, bias, weights), {}),
        "grouped_quantized_mm_backward": ((d_out, *scaled[1::2], ends), {}),
        "quantized_weight_gradient": ((d_out, x, ends), {"out_dtype": torch.float32}),
        "add_quantized_weight_gradient": ((sums, d_out, x, ends), {}),
        "grouped_gated_mm": ((x, weights, ends, bias), {"columns": "interleaved"}),
        "grouped_mm_gate_backward": ((bf16(count, K), down.transpose(1, 2), d_out, ends), {}),
        "grouped_scaled_gated_mm": ((*scaled, ends, bias), {"function": "gelu"}),
        "grouped_mlp": ((x, weights, down, ends, bias), {"limit": 7.0}),
        "moe_route": ((logits, CHOICES), {"renormalise": True}),
        "moe_sort": ((ids, GROUPS, chances), {}),
        "moe_gather": ((x_of_tokens, token_of_row, row_of_choice), {}),
        "moe_combine": ((rows, row_of_choice, chances, x_of_tokens), {}),
        "moe_combine_backward": ((x_of_tokens, row_of_choice, chances, rows, rows.shape[0], True), {}),
        "moe_layer": ((x_of_tokens, weights, down, ids, chances, bias), {}),
    }


def registered():
    return {name.removeprefix("tmap::") for name in torch._C._dispatch_get_all_op_names() if name.startswith("tmap::")}


def form(value):
    return [(leaf.shape, leaf.stride(), leaf.dtype, leaf.device) for leaf in tree_leaves(value) if leaf is not None]


def has_eight_bits(arguments):
    return any(isinstance(each, torch.Tensor) and each.is_floating_point() and each.itemsize == 1 for each in arguments)


def results(call, arguments):
    """Returns the bytes of what a call returns, and of the operands, which it may have changed."""
    arguments = copy.deepcopy(arguments)
    tensors = [each for each in (*tree_leaves(call(*arguments)), *arguments) if isinstance(each, torch.Tensor)]
    return [(tensor.shape, tensor.dtype, tensor.clone(memory_format=torch.contiguous_format).view(torch.uint8))
            for tensor in tensors]


class Call(torch.nn.Module):
    def __init__(self, name, keywords):
        super().__init__()
        self.operator, self.keywords = getattr(OPS, name), keywords

    def forward(self, *arguments):
        return self.operator(*arguments, **self.keywords)


class Moved(Call):
    """Computes operands in the same program, where a compiler may choose their strides."""

    def __init__(self, name, keywords):
        super().__init__(name, keywords)
        self.writes = self.operator.default._schema.is_mutable  # into an operand that the caller looks at

    def forward(self, *arguments):
        moved = (each.flip(-1).flip(-1) if isinstance(each, torch.Tensor) and each.itemsize > 1 else each
                 for each in arguments)  # PyTorch flips no 8-bit floats on the CPU
        return super().forward(*arguments if self.writes else moved)


def with_any_length(arguments):
    """Returns which dims and numbers may change, for an exporter."""
    may_change = ROWS, TOKENS, TOKENS * CHOICES

    def of(each):
        if isinstance(each, torch.Tensor):
            return {dim: torch.export.Dim.AUTO for dim, length in enumerate(each.shape) if length in may_change}
        return torch.export.Dim.AUTO if each in may_change else None
    return tuple(of(each) for each in arguments),


def saved_and_loaded(program):
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    return torch.export.load(file)


class OperatorCases:
    backend = "aot_eager"

    def setUp(self):
        torch.manual_seed(7)
        warnings.simplefilter("ignore")

    def assert_equal_results(self, found, wanted):
        self.assertEqual([one[:2] for one in found], [one[:2] for one in wanted])
        for (_, _, one), (_, _, other) in zip(found, wanted):
            self.assertTrue(torch.equal(one, other))

    def test_every_operator_has_a_call(self):
        self.assertEqual(registered(), set(calls(self.device)))

    def test_fakes_are_as_results(self):
        for name, (arguments, keywords) in calls(self.device).items():
            with self.subTest(name):
                with torch._subclasses.FakeTensorMode() as mode:
                    fakes = [mode.from_tensor(each) if isinstance(each, torch.Tensor) else each for each in arguments]
                    fake = Call(name, keywords)(*fakes)
                self.assertEqual(form(fake), form(Call(name, keywords)(*copy.deepcopy(arguments))))

    def test_pytorchs_own_check(self):
        for name, (arguments, keywords) in calls(self.device).items():
            with self.subTest(name):
                parts = PARTS if has_eight_bits(arguments) else (SCHEMA, *PARTS)
                torch.library.opcheck(getattr(OPS, name).default, arguments, keywords, test_utils=parts)

    def test_exported_programs_take_other_lengths(self):
        others = calls(self.device, OTHER_ROWS, OTHER_TOKENS)
        for name, (arguments, keywords) in calls(self.device).items():
            with self.subTest(name):
                program = torch.export.export(Call(name, keywords), copy.deepcopy(arguments),
                                              dynamic_shapes=with_any_length(arguments), strict=False)
                self.assertIn(f"tmap.{name}.default", program.graph_module.code)
                program = saved_and_loaded(program).run_decompositions()
                for operands in (arguments, others[name][0]):
                    self.assert_equal_results(results(program.module(), operands),
                                              results(Call(name, keywords), operands))

    def test_compiled_programs_take_other_lengths(self):
        others = calls(self.device, OTHER_ROWS, OTHER_TOKENS)
        for name, (arguments, keywords) in calls(self.device).items():
            with self.subTest(name):
                torch._dynamo.reset()
                call = Moved(name, keywords)
                program = torch.compile(call, fullgraph=True, dynamic=True, backend=self.backend)
                for operands in (arguments, others[name][0]):
                    self.assert_equal_results(results(program, operands), results(call, operands))

    def test_fakes_refuse_columns_that_no_gate_takes(self):
        for name, multiple in (("grouped_gated_mm", 32), ("grouped_mlp", 32), ("moe_layer", 32),
                               ("grouped_scaled_gated_mm", 256)):
            arguments, keywords = calls(self.device)[name]
            left = N - multiple // 2
            arguments = [each[..., :-(-left * each.shape[-1] // N)] if isinstance(each, torch.Tensor) and
                         each.dim() > 1 and each.shape[-1] in (N, N // 128) else each for each in arguments]
            words = f"{left} columns.*a multiple of {multiple}"
            with self.subTest(name), self.assertRaisesRegex(ValueError, words):
                Call(name, keywords)(*arguments)
            with self.subTest(name), torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True), \
                    self.assertRaisesRegex(ValueError, words):
                Call(name, keywords)(*arguments)

    def test_gradients_are_not_differentiated_again_if_a_part_is_missing(self):
        for name in ONCE:
            arguments, keywords = calls(self.device)[name]
            operands = [each.detach().requires_grad_(each.dtype == torch.bfloat16) for each in arguments]
            wanted = [each for each in operands if each.requires_grad]

            def gradients(**options):
                out = tree_leaves(Call(name, keywords)(*operands))[0]
                return torch.autograd.grad(out.float().square().sum(), wanted, **options)

            with self.subTest(name):
                first = gradients(create_graph=True)
                for one, other in zip(first, gradients()):
                    self.assertTrue(torch.equal(one, other))
                with self.assertRaisesRegex(RuntimeError, f"{name} has gradients, and these have none"):
                    torch.autograd.grad(sum(each.float().square().sum() for each in first), wanted)

# SPDX-License-Identifier: Apache-2.0
"""tmap in front of PyTorch's grouped products without a GPU: which calls it takes, and that the
others reach PyTorch. Kernels of the CPU stand for those of CUDA."""
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import support

torch = support.need("torch")
if not hasattr(torch.library, "get_kernel"):
    raise unittest.SkipTest(f"PyTorch {torch.__version__} cannot give its kernels away")
import torch_install_cases as cases  # noqa: E402
from compiling import compiled  # noqa: E402

import tmap.torch  # noqa: E402
from tmap import Status, torch_rules as rules  # noqa: E402
from tmap._gemm_problem import enqueue, prepare  # noqa: E402
from tmap.torch_products import grouped_mm_cpu, grouped_mm_fake  # noqa: E402
from tmap.torch_scaled import scaled_cpu  # noqa: E402

BF16, F16, F32, E4M3 = torch.bfloat16, torch.float16, torch.float32, torch.float8_e4m3fn
NAMES = "_grouped_mm", "_scaled_grouped_mm", "_scaled_grouped_mm_v2"
WORKSPACE = "call.workspace"
ROW_WISE = ([1], [0])  # PyTorch's numbers: recipe, swizzle


def form(shape, strides=None, dtype=BF16, device=0):
    return rules.Form(dtype, tuple(shape), tuple(strides or torch.empty(shape, device="meta").stride()), device)


def turned(*shape, dtype=BF16):
    """[..., k, n] with lines along k."""
    *groups, k, n = shape
    return rules.form_of(torch.empty(*groups, n, k, dtype=dtype, device="meta").transpose(-2, -1))._replace(device=0)


def ends(groups=4, dtype=torch.int32, device=0):
    return form((groups,), dtype=dtype, device=device)


def judge(a, b, offs, has_bias=False, out_dtype=None, capability=rules.HOPPER):
    return rules.refuse_product(a, b, offs, has_bias, out_dtype, capability)


class Products(unittest.TestCase):
    a, b = form((64, 48)), form((4, 48, 32))

    def test_what_is_taken(self):
        for name, a, b in cases.products("meta"):
            with self.subTest(name):
                offs = cases.offsets("meta")
                self.assertIsNone(judge(*map(rules.form_of, (a, b, offs))))
        self.assertIsNone(judge(self.a, self.b, ends(), out_dtype=BF16))
        halves = [each._replace(dtype=F16) for each in (self.a, self.b)]
        self.assertIsNone(judge(*halves, ends()))

    def test_each_reason(self):
        a, b = self.a, self.b
        expected = (
            (rules.CAPABILITY, judge(a, b, ends(), capability=(10, 0))),
            (rules.CAPABILITY, judge(a, b, ends(), capability=(8, 0))),
            (rules.TYPES, judge(a._replace(dtype=F32), b._replace(dtype=F32), ends())),
            (rules.TYPES, judge(a, b._replace(dtype=F16), ends())),
            (rules.BIAS, judge(a, b, ends(), has_bias=True)),
            (rules.RESULT, judge(a, b, ends(), out_dtype=F32)),
            (rules.BATCHED, judge(form((4, 16, 48)), b, None)),
            (rules.BATCHED, judge(form((48,)), b, ends())),
            (rules.OFFSETS, judge(a, b, None)),
            (rules.OFFSETS, judge(a, b, ends(dtype=torch.int64))),
            (rules.OFFSETS, judge(a, b, form((1, 4), dtype=torch.int32))),
            (rules.OFFSETS, judge(a, b, form((4,), (2,), torch.int32))),
            (rules.OFFSETS, judge(a, b, ends(3))),
            (rules.GROUPS, judge(form((48, 8)), form((8, 32)), ends(1024))),
            (rules.GROUPS, judge(a, form((0, 48, 32)), ends(0))),
            (rules.DEVICES, judge(a, b, ends(device=-1))),
            (rules.DEVICES, judge(a._replace(device=-1), b, ends(), capability=tmap.torch._capability_of(-1))),
            (rules.DEVICES, judge(a, b._replace(device=1), ends())),
            (rules.SHAPES, judge(form((64, 40)), b, ends())),
            (rules.SHAPES, judge(form((0, 48)), b, ends())),
            (rules.UNITS, judge(form((64, 20), (24, 1)), form((4, 20, 32)), ends())),
            (rules.UNITS, judge(a, turned(4, 48, 20), ends())),
            (rules.LINES, judge(form((64, 48), (52, 1)), b, ends())),
            (rules.LINES, judge(form((64, 48), (96, 2)), b, ends())),
            (rules.LINES, judge(form((64, 48), (0, 1)), b, ends())),
            (rules.LINES, judge(a, form((4, 48, 32), (0, 32, 1)), ends())),
        )
        for i, (reason, found) in enumerate(expected):
            with self.subTest(i):
                self.assertEqual(found, reason)

    def test_groups_up_to_pytorchs_limit(self):
        self.assertIsNone(judge(form((48, 8)), form((8, 32)), ends(1023)))

    def test_what_is_taken_suits_pytorch_and_the_library(self):
        """The rules against PyTorch's own checks, the stand-in for compilers, and the checks of the
        library, which has no GPU to go on with."""
        draw, counts = random.Random(3), {}
        for _ in range(1500):
            a, b, offs = random_call(draw)
            reason = judge(*(rules.form_of(each)._replace(device=0) for each in (a, b, offs)))
            counts[reason] = counts.get(reason, 0) + 1
            call = tuple(a.shape), a.stride(), tuple(b.shape), b.stride(), offs.shape[0]
            if reason is None:
                made = prepare(*call[:4], "bf16", call[4], 4, 0)
                product = torch._grouped_mm(a, b, offs=offs)
                fake = grouped_mm_fake(a, b, offs)
                for shape, strides in ((product.shape, product.stride()), (fake.shape, fake.stride())):
                    self.assertEqual((shape, strides), (made.out_shape, made.out_strides), call)
                self.assertEqual(refused_argument(made), WORKSPACE, call)
            elif reason in (rules.LINES, rules.UNITS):
                self.assertTrue(is_refused_by_either(a, b, offs), (reason, call))
        self.assertGreater(counts[None], 150)
        self.assertGreater(counts[rules.LINES], 150)
        self.assertGreater(counts[rules.UNITS], 100)


def random_call(draw):
    """Operands of three groups, each of odd or even extents, pitches and orders."""
    m, n, k = (draw.choice((1, 8, 12, 16, 24)) for _ in range(3))
    ranks = draw.choice(("rows", "columns", "sums"))
    shapes = {"rows": ((24, k), (3, k, n)), "columns": ((3, m, k), (k, 24)), "sums": ((m, 24), (24, n))}
    return *(random_matrix(draw, shape) for shape in shapes[ranks]), cases.offsets("cpu", (8, 8, 8))


def random_matrix(draw, shape, dtype=BF16, unit=8):
    *groups, rows, columns = shape
    is_turned = draw.random() < 0.5
    lines, elements = (columns, rows) if is_turned else (rows, columns)
    whole = -(-elements // unit) * unit
    pitch = draw.choice((0, elements, elements, whole, elements + unit, elements + unit // 2))
    strides = (1, pitch) if is_turned else (pitch, 1)
    between = draw.choice((0, lines * pitch, lines * pitch, lines * pitch + unit, lines * pitch + unit // 2))
    device = "cpu" if dtype is BF16 else "meta"  # PyTorch multiplies 8 bits on no CPU
    return torch.zeros(8192, dtype=dtype, device=device).as_strided(shape, (*[between] * len(groups), *strides))


def refused_argument(made):
    """Returns the argument that the library refuses in a product at good addresses. It is a member
    of the problem, or else the workspace, of which there is none: nothing runs on any machine."""
    try:
        enqueue(made, *(1 << 20 << i for i in range(4)), 0, 0)
    except tmap.Error as error:
        return error.argument
    return None


def is_refused_by_either(a, b, offs):
    try:
        torch._grouped_mm(a, b, offs=offs)
        made = prepare(a.shape, a.stride(), b.shape, b.stride(), "bf16", offs.shape[0], 4, 0)
    except (RuntimeError, ValueError):
        return True
    return refused_argument(made) != WORKSPACE


class Scaled(unittest.TestCase):
    a, b = form((64, 48), dtype=E4M3), turned(4, 48, 32, dtype=E4M3)
    a_scales, b_scales = form((64,), dtype=F32), form((4, 32), dtype=F32)

    def judge(self, has_terms=False, out_dtype=None, capability=rules.HOPPER, offs=ends(), **changed):
        operands = {"a": self.a, "b": self.b, "a_scales": self.a_scales, "b_scales": self.b_scales, **changed}
        return rules.refuse_scaled(*operands.values(), offs, has_terms, out_dtype, capability)

    def test_what_is_taken(self):
        self.assertIsNone(self.judge())
        self.assertIsNone(self.judge(out_dtype=BF16))
        self.assertIsNone(self.judge(b_scales=form((4, 32), (64, 1), F32)))

    def test_each_reason(self):
        expected = (
            (rules.CAPABILITY, self.judge(capability=(10, 0))),
            (rules.BIAS, self.judge(has_terms=True)),
            (rules.RESULT, self.judge(out_dtype=F32)),
            (rules.EIGHT_BITS, self.judge(a=self.a._replace(dtype=torch.float8_e5m2))),
            (rules.EIGHT_BITS, self.judge(b=form((4, 48, 32), dtype=E4M3))),
            (rules.EIGHT_BITS, self.judge(a=form((4, 16, 48), dtype=E4M3), offs=None)),
            (rules.EIGHT_BITS, self.judge(a=form((4, 16, 48), dtype=E4M3), b=turned(48, 32, dtype=E4M3))),
            (rules.OFFSETS, self.judge(offs=None)),
            (rules.UNITS, self.judge(a=form((64, 40), (48, 1), E4M3), b=turned(4, 40, 32, dtype=E4M3))),
            (rules.UNITS, self.judge(b=turned(4, 48, 24, dtype=E4M3))),
            (rules.LINES, self.judge(a=form((64, 48), (56, 1), E4M3))),
            (rules.DEVICES, self.judge(capability=None)),
            (rules.DEVICES, self.judge(a_scales=form((64,), dtype=F32, device=-1))),
            (rules.SCALES, self.judge(a_scales=form((63,), dtype=F32))),
            (rules.SCALES, self.judge(a_scales=form((64,), (2,), F32))),
            (rules.SCALES, self.judge(b_scales=form((4, 32), (1, 4), F32))),
            (rules.SCALES, self.judge(a_scales=form((64,), dtype=torch.float8_e8m0fnu))),
        )
        for i, (reason, found) in enumerate(expected):
            with self.subTest(i):
                self.assertEqual(found, reason)

    def test_what_is_taken_suits_pytorch_and_the_library(self):
        draw, taken = random.Random(5), 0
        for _ in range(600):
            k, n = draw.choice((16, 24, 32)), draw.choice((8, 16, 48))
            a, b = (random_matrix(draw, shape, E4M3, 16) for shape in ((24, k), (3, k, n)))
            scales = [torch.zeros(shape, device="meta") for shape in ((24,), (3, n))]
            call = a, b, *scales, cases.offsets("meta", (8, 8, 8))
            if rules.refuse_scaled(*map(rules.form_of, call), False, None, rules.HOPPER) is None:
                taken += 1
                made = prepare(a.shape, a.stride(), b.shape, b.stride(), "f8_e4m3", 3, 4, 0)
                product = torch._scaled_grouped_mm(*call)
                self.assertEqual((product.shape, product.stride()), (made.out_shape, made.out_strides))
                self.assertEqual(refused_argument(made), WORKSPACE)
        self.assertGreater(taken, 10)

    def test_recipes(self):
        row_wise = ((1, 1), ([1], [1]), ([0], [0]))
        self.assertIsNone(rules.refuse_recipes(*row_wise, ()))
        self.assertIsNone(rules.refuse_recipes(*row_wise[:2], ([], []), ()))
        for counts, recipes, swizzles, contraction in (
                ((2, 1), *row_wise[1:], ()), (row_wise[0], ([1], [3]), row_wise[2], ()),
                (*row_wise[:2], ([1], [0]), ()), (*row_wise, (-1, -2)), ((0, 1), *row_wise[1:], ())):
            self.assertEqual(rules.refuse_recipes(counts, recipes, swizzles, contraction), rules.RECIPES)

    def test_pytorchs_numbers_of_recipes(self):
        functional = torch.nn.functional
        self.assertEqual(([functional.ScalingType.RowWise.value], [functional.SwizzleType.NO_SWIZZLE.value]), ROW_WISE)


class Original:
    """Stands for a kernel of PyTorch, and notes its arguments."""

    def call_boxed(self, keys, *arguments):
        self.found = arguments
        return "PyTorch"


class Sockets(unittest.TestCase):
    """tmap in front of PyTorch's kernels of the CPU."""

    def setUp(self):
        torch.manual_seed(4)
        self.sockets = tmap.torch.Sockets("CPU", lambda device: rules.HOPPER, grouped_mm_cpu, scaled_cpu)
        self.addCleanup(self.sockets.remove)

    def count(self, name="_grouped_mm"):
        taken, passed = self.sockets.calls()[name]
        return taken, sum(passed.values())

    def test_results_and_gradients_are_as_pytorchs(self):
        offs, operands = cases.offsets("cpu"), list(cases.products("cpu"))
        found = [with_gradients(a, b, offs) for _, a, b in operands]
        self.assertEqual(self.count(), (3 * len(operands), 0))
        self.sockets.remove()
        for (name, a, b), each in zip(operands, found):
            with self.subTest(name):
                for one, other in zip(each, with_gradients(a, b, offs)):
                    self.assertEqual((one.shape, one.stride(), one.dtype), (other.shape, other.stride(), other.dtype))
                    torch.testing.assert_close(one, other, rtol=2e-2, atol=2e-2)

    def test_what_is_not_taken_is_pytorchs(self):
        a, b, offs = torch.randn(64, 48), torch.randn(4, 48, 32), torch.tensor((8, 8, 20, 64), dtype=torch.int32)
        found = torch.nn.functional.grouped_mm(a, b, offs=offs)
        batched = torch.nn.functional.grouped_mm(a.view(4, 16, 48).bfloat16(), b.bfloat16())
        self.assertEqual(self.sockets.calls()["_grouped_mm"].passed, {rules.TYPES: 1, rules.BATCHED: 1})
        self.sockets.remove()
        self.assertTrue(torch.equal(found, torch.nn.functional.grouped_mm(a, b, offs=offs)))
        self.assertEqual(batched.shape, (4, 16, 32))

    def test_errors_are_pytorchs(self):
        a, b, offs = (each.bfloat16() for each in (torch.randn(64, 48), torch.randn(4, 48, 32), torch.ones(4)))
        offs = cases.offsets("cpu", (16,) * 4)
        wrong = ((a, b, offs.long(), None, None), (a, b, None, None, None), (a, b, offs[:3], None, None),
                 (a[:, :40], b, offs, None, None), (a[:, ::2], b, offs, None, None),
                 (a, b, offs, torch.zeros(4, 32).bfloat16(), None), (a, b, offs, None, F32))
        found = [error_of(call) for call in wrong]
        self.assertEqual(self.count(), (0, len(wrong)))
        self.sockets.remove()
        self.assertEqual(found, [error_of(call) for call in wrong])
        self.assertNotIn(None, found)

    def test_compiled_programs_reach_it(self):
        a, b = torch.randn(64, 48).bfloat16().requires_grad_(), torch.randn(4, 48, 32).bfloat16().requires_grad_()
        offs = cases.offsets("cpu")

        @compiled
        def product(a, b):
            return torch.nn.functional.grouped_mm(a, b, offs=offs)

        product(a, b).backward(torch.ones(64, 32).bfloat16())
        self.assertEqual(self.count(), (3, 0))
        self.assertEqual(a.grad.shape, a.shape)

    def test_scales(self):
        a, b, a_scales, b_scales, offs = cases.scaled("cpu")
        expected = torch.ops.tmap.grouped_scaled_mm(a, b, a_scales, b_scales, offs)
        sockets = self.sockets
        self.assertTrue(torch.equal(sockets.scaled_grouped_mm(None, a, b, a_scales, b_scales, offs), expected))
        self.assertTrue(torch.equal(sockets.scaled_grouped_mm_v2(None, a, b, [a_scales], *ROW_WISE, [b_scales],
                                                                 *ROW_WISE, offs), expected))
        for name, call in ((NAMES[1], (a, b, a_scales, b_scales, offs, None, None, F32, True)),
                           (NAMES[2], (a, b, [a_scales], [3], [], [b_scales], [3], [], offs, None, None, (), True))):
            original = sockets._originals[name] = Original()
            self.assertEqual(getattr(sockets, name[1:])(None, *call), "PyTorch")
            self.assertEqual(len(original.found), len(getattr(torch.ops.aten, name).default._schema.arguments))
            for found, given in zip(original.found, call):
                self.assertIs(found, given)
            self.assertEqual(self.count(name), (1, 1))

    def test_fast_accumulation_is_asked_for(self):
        asked = []
        self.sockets._multiply_scaled = lambda *operands, fast_accumulation: asked.append(fast_accumulation)
        for fast in (False, True):
            self.sockets.scaled_grouped_mm(None, *cases.scaled("cpu"), use_fast_accum=fast)
        self.assertEqual(asked, [False, True])

    def test_what_the_library_refuses_is_pytorchs(self):
        def refuse(status):
            def multiply(*operands):
                raise tmap.Error("no", status)
            return multiply

        call = torch.randn(64, 48).bfloat16(), torch.randn(4, 48, 32).bfloat16(), cases.offsets("cpu")
        self.sockets._multiply = refuse(Status.NO_KERNEL_IMAGE)
        self.assertEqual(torch._grouped_mm(*call).shape, (64, 32))
        self.assertEqual(self.sockets.calls()["_grouped_mm"].passed, {"the library refuses the call: NO_KERNEL_IMAGE": 1})
        for status in (Status.BAD_ITEMS, Status.CUDA_FAILURE):
            self.sockets._multiply = refuse(status)
            with self.assertRaises(tmap.Error):
                torch._grouped_mm(*call)


def with_gradients(a, b, offs):
    a, b = a.detach().requires_grad_(), b.detach().requires_grad_()
    product = torch.nn.functional.grouped_mm(a, b, offs=offs)
    product.backward(torch.ones_like(product))
    return product.detach(), a.grad, b.grad


def error_of(call):
    try:
        torch._grouped_mm(*call)
    except (RuntimeError, ValueError) as error:
        return type(error), str(error)
    return None


@unittest.skipIf(torch.version.cuda is None, "this PyTorch has no kernels of CUDA")
class Installing(unittest.TestCase):
    def kernels(self):
        return [repr(torch.library.get_kernel(f"aten::{name}", "CUDA")) for name in NAMES]

    def setUp(self):
        self.assertFalse(any("tmap" in kernel for kernel in self.kernels()))
        self.addCleanup(tmap.torch.uninstall)

    def test_installing_and_undoing_it(self):
        before = self.kernels()
        tmap.torch.install()
        during = self.kernels()
        self.assertTrue(all("torch.py" in kernel for kernel in during), during)
        tmap.torch.install()
        self.assertEqual(self.kernels(), during)
        self.assertEqual(tmap.torch.installed_calls(), {name: (0, {}) for name in NAMES})
        tmap.torch.uninstall()
        self.assertEqual(self.kernels(), before)
        tmap.torch.uninstall()

    def test_kernels_of_others_come_next(self):
        other = torch.library.Library("aten", "IMPL")
        other.impl("_grouped_mm", lambda a, *operands: a.new_full((1,), 7), "CPU")
        self.addCleanup(other._destroy)
        operands = torch.randn(64, 48).bfloat16(), torch.randn(4, 48, 32).bfloat16(), cases.offsets("cpu")
        sockets = tmap.torch.Sockets("CPU", lambda device: (8, 0))
        self.addCleanup(sockets.remove)
        self.assertEqual(torch._grouped_mm(*operands).tolist(), [7])
        self.assertEqual(sockets.calls()["_grouped_mm"].passed, {rules.CAPABILITY: 1})
        sockets.remove()
        self.assertEqual(torch._grouped_mm(*operands).tolist(), [7])
        other._destroy()
        self.assertEqual(torch._grouped_mm(*operands).shape, (64, 32))

    def test_a_with_statement_undoes_what_it_did(self):
        before = self.kernels()
        with tmap.torch.install():
            self.assertNotEqual(self.kernels(), before)
            with tmap.torch.install():
                pass
            self.assertNotEqual(self.kernels(), before)
        self.assertEqual(self.kernels(), before)


class Environment(unittest.TestCase):
    """What an installed package does when programs import PyTorch."""

    def run_program(self, value):
        folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        information = folder / "tmap-0.dist-info"
        information.mkdir()
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: tmap\nVersion: 0\n")
        (information / "entry_points.txt").write_text("[torch.backends]\ntmap = tmap_autoload:install\n")
        path = os.pathsep.join((str(folder), str(Path(tmap.__file__).parents[1])))
        environment = {**os.environ, "PYTHONPATH": path}
        environment.pop("TMAP_TORCH_INSTALL", None)
        if value is not None:
            environment["TMAP_TORCH_INSTALL"] = value
        program = "import sys, torch; print('tmap.torch' in sys.modules and bool(sys.modules['tmap.torch'].installed_calls()))"
        return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)

    def test_the_variable_installs(self):
        for value, expected in ((None, "False"), ("0", "False"), ("1", "True")):
            with self.subTest(value):
                done = self.run_program(value)
                self.assertEqual((done.returncode, done.stdout.strip()), (0, expected), done.stderr)

    def test_other_values_are_refused(self):
        done = self.run_program("yes")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("TMAP_TORCH_INSTALL", done.stderr)


if __name__ == "__main__":
    unittest.main()

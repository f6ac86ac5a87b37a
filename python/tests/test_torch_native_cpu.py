# SPDX-License-Identifier: Apache-2.0
"""The operators of PyTorch in C++, without a GPU: that they are registered, and what they refuse.
A kernel for CUDA refuses tensors of the CPU with the same words, as it has not looked for a GPU."""
import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from unittest import mock

import support

torch = support.need("torch")
import torch_model_case  # noqa: E402
import torch_native_cases as cases  # noqa: E402

import tmap  # noqa: E402
from tmap import torch_native, torch_ops, torch_padding  # noqa: E402,F401

ROOT = str(Path(tmap.__file__).resolve().parents[1])  # of the package that is tested
NATIVE = unittest.skipUnless(torch_native.schemas, "libtmap_torch.so is not built (TMAP_BUILD_TORCH)")


def run_python(program, **variables):
    """Returns what a new process prints, and what it prints to the error stream."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": ROOT, **variables})
    return done.stdout.strip(), done.stderr


@NATIVE
class Registration(unittest.TestCase):
    def test_schemas_are_those_of_python(self):
        for name, schema in torch_native.schemas.items():
            with self.subTest(name):
                self.assertEqual(str(torch._C.parse_schema(f"tmap::{schema}")),
                                 str(getattr(torch.ops.tmap, name).default._schema))

    def test_kernels_for_cuda_are_those_in_cpp(self):
        for name in torch_native.schemas:
            with self.subTest(name):
                text = torch._C._dispatch_dump(f"tmap::{name}")
                line, = (line for line in text.splitlines() if line.startswith("CUDA"))
                self.assertIn("register.cpp", line)

    def test_python_keeps_all_other_keys(self):
        for name in torch_native.schemas:
            for key in ("CPU", "Meta", "Autograd"):
                with self.subTest(name, key=key):
                    self.assertTrue(torch._C._dispatch_has_kernel_for_dispatch_key(f"tmap::{name}", key))

    def test_pytorchs_own_check_passes_on_the_cpu(self):
        for name, arguments, keywords in cases.checked("cpu"):
            with self.subTest(name):
                torch.library.opcheck(getattr(torch.ops.tmap, name).default, arguments, keywords)

    def test_meta_tensors_have_the_shape_of_the_product(self):
        for name, arguments, keywords in cases.good("cpu"):
            with self.subTest(name):
                operator = getattr(torch.ops.tmap, name)
                real = operator(*arguments, **keywords)
                meta = operator(*(each.to("meta") if isinstance(each, torch.Tensor) else each for each in arguments),
                                **keywords)
                self.assertEqual((meta.shape, meta.stride(), meta.dtype, meta.is_meta),
                                 (real.shape, real.stride(), real.dtype, True))


@NATIVE
class Values(unittest.TestCase):
    def test_padding_on_the_cpu_is_that_of_python(self):
        calls = [call for call in cases.good("cpu") if call[0] in ("pad_ragged", "unpad_ragged")]
        self.assertGreater(len(calls), 50)
        for name, arguments, keywords in calls:
            with self.subTest(name, arguments=[cases.short(each) for each in arguments], **keywords):
                # Memory that nobody writes must not show.
                noise = [torch.full((n,), -7, dtype=torch.uint8) for n in (10_000, 40_000)]
                del noise
                found = torch_native.kernel(name, "CPU")(*arguments, **keywords)
                expected = cases.IN_PYTHON[name](*arguments, **keywords)
                self.assertEqual((found.stride(), found.dtype), (expected.stride(), expected.dtype))
                self.assertTrue(torch.equal(found, expected))

    def test_vmap_calls_an_operator_for_each_element(self):
        ends, batch = torch.tensor((1, 4)), torch.randn(3, 4, 8)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = torch.vmap(lambda one: torch.ops.tmap.pad_ragged(one, ends, 3))(batch)
        self.assertTrue(torch.equal(found, torch.stack([torch.ops.tmap.pad_ragged(one, ends, 3) for one in batch])))

    def test_python_and_cpp_are_different_kernels(self):
        with mock.patch.object(torch_padding, "_call", side_effect=AssertionError):
            torch.ops.tmap.pad_ragged(torch.ones(3, 4), torch.tensor((1, 3)), 2)


class PaddedThere(torch.nn.Module):
    def forward(self, values, ends):
        dense = torch.ops.tmap.pad_ragged(values, ends, 6, fill=-1.5)
        return torch.ops.tmap.unpad_ragged(dense * 2 + 1, ends, values.shape[0]), dense


@NATIVE
class WithoutPython(unittest.TestCase):
    def test_a_compiled_model_runs_in_cpp(self):
        torch_model_case.program()
        inputs = torch.randn(12, 8), torch.tensor((3, 3, 12))
        with tempfile.TemporaryDirectory() as folder:
            found, _ = torch_model_case.run_without_python(PaddedThere(), inputs, folder)
        expected = PaddedThere()(*inputs)
        self.assertEqual(len(found), len(expected))
        for one, other in zip(found, expected):
            self.assertTrue(torch.equal(one, other))


@NATIVE
class Refusals(unittest.TestCase):
    def test_words_are_those_of_python(self):
        self.assertEqual(cases.expect_words_of_python(self, "cpu"), set(torch_native.schemas))


class Fallback(unittest.TestCase):
    PROGRAM = ("import warnings; warnings.simplefilter('always')\n"
               "from tmap import torch_native, torch_ops\n"
               "import torch\n"
               "print(len(torch_native.schemas), torch._C._dispatch_has_kernel_for_dispatch_key('tmap::grouped_mm', 'CUDA'))")

    def test_python_registers_its_own_if_the_library_is_absent(self):
        out, errors = run_python(self.PROGRAM, TMAP_TORCH_LIBRARY="")
        self.assertEqual(out, "0 True")
        self.assertNotIn("RuntimeWarning", errors)

    def test_a_file_that_cannot_be_loaded_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            broken = Path(folder) / "libtmap_torch.so"
            broken.write_bytes(b"no library")
            out, errors = run_python(self.PROGRAM, TMAP_TORCH_LIBRARY=str(broken))
        self.assertEqual(out, "0 True")
        self.assertIn(f"RuntimeWarning: tmap: {broken} is not used", errors)

    def test_a_library_that_is_not_ours_is_named(self):
        out, errors = run_python(self.PROGRAM, TMAP_TORCH_LIBRARY="libc.so.6")
        self.assertEqual(out, "0 True")
        self.assertIn("libc.so.6 is not used", errors)

    @NATIVE
    def test_another_version_is_refused_by_name(self):
        other = mock.Mock()
        other.tmap_version.return_value = 20304
        with mock.patch.object(torch_native._library, "lib", other), warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            self.assertEqual(torch_native._load(torch_native.path), {})
        self.assertIn("2.3.4", str(seen[0].message))
        self.assertIn(torch_native.path, str(seen[0].message))
        self.assertIn(torch_native._library._path(), str(seen[0].message))

    @NATIVE
    def test_an_older_pytorch_is_refused_and_a_warning_names_a_library_that_was_chosen(self):
        for chosen in ({"TMAP_TORCH_LIBRARY": torch_native.path}, {}):
            with self.subTest(**chosen), mock.patch.object(torch.library, "get_kernel", create=True), \
                 mock.patch.dict(os.environ), warnings.catch_warnings(record=True) as seen:
                del torch.library.get_kernel
                os.environ.pop("TMAP_TORCH_LIBRARY", None)
                os.environ.update(chosen)
                warnings.simplefilter("always")
                self.assertEqual(torch_native._load(torch_native.path), {})
                self.assertEqual(["needs PyTorch 2.10" in str(each.message) for each in seen], [True] * len(chosen))


if __name__ == "__main__":
    unittest.main()

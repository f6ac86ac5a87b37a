# SPDX-License-Identifier: Apache-2.0
"""Kernels of Triton that use arrays of maps, compiled for a Hopper GPU. Needs no GPU."""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

import support

numpy = support.need("numpy")
triton = support.need("triton")
CACHE = tempfile.TemporaryDirectory()
os.environ["TRITON_CACHE_DIR"] = CACHE.name
import triton.language as tl  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402

import tmap  # noqa: E402
try:
    import tmap.triton as tt  # noqa: E402
except ImportError as reason:
    raise unittest.SkipTest(str(reason)) from reason
from tmap import _triton_blocks, _triton_lowering  # noqa: E402

HOPPER = GPUTarget("cuda", 90, 32)
ACQUIRE = "fence.proxy.tensormap::generic.acquire.gpu"


@triton.jit
def copy_block(maps, out, A: tl.constexpr, B: tl.constexpr):
    tt.tensor_map(out, 1, [A, B]).store([0, 0], tt.tensor_map(maps, tl.program_id(0), [A, B]).load([0, 0]))


@triton.jit
def copy_cube(maps, out, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    tt.tensor_map(out, 1, [A, B, C]).store([0, 0, 0], tt.tensor_map(maps, 0, [A, B, C]).load([0, 0, 0]))


@triton.jit
def product(maps, out, count, K, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    for group in range(tl.program_id(0), count, tl.num_programs(0)):
        left, right = tt.tensor_map(maps, 2 * group, [A, B]), tt.tensor_map(maps, 2 * group + 1, [C, B])
        sums = tl.zeros([A, C], tl.float32)
        for at in range(0, K, B):
            sums = tl.dot(left.load([0, at]), right.load([0, at]).T, sums)
        tt.tensor_map(out, group, [A, C]).store([0, 0], sums.to(out.dtype.element_ty))


@triton.jit
def add_block(maps, out, A: tl.constexpr, B: tl.constexpr):
    tt.tensor_map(out, 0, [A, B]).atomic_add([0, 0], tt.tensor_map(maps, 0, [A, B]).load([0, 0]))


@triton.jit
def copy_by_own_descriptor(x, out, A: tl.constexpr, B: tl.constexpr):
    tile = tl.make_tensor_descriptor(x, [A, B], [B, 1], [A, B]).load([0, 0])
    tt.tensor_map(out, 0, [A, B]).store([0, 0], tile)


def compiled(kernel, block, dtype="bf16", target=HOPPER):
    signature = {name: "*" + dtype if name in ("maps", "out", "x") else "i32" for name in kernel.arg_names}
    constants = dict(zip("ABC", block))
    signature.update(dict.fromkeys(constants, "constexpr"))
    return triton.compile(ASTSource(kernel, signature, constants), target=target)


def messages(error):
    """Joins the messages of an error of the compiler and of those that led to it."""
    found = []
    while error is not None:
        found.append(str(error))
        error = error.__cause__ or error.__context__
    return "\n".join(found)


class Lowering(unittest.TestCase):
    def check(self, kernel, maps):
        ptx = kernel.asm["ptx"]
        self.assertNotIn("tensormap.replace", ptx)
        self.assertEqual(kernel.metadata.global_scratch_size, 0)
        self.assertEqual(ptx.count(ACQUIRE), maps)
        first_copy = re.search(r"cp\.(reduce\.)?async\.bulk\.tensor", ptx).start()
        self.assertLess(ptx.index(ACQUIRE), first_copy)
        return ptx

    def test_a_map_is_acquired_before_the_first_copy(self):
        self.check(compiled(copy_block, (64, 64)), 2)
        self.check(compiled(copy_cube, (4, 16, 64)), 2)

    def test_copies_use_the_address_that_the_acquire_returns(self):
        ttgir = compiled(copy_block, (64, 64)).asm["ttgir"]
        made = re.findall(r"(%\S+) = tt\.elementwise_inline_asm", ttgir)
        self.assertEqual(re.findall(r"reinterpret_tensor_descriptor (%\S+) :", ttgir), made)

    def test_a_product_uses_wgmma_and_a_pipeline(self):
        ptx = self.check(compiled(product, (128, 64, 128)), 3)
        self.assertIn("wgmma.mma_async", ptx)
        loads = re.findall(r"cp\.async\.bulk\.tensor\.2d\.shared\S*", ptx)
        self.assertGreater(len(loads), 2)

    def test_reductions(self):
        self.assertIn("cp.reduce.async.bulk.tensor", self.check(compiled(add_block, (32, 32), "fp32"), 2))

    def test_tritons_own_descriptors_stay_as_they_are(self):
        kernel = compiled(copy_by_own_descriptor, (64, 64))
        self.assertIn("tensormap.replace", kernel.asm["ptx"])
        self.assertEqual(kernel.metadata.global_scratch_size, 128)

    def test_the_box_and_swizzle_are_those_that_triton_chooses(self):
        cases = [("bf16", "bf16", block) for block in
                 ((64, 64), (64, 128), (64, 32), (64, 16), (64, 8), (4, 64), (8, 64), (256, 64), (2, 4, 64), (2, 2, 64))]
        cases += [("f32", "fp32", (16, 64)), ("f32", "fp32", (4, 16)), ("u8", "u8", (64, 128)), ("u8", "u8", (32, 64)),
                  ("f64", "fp64", (16, 16)), ("f8_e4m3", "fp8e4nv", (32, 128))]
        for dtype, name, block in cases:
            with self.subTest(dtype=dtype, block=block):
                kernel = compiled(copy_block if len(block) == 2 else copy_cube, block, name)
                swizzle = tt.modes(dtype, block)["swizzle"]
                width = 0 if swizzle == "none" else int(swizzle[:-1])
                self.assertEqual(set(re.findall(r"swizzlingByteWidth = (\d+)", kernel.asm["ttgir"])), {str(width)})

    def test_many_threads_compile(self):
        with ThreadPoolExecutor(4) as pool:
            for kernel in pool.map(lambda rows: compiled(copy_block, (rows, 64)), (16, 32, 128, 256)):
                self.check(kernel, 2)

    def test_the_key_of_a_kernel_holds_the_lowering(self):
        script = ("import sys; from tmap import _triton_lowering as l; import triton.language as tl\n"
                  "if sys.argv[1] != '-': l.LOWERING = tl.constexpr(sys.argv[1])\n"
                  "import tmap.triton; print(tmap.triton.tensor_map.cache_key)")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        keys = [subprocess.run([sys.executable, "-c", script, value], env=environment, check=True, capture_output=True,
                               text=True).stdout for value in ("-", "-", "other")]
        self.assertEqual(keys[0], keys[1])
        self.assertNotEqual(keys[0], keys[2])


class Gluon(unittest.TestCase):
    def test_a_gluon_kernel_compiles(self):
        if tt.gluon is None:
            self.skipTest("this Triton's Gluon has other names")
        import gluon_cases
        kernel = gluon_cases.compiled(HOPPER)
        self.assertNotIn("tensormap.replace", kernel.asm["ptx"])
        self.assertEqual(kernel.asm["ptx"].count(ACQUIRE), 2)
        self.assertLess(kernel.asm["ptx"].index(ACQUIRE), kernel.asm["ptx"].index("cp.async.bulk.tensor"))
        self.assertEqual(kernel.metadata.global_scratch_size, 0)


class Refusals(unittest.TestCase):
    def refused(self, message, function, *arguments, **named):
        with self.assertRaises(Exception) as caught:
            function(*arguments, **named)
        self.assertRegex(messages(caught.exception), message)

    def test_versions_that_were_not_tried(self):
        for version in ("3.4.0", "3.10.0", "4.0.0"):
            self.refused(rf"found Triton {version}; tried with it: 3.5.1, 3.6.0", _triton_lowering.check_version, version)
        _triton_lowering.check_version("3.6.0+git1")

    def test_older_gpus(self):
        self.refused("tensor maps need cuda sm90", compiled, copy_block, (64, 64), target=GPUTarget("cuda", 80, 32))

    def test_blocks(self):
        for block, message in (((512, 64), r"block\[0\] is 512"), ((4, 512), r"block\[1\] is 512"),
                               ((64, 4), r"block\[1\] is 4, 8 bytes"), ((48, 64), r"block\[0\] is 48"), ((), "0 dims")):
            self.refused(message, tt.modes, "bf16", block)
        self.refused(r"block\[0\] is 512", compiled, copy_block, (512, 64))
        self.refused("dtype is 'u4_align8'", tt.modes, "u4_align8", (64, 64))

    def test_maps_of_another_box_swizzle_or_type(self):
        def spec(box=(64, 64), swizzle="128B", element_type="bf16", **others):
            return tmap.TensorSpec(element_type, (256, 256), box, swizzle=swizzle, **others)
        check = _triton_blocks.check_block
        self.assertEqual(check(spec(), None, (64, 128)), "bf16")
        self.assertEqual(check(spec((128, 64), element_type="u8"), "f8_e4m3", (64, 128)), "f8_e4m3")
        self.refused(r"the box \(32, 64\): Triton expects \(64, 64\)", check, spec((64, 32)), None, (64, 64))
        self.refused("swizzle 64B: Triton expects 128B", check, spec(swizzle="64B"), None, (64, 64))
        self.refused("dtype is f16: the maps have elements of bf16", check, spec(), "f16", (64, 64))
        self.refused("steps of 1", check, spec(element_strides=(1, 2)), None, (64, 64))
        maps = numpy.zeros((1, 128), numpy.uint8)
        self.refused("spec is None", tt.tensor_maps, maps, (64, 64))
        self.refused("maps is in memory of the host", tt.tensor_maps, maps, (64, 64), spec=spec())


if __name__ == "__main__":
    unittest.main()

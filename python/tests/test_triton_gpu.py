# SPDX-License-Identifier: Apache-2.0
"""Triton kernels move tiles of ragged groups through maps that were made on the GPU."""
import random
import sys
import unittest

import support

torch = support.need_torch_gpu()
triton = support.need("triton")
import triton.language as tl  # noqa: E402

import copied_groups  # noqa: E402
import page  # noqa: E402
import tmap  # noqa: E402
try:
    import tmap.triton as tt  # noqa: E402
except ImportError as reason:
    raise unittest.SkipTest(str(reason)) from reason

SEED = 20261
TYPES = (torch.bfloat16, torch.float16, torch.float32, torch.uint8)
BLOCKS = ((64, 64), (32, 128), (16, 32), (4, 64), (128, 16))


@triton.jit(do_not_specialize=["shift", "count"])
def copy_groups(source, target, shift, count, A: tl.constexpr, B: tl.constexpr):
    """Copies a tile of a group to the same place of another array. A shift of 1 is a fault."""
    group = tl.program_id(2)
    left = tt.tensor_map(source, (group + shift) % count, [A, B])
    right = tt.tensor_map(target, group, [A, B])
    row, column = tl.program_id(1) * A, tl.program_id(0) * B
    right.store([row, column], left.load([row, column]))


@triton.jit
def add_groups(source, target, A: tl.constexpr, B: tl.constexpr):
    group = tl.program_id(0)
    tt.tensor_map(target, 0, [A, B]).atomic_add([0, 0], tt.tensor_map(source, group, [A, B]).load([0, 0]))


class Groups(copied_groups.Groups):
    def run(self, service, block, shift=0):
        modes = tt.modes(self.values.dtype, block)
        grid = (triton.cdiv(self.width, block[1]), triton.cdiv(max(max(self.sizes), 1), block[0]), len(self.sizes))
        source, target = self.maps(service, **modes)
        with source, target:
            return copy_groups[grid](tt.tensor_maps(source, block, dtype=self.values.dtype),
                                     tt.tensor_maps(target, block, dtype=self.values.dtype), shift, len(self.sizes),
                                     *block)


class Copies(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = tmap.MapService(capacity=4096)
        cls.addClassCleanup(cls.service.close)

    def test_random_groups_are_right_and_gaps_stay(self):
        draw = random.Random(SEED)
        torch.manual_seed(SEED)
        for i in range(300):
            dtype, block = draw.choice(TYPES), draw.choice(BLOCKS)
            groups = Groups.drawn(draw, dtype)
            kernel = groups.run(self.service, block)
            self.assertTrue(groups.is_right(), f"seed {SEED}, shape {i}: {dtype} {block} {groups.width} {groups.sizes}")
            self.assertEqual(kernel.metadata.global_scratch_size, 0)

    def test_the_map_of_another_group_is_seen(self):
        for dtype in TYPES:
            groups = Groups([40, 3, 70], 64, dtype, [1, 2, 3])
            groups.run(self.service, (64, 64), shift=1)
            self.assertFalse(groups.is_right())

    def test_eight_bit_floats(self):
        groups = Groups([40, 3, 70], 128, torch.float8_e4m3fn, [1, 2, 3])
        groups.run(self.service, (64, 64))
        self.assertTrue(groups.is_right())

    def test_reductions_add_up(self):
        values = torch.randint(-8, 9, (320, 32), device="cuda").float()
        ends = torch.arange(32, 321, 32, device="cuda", dtype=torch.int32)
        out = torch.ones(33, 32, device="cuda")
        modes = tt.modes("f32", (32, 32))
        with self.service.encode_ragged(values, ends, **modes) as source, \
                self.service.encode_ragged(out, ends[:1], **modes) as target:
            add_groups[(10,)](*(tt.tensor_maps(maps, (32, 32)) for maps in (source, target)), 32, 32)
        expected = torch.ones_like(out)
        expected[:32] += values.view(10, 32, 32).sum(0)
        self.assertTrue(torch.equal(out, expected))


class Graphs(unittest.TestCase):
    def test_replays_see_maps_that_were_encoded_again(self):
        draw = random.Random(SEED)
        sizes = [100] * 12
        groups, block = Groups(sizes, 64, torch.bfloat16, [0] * 12), (32, 64)
        with tmap.MapService(capacity=256) as service:
            groups.run(service, block)
            modes = tt.modes("bf16", block)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                source, target = groups.maps(service, **modes)
                copy_groups[(1, 38, 12)](tt.tensor_maps(source, block), tt.tensor_maps(target, block), 0, 12, *block)
            for _ in range(100):
                groups.cut_again(draw)
                graph.replay()
                self.assertTrue(groups.is_right(), f"{groups.sizes}")
            source.release()
            target.release()

    def test_replays_see_maps_that_a_copy_wrote(self):
        block, count = (64, 64), 8
        spec = tt.spec(torch.zeros(64, 64, device="cuda", dtype=torch.bfloat16), block)
        tensors = [torch.randn(64, 64, device="cuda", dtype=torch.bfloat16) for _ in range(4 * count)]
        made = torch.stack([torch.frombuffer(bytearray(tmap.encode(tt.spec(one, block))), dtype=torch.uint8)
                            for one in tensors]).cuda()
        out = torch.zeros(count * 64, 64, device="cuda", dtype=torch.bfloat16)
        target = torch.stack([torch.frombuffer(bytearray(tmap.encode(tt.spec(one, block))), dtype=torch.uint8)
                              for one in out.split(64)]).cuda()
        slots, chosen = made[:count].clone(), torch.arange(count, device="cuda")

        def enqueue():
            slots.copy_(made[chosen])
            copy_groups[(1, 1, count)](tt.tensor_maps(slots, block, spec=spec), tt.tensor_maps(target, block, spec=spec),
                                       0, count, *block)
        enqueue()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            enqueue()
        draw = random.Random(SEED)
        for _ in range(200):
            wanted = [draw.randrange(len(tensors)) for _ in range(count)]
            chosen.copy_(torch.tensor(wanted))
            out.fill_(7)
            graph.replay()
            self.assertTrue(torch.equal(out, torch.cat([tensors[i] for i in wanted])))


class Others(unittest.TestCase):
    def test_maps_that_do_not_fit_are_refused(self):
        groups = Groups([40, 3], 64, torch.bfloat16, [0, 0])
        with tmap.MapService(capacity=8) as service:
            batch = service.encode_ragged(groups.values, groups.ends, (64, 64))
            with self.assertRaisesRegex(ValueError, "swizzle none: Triton expects 128B"):
                tt.tensor_maps(batch, (64, 64))
            with self.assertRaisesRegex(ValueError, r"the box \(64, 64\): Triton expects \(32, 64\)"):
                tt.tensor_maps(batch, (32, 64))
            batch.release()
            batch = service.encode_ragged(groups.values, groups.ends, **tt.modes("bf16", (64, 64)))
            maps = tt.tensor_maps(batch, (64, 64))
            batch.release()
            with self.assertRaises(tmap.Error):
                maps.data_ptr()

    def test_a_gluon_kernel_copies(self):
        if tt.gluon is None:
            self.skipTest("this Triton's Gluon has other names")
        import gluon_cases
        groups, block = Groups([40, 64, 3], 64, torch.bfloat16, [1, 1, 1]), (gluon_cases.BLOCK, gluon_cases.BLOCK)
        modes = tt.modes("bf16", block)
        with tmap.MapService(capacity=64) as service:
            source, target = groups.maps(service, **modes)
            with source, target:
                gluon_cases.copy_tile[(3,)](tt.tensor_maps(source, block), tt.tensor_maps(target, block),
                                            gluon_cases.BLOCK)
        self.assertTrue(groups.is_right())

    def test_the_sample_of_the_page_runs(self):
        (line, text), = page.samples("triton", "kernel_languages.md").items()
        page.run(text, line, "kernel_languages.md")

    def test_the_sample_multiplies(self):
        sys.path.insert(0, str(support.ROOT / "apps" / "samples" / "triton_grouped_gemm"))
        import triton_grouped_gemm
        self.assertEqual(triton_grouped_gemm.main(), 0)


if __name__ == "__main__":
    unittest.main()

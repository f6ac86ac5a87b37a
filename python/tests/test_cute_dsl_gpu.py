# SPDX-License-Identifier: Apache-2.0
"""Kernels of CuTe DSL move tiles of ragged groups through maps that were made on the GPU."""
import functools
import random
import unittest

import support

torch = support.need_torch_gpu()
cutlass = support.need("cutlass")
cute = support.need("cutlass.cute")
from cuda.bindings import driver  # noqa: E402

import copied_groups  # noqa: E402
import cute_dsl_cases as cases  # noqa: E402
import page  # noqa: E402
import tmap  # noqa: E402

SEED = 20262
TYPES = {torch.bfloat16: cutlass.BFloat16, torch.float16: cutlass.Float16, torch.float32: cutlass.Float32,
         torch.uint8: cutlass.Uint8}


@functools.cache
def compiled(dtype):
    return cute.compile(cases.copy_groups, *map(cutlass.Int64, (0, 0)), *map(cutlass.Int32, (0, 1, 1, 1)),
                        driver.CUstream(0), TYPES[dtype])


def slots_of(batch):
    return int.from_bytes(batch.ref[:8], "little")


class Groups(copied_groups.Groups):
    def __init__(self, sizes, width, dtype, gaps):
        super().__init__(sizes, width, dtype, gaps)
        self.box = (cases.ROWS, cases.LINE_BYTES // dtype.itemsize)

    def encode(self, service):
        return self.maps(service, box=self.box, swizzle="128B")

    def copy(self, source, target, most_rows, shift=0):
        rows, columns = (-(-extent // box) for extent, box in zip((max(most_rows, 1), self.width), self.box))
        compiled(self.values.dtype)(slots_of(source), slots_of(target), shift, len(self.sizes), rows, columns,
                                    driver.CUstream(torch.cuda.current_stream().cuda_stream))

    def run(self, service, shift=0):
        source, target = self.encode(service)
        with source, target:
            self.copy(source, target, max(self.sizes), shift)


class Copies(unittest.TestCase):
    def test_random_groups_are_right_and_gaps_stay(self):
        draw = random.Random(SEED)
        torch.manual_seed(SEED)
        with tmap.MapService(capacity=4096) as service, torch.cuda.stream(torch.cuda.Stream()):
            for i in range(300):
                dtype = draw.choice(list(TYPES))
                groups = Groups.drawn(draw, dtype)
                groups.run(service)
                self.assertTrue(groups.is_right(), f"seed {SEED}, shape {i}: {dtype} {groups.width} {groups.sizes}")

    def test_the_map_of_another_group_is_seen(self):
        with tmap.MapService(capacity=64) as service:
            for dtype in TYPES:
                groups = Groups([40, 3, 70], 64, dtype, [1, 2, 3])
                groups.run(service, shift=1)
                self.assertFalse(groups.is_right())
                groups.run(service)
                self.assertTrue(groups.is_right())

    def test_replays_see_maps_that_were_encoded_again(self):
        draw, groups = random.Random(SEED), Groups([100] * 12, 64, torch.bfloat16, [0] * 12)
        with tmap.MapService(capacity=256) as service:
            groups.run(service)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                source, target = groups.encode(service)
                groups.copy(source, target, most_rows=1200)
            for _ in range(100):
                groups.cut_again(draw)
                graph.replay()
                self.assertTrue(groups.is_right(), f"{groups.sizes}")
            source.release()
            target.release()


class Page(unittest.TestCase):
    def test_the_sample_of_the_page_runs(self):
        (line, text), = page.samples("cutlass", "kernel_languages.md").items()
        page.run(text, line, "kernel_languages.md")


if __name__ == "__main__":
    unittest.main()

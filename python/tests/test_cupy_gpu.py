# SPDX-License-Identifier: Apache-2.0
"""Ragged operations and maps on arrays of CuPy, by DLPack, compared with the same operations on the
host."""
import unittest

import support

cupy = support.need_cupy_gpu()
numpy = support.need("numpy")
import first_tiles  # noqa: E402
import page  # noqa: E402
import tmap  # noqa: E402
from ragged_cases import RaggedCases  # noqa: E402
from tmap import ragged  # noqa: E402


class Operations(RaggedCases, unittest.TestCase):
    def put(self, array):
        return cupy.asarray(array)

    def get(self, array):
        return cupy.asnumpy(array)


class Streams(unittest.TestCase):
    def test_work_goes_on_the_current_stream(self):
        values, ends = cupy.random.rand(4096, 256, dtype="float32"), cupy.array([1000, 4096])
        out = cupy.empty((2, 4096, 256), dtype="float32")
        cupy.cuda.Device().synchronize()
        with cupy.cuda.Stream(non_blocking=True) as stream:
            doubled = values * 2
            ragged.pad(ragged.Rows(doubled, ends), out, fill=-1)
            stream.synchronize()
        self.assertTrue((out[1, :3096] == doubled[1000:]).all())
        self.assertTrue((out[0, 1000:] == -1).all())

    def test_a_named_stream_waits_for_the_current_one(self):
        values, ends = cupy.zeros((1 << 16, 256), dtype="float32"), cupy.array([1 << 16])
        out = cupy.empty((1, 1 << 16, 256), dtype="float32")
        named = cupy.cuda.Stream(non_blocking=True)
        for _ in range(20):
            values += 1
        ragged.pad(ragged.Rows(values, ends), out, stream=named)
        named.synchronize()
        self.assertEqual(float(out.min()), 20)


class Maps(unittest.TestCase):
    def test_a_batch_and_its_arrays(self):
        values, ends = cupy.zeros((100, 64), dtype="float16"), cupy.array([40, 40, 100], dtype="int32")
        with tmap.MapService(capacity=64) as service:
            for publish in ("stores", "copy_fence"):
                with service.encode_ragged(values, ends, (16, 64), swizzle="128B", publish=publish) as batch:
                    maps = cupy.asnumpy(cupy.from_dlpack(batch.maps))
                    statuses = cupy.asnumpy(cupy.from_dlpack(batch.statuses))
                self.assertEqual(statuses.tolist(), [0, 1 << 63, 0])
                for i, part in ((0, values[:40]), (2, values[40:])):
                    expected = tmap.encode(tmap.TensorSpec.of(part, (16, 64), swizzle="128B"))
                    self.assertEqual(maps[i].tobytes(), expected)

    def test_no_other_way_to_publish(self):
        values, ends = cupy.zeros((100, 64), dtype="float16"), cupy.array([100], dtype="int32")
        with tmap.MapService(capacity=8) as service, self.assertRaisesRegex(ValueError, "publish is 'copies'"):
            service.encode_ragged(values, ends, (16, 64), publish="copies")


class Kernels(unittest.TestCase):
    """Kernels of CuPy's own compiler use the maps of a batch."""

    def run_kernel(self, name, parameters_of):
        count = sum(first_tiles.SIZES)
        values = cupy.arange(count * 64, dtype="float32").reshape(count, 64)
        ends = cupy.array(support.ends_of(first_tiles.SIZES), dtype="int32")
        tiles = cupy.full((len(first_tiles.SIZES) + 1, 4, 64), first_tiles.POISON, dtype="float32")
        module = cupy.RawModule(code=first_tiles.SOURCE, options=("-std=c++17", f"-I{tmap.include_dir()}"))
        with tmap.MapService(capacity=64) as service:
            with service.encode_ragged(values, ends, first_tiles.BOX) as batch:
                ref = numpy.frombuffer(batch.ref, batch.REF_DTYPE)
                module.get_function(name)((len(first_tiles.SIZES),), (32,), (*parameters_of(ref), tiles))
        self.assertEqual(cupy.asnumpy(tiles).tobytes(), first_tiles.expected())

    def test_a_batch_is_a_parameter_by_value(self):
        self.run_kernel("by_value", lambda ref: (ref,))

    def test_a_batch_is_a_parameter_member_by_member(self):
        self.run_kernel("by_members", lambda ref: tuple(ref[0]))

    def test_the_sample_of_the_page_runs(self):
        (line, text), = page.samples("cupy").items()
        page.run(text, line)


class Hostile(unittest.TestCase):
    def test_arrays_on_both_sides(self):
        values, ends = cupy.zeros((8, 4), dtype="float32"), numpy.array([8])
        out = cupy.full((1, 8, 4), 7, dtype="float32")
        with self.assertRaises(ValueError):
            ragged.pad(ragged.Rows(values, ends), out)
        self.assertTrue((out == 7).all())


if __name__ == "__main__":
    unittest.main()

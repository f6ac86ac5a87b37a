# SPDX-License-Identifier: Apache-2.0
"""Kernels of Numba use the maps of a batch, in a device function of CUDA C++."""
import unittest

import support

torch = support.need_torch_gpu()
numba = support.need("numba")
support.need("numba_cuda")
from numba import cuda  # noqa: E402

import first_tiles  # noqa: E402
import numba_cases  # noqa: E402
import page  # noqa: E402
import tmap  # noqa: E402


@cuda.jit
def nothing():
    pass


try:
    nothing[1, 1]()
except AttributeError as missing:  # of a NumPy that is newer than Numba
    raise unittest.SkipTest(f"Numba {numba.__version__} compiles no kernel here: {missing}")


class Kernels(unittest.TestCase):
    def tiles(self, shift):
        kernel = numba_cases.kernel()
        sizes, stream = first_tiles.SIZES, torch.cuda.Stream()
        with torch.cuda.stream(stream), tmap.MapService(capacity=64) as service:
            values = torch.arange(sum(sizes) * 64, device="cuda", dtype=torch.float32).view(-1, 64)
            ends = torch.tensor(support.ends_of(sizes), device="cuda", dtype=torch.int32)
            tiles = torch.full((len(sizes) + 1, 256), first_tiles.POISON, device="cuda")
            with service.encode_ragged(values, ends, first_tiles.BOX) as batch:
                addresses = (int.from_bytes(batch.ref[at:at + 8], "little") for at in (0, 8))
                kernel[len(sizes), 256, cuda.external_stream(stream.cuda_stream)](*addresses, len(sizes), shift, tiles)
            stream.synchronize()
            return tiles.cpu().numpy().tobytes()

    def test_a_device_function_loads_tiles(self):
        self.assertEqual(self.tiles(0), first_tiles.expected())

    def test_the_map_of_another_tensor_is_seen(self):
        self.assertNotEqual(self.tiles(1), first_tiles.expected())

    def test_the_sample_of_the_page_runs(self):
        (line, text), = page.samples("numba", "kernel_languages.md").items()
        page.run(text, line, "kernel_languages.md")


if __name__ == "__main__":
    unittest.main()

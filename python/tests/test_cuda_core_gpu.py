# SPDX-License-Identifier: Apache-2.0
"""Kernels that cuda.core compiles use the maps of a batch."""
import unittest

import support

torch = support.need_torch_gpu()
numpy = support.need("numpy")
core = support.need("cuda.core")
pathfinder = support.need("cuda.pathfinder")
import first_tiles  # noqa: E402
import page  # noqa: E402
import tmap  # noqa: E402


def header_folders():
    return [tmap.include_dir(), *map(pathfinder.find_nvidia_header_directory, ("cudart", "cccl"))]


class Kernels(unittest.TestCase):
    def test_a_batch_is_a_parameter_member_by_member(self):
        core.Device().set_current()
        options = core.ProgramOptions(std="c++17", arch="sm_90a", include_path=header_folders())
        kernel = core.Program(first_tiles.SOURCE, "c++", options).compile("cubin").get_kernel("by_members")
        count, stream = sum(first_tiles.SIZES), torch.cuda.Stream()
        with torch.cuda.stream(stream), tmap.MapService(capacity=64) as service:
            values = torch.arange(count * 64, device="cuda", dtype=torch.float32).view(count, 64)
            ends = torch.tensor(support.ends_of(first_tiles.SIZES), device="cuda", dtype=torch.int32)
            tiles = torch.full((len(first_tiles.SIZES) + 1, 4, 64), first_tiles.POISON, device="cuda")
            with service.encode_ragged(values, ends, first_tiles.BOX) as batch:
                ref = numpy.frombuffer(batch.ref, batch.REF_DTYPE)[0]
                core.launch(core.Stream.from_handle(stream.cuda_stream),
                            core.LaunchConfig(grid=len(first_tiles.SIZES), block=32), kernel, *ref, tiles.data_ptr())
            self.assertEqual(tiles.cpu().numpy().tobytes(), first_tiles.expected())

    def test_the_sample_of_the_page_runs(self):
        (line, text), = page.samples("cuda.core").items()
        page.run(text, line)


if __name__ == "__main__":
    unittest.main()

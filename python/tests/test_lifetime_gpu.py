# SPDX-License-Identifier: Apache-2.0
"""Arrays that go right after a call on another stream, host memory in a captured graph, and a
device that is not the current one: on GPUs, arrays of PyTorch."""
import gc
import unittest

import support

torch = support.need_torch_gpu()
import tmap  # noqa: E402
from tmap import ragged  # noqa: E402

ROUNDS = 20


class Streams(unittest.TestCase):
    """The stream is busy, so the call runs long after its arrays are gone and their memory has been
    written again."""

    def setUp(self):
        self.stream = torch.cuda.Stream()

    def keep_busy(self):
        torch.cuda.synchronize()
        with torch.cuda.stream(self.stream):
            torch.cuda._sleep(20_000_000)

    def test_what_an_operation_reads(self):
        count = 1 << 20
        ends, out = torch.tensor((count // 2, count), device="cuda"), torch.zeros(count, device="cuda")
        for _ in range(ROUNDS):
            out.zero_()
            self.keep_busy()
            source = torch.full((count,), 7.0, device="cuda")
            ragged.copy(ragged.Rows(source, ends.clone()), ragged.Rows(out, ends), stream=self.stream)
            del source
            noise = [torch.full((count,), 13.0, device="cuda"), torch.full((2,), -9, device="cuda")]
            torch.cuda.synchronize()
            self.assertEqual(out.unique().tolist(), [7])
            del noise

    def test_what_an_operation_writes(self):
        count = 1 << 20
        ends, source = torch.tensor((count,), device="cuda"), torch.full((count,), 7.0, device="cuda")
        for _ in range(ROUNDS):
            self.keep_busy()
            out = torch.zeros(count, device="cuda")
            ragged.copy(ragged.Rows(source, ends), ragged.Rows(out, ends), stream=self.stream)
            del out
            others = torch.full((count,), 13.0, device="cuda")
            torch.cuda.synchronize()
            self.assertEqual(others.unique().tolist(), [13])
            del others

    def test_what_a_product_reads(self):
        w, ends = torch.ones(1, 64, 64, device="cuda").bfloat16(), torch.tensor((256,), device="cuda", dtype=torch.int32)
        out = torch.zeros(256, 64, device="cuda", dtype=torch.bfloat16)
        for _ in range(ROUNDS):
            out.zero_()
            self.keep_busy()
            tmap.grouped_mm(torch.ones(256, 64, device="cuda", dtype=torch.bfloat16), w.clone(), ends.clone(), out=out,
                            stream=self.stream)
            noise = [torch.full_like(one, 5) for one in (out, w, ends)]
            torch.cuda.synchronize()
            self.assertEqual(out.unique().tolist(), [64])
            del noise

    def test_what_an_encode_reads(self):
        with tmap.MapService(capacity=256) as service:
            for _ in range(ROUNDS):
                self.keep_busy()
                values = torch.zeros(64, 64, device="cuda")
                cut = torch.tensor((5, 64), device="cuda", dtype=torch.int32)
                expected = tmap.encode(tmap.TensorSpec.of(values[:5], (8, 32)))
                batch = service.encode_ragged(values, cut, box=(8, 32), stream=self.stream)
                with torch.cuda.stream(self.stream):
                    maps = torch.from_dlpack(batch.maps).clone()
                batch.release()
                del values, cut
                noise = [torch.tensor((60, 64), device="cuda", dtype=torch.int32) for _ in range(4)]
                torch.cuda.synchronize()
                self.assertEqual(bytes(maps[0].tolist()), expected)
                del noise

    def test_memory_comes_back(self):
        def call():
            values, cut = torch.zeros(1 << 20, device="cuda"), torch.tensor((1 << 20,), device="cuda")
            ragged.copy(ragged.Rows(values, cut), ragged.Rows(torch.zeros_like(values), cut), stream=self.stream)

        call()
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        for _ in range(ROUNDS):
            call()
        torch.cuda.synchronize()
        torch.zeros(1, device="cuda")  # the allocator looks at its events
        self.assertLessEqual(torch.cuda.memory_allocated(), before + (1 << 23))


class Captures(unittest.TestCase):
    def setUp(self):
        self.source, self.out = torch.ones(1000, device="cuda"), torch.zeros(1000, device="cuda")
        ragged.copy(ragged.Tensors([self.source]), ragged.Tensors([self.out]))
        self.assertTrue(bool((self.out == 1).all()))
        self.out.zero_()
        torch.cuda.synchronize()

    def captured(self, call):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            call()
        return graph

    def test_tensors_are_refused_and_told_what_to_take(self):
        ends = torch.tensor((1000,), device="cuda")
        rows, lists = ragged.Rows(self.source, ends), ragged.Tensors([self.out])
        for sides in ((ragged.Tensors([self.source]), lists), (rows, lists), (ragged.Tensors([self.source]), rows)):
            caught = []

            def call():
                with self.assertRaises(tmap.Error) as raised:
                    ragged.copy(*sides)
                caught.append(raised.exception)
                self.out.add_(1)  # the capture goes on

            graph = self.captured(call)
            self.assertIs(caught[0].status, tmap.Status.PAGEABLE_MEMORY_IN_CAPTURE)
            self.assertRegex(str(caught[0]), "take Rows or Columns")
            graph.replay()
        self.assertEqual(self.out.unique().tolist(), [3])

    def test_shapes_on_the_device_are_replayed(self):
        ends = torch.tensor((1000,), device="cuda")
        columns = [ragged.Columns(torch.tensor([array.data_ptr()], device="cuda"), [ends], dtype="f32")
                   for array in (self.source, self.out)]
        for sides in (columns, [ragged.Rows(self.source, ends), ragged.Rows(self.out, ends)]):
            self.out.zero_()
            graph = self.captured(lambda: ragged.copy(*sides))
            self.assertEqual(self.out.unique().tolist(), [0])
            graph.replay()
            self.assertEqual(self.out.unique().tolist(), [1])


class Unnamed:
    """A tensor as an array of a library that tmap knows by DLPack only, which makes no device
    current."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **keywords):
        with torch.cuda.device(self.tensor.device):  # PyTorch wants it so
            return self.tensor.__dlpack__(**keywords)


class Devices(unittest.TestCase):
    """Arrays, service and batches are of device 1, device 0 is the current one."""
    MAPS = 2

    def setUp(self):
        if torch.cuda.device_count() < 2:
            self.skipTest("one GPU only")
        with torch.cuda.device(1):
            self.values = torch.randn(64, 64, device="cuda:1", dtype=torch.bfloat16)
            self.ends = torch.tensor((10, 64), device="cuda:1", dtype=torch.int32)
            self.service = tmap.MapService(capacity=64)
        self.assertEqual(torch.cuda.current_device(), 0)

    def encoded(self):
        return self.service.encode_ragged(self.values, self.ends, box=(8, 64))

    def test_every_method(self):
        expected = tmap.encode(tmap.TensorSpec.of(self.values[:10], (8, 64)))
        with self.encoded() as batch:
            maps = torch.from_dlpack(batch.maps)
            self.assertEqual(maps.device.index, 1)
            self.assertEqual(bytes(maps[0].tolist()), expected)
            batch.use_on(torch.cuda.Stream(device=1))
            self.assertEqual(len(batch.ref), 40)
        self.assertEqual(torch.cuda.current_device(), 0)
        self.assertEqual(self.service.statistics()["encoded_maps"], self.MAPS)
        self.service.close()
        self.assertEqual(torch.cuda.current_device(), 0)

    def test_arrays_whose_library_makes_no_device_current(self):
        values, ends = Unnamed(self.values), Unnamed(self.ends)
        with self.service.encode_ragged(values, ends, box=(8, 64)) as batch:
            expected = tmap.encode(tmap.TensorSpec.of(self.values[:10], (8, 64)))
            self.assertEqual(bytes(torch.from_dlpack(batch.maps)[0].tolist()), expected)
        rows, out = torch.tensor((1, 0), device="cuda:1"), torch.zeros(2, 64, device="cuda:1", dtype=torch.bfloat16)
        arrays = [Unnamed(tensor) for tensor in (self.values, rows, out)]
        with self.assertRaisesRegex(ValueError, "device 1.*device 0"):
            ragged.gather_rows(*arrays)
        with torch.cuda.device(1):
            ragged.gather_rows(*arrays)
        torch.cuda.synchronize(1)
        self.assertTrue(torch.equal(out, self.values[[1, 0]]))

    def test_dropped_batches_give_their_slots_back(self):
        for _ in range(40):  # the service has slots for 32 of them
            batch = self.encoded()
            del batch
            gc.collect()
            torch.cuda.synchronize(1)
        self.assertEqual(self.service.statistics()["slots"]["leased"], 0)

    def test_dropped_by_a_thread_that_has_no_context(self):
        import threading
        batches = [self.encoded() for _ in range(4)]
        thread = threading.Thread(target=batches.clear)
        thread.start()
        thread.join()
        self.assertEqual(self.service.statistics()["slots"]["leased"], 0)

    def test_arrays_of_the_other_device(self):
        with self.assertRaisesRegex(ValueError, "device 0.*device 1"):
            self.service.encode_ragged(self.values.to("cuda:0"), self.ends.to("cuda:0"), box=(8, 64))


if __name__ == "__main__":
    unittest.main()

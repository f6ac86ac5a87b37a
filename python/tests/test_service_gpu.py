# SPDX-License-Identifier: Apache-2.0
"""Maps of ragged batches, made on the GPU, compared with those of the driver."""
import unittest

import support

torch = support.need_torch_gpu()
import tmap  # noqa: E402

EMPTY = -1 << 63


def bytes_of(device_array):
    return torch.from_dlpack(device_array).cpu()


class EncodeRagged(unittest.TestCase):
    sizes = (3, 0, 64, 1, 200)

    def setUp(self):
        self.values = torch.randn(sum(self.sizes), 96, device="cuda", dtype=torch.bfloat16)
        self.service = tmap.MapService(capacity=256)
        self.addCleanup(self.service.close)
        self.ends = torch.tensor(support.ends_of(self.sizes), device="cuda", dtype=torch.int32)

    def expected(self, base, sizes, box, **modes):
        """The driver's map of each tensor that has rows."""
        begin, maps = 0, {}
        for i, size in enumerate(sizes):
            if size:
                maps[i] = tmap.encode(tmap.TensorSpec.of(base[begin:begin + size], box, **modes))
            begin += size
        return maps

    def check_maps(self, batch, expected):
        maps, statuses = bytes_of(batch.maps), bytes_of(batch.statuses).view(torch.int64).tolist()
        self.assertEqual(tuple(maps.shape), (len(self.sizes), 128))
        for i, size in enumerate(self.sizes):
            self.assertEqual(statuses[i], 0 if size else EMPTY)
            if size:
                self.assertEqual(bytes(maps[i].tolist()), expected[i], f"map {i}")

    def test_maps_are_the_drivers_in_every_format_and_width(self):
        expected = self.expected(self.values, self.sizes, (32, 64), swizzle="128B", l2_promotion="128B")
        offsets = {"ends": self.ends, "prefix": torch.cat((self.ends.new_zeros(1), self.ends)),
                   "sizes": torch.tensor(self.sizes, device="cuda", dtype=torch.int32)}
        for form, cut in offsets.items():
            for width in (torch.int32, torch.int64):
                with self.subTest(form=form, width=width):
                    batch = self.service.encode_ragged(self.values, cut.to(width), (32, 64), format=form, swizzle="128B",
                                                       l2_promotion="128B")
                    with batch:
                        self.check_maps(batch, expected)

    def test_more_dims_and_a_pitch(self):
        base = torch.randn(sum(self.sizes), 8, 64, device="cuda")[:, :5, :48]
        batch = self.service.encode_ragged(base, self.ends, (4, 2, 16), oob_fill="nan")
        self.check_maps(batch, self.expected(base, self.sizes, (4, 2, 16), oob_fill="nan"))
        batch.release()

    def test_the_stream_is_handed_over(self):
        """Offsets that another stream is still making are waited for, and so are the maps."""
        side = torch.cuda.Stream()
        late = torch.empty_like(self.ends)
        torch.cuda._sleep(50_000_000)
        late.copy_(self.ends)
        batch = self.service.encode_ragged(self.values, late, (32, 64), stream=side)
        self.check_maps(batch, self.expected(self.values, self.sizes, (32, 64)))
        batch.release()

    def test_a_batch_in_a_captured_graph_is_encoded_anew(self):
        self.service.encode_ragged(self.values, self.ends, (32, 64)).release()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            batch = self.service.encode_ragged(self.values, self.ends, (32, 64))
        self.ends.copy_(torch.tensor(support.ends_of((10, 20, 30, 0, 8)), device="cuda"))
        graph.replay()
        torch.cuda.synchronize()
        self.sizes = (10, 20, 30, 0, 8)
        self.check_maps(batch, self.expected(self.values, self.sizes, (32, 64)))
        batch.release()

    def test_bad_offsets_make_a_harmless_map_and_are_told(self):
        wild = torch.tensor((5, 3, 20, 20, 268), device="cuda", dtype=torch.int32)
        with self.service.encode_ragged(self.values, wild, (32, 64), header=True) as batch:
            statuses = bytes_of(batch.statuses).view(torch.int64).tolist()
            self.assertEqual([status == 0 for status in statuses], [True, False, True, False, True])
            self.assertTrue(tmap.rules_of(statuses[1]))
            self.assertEqual(bytes_of(batch.header).view(torch.int32).tolist(), [1, 1, 1, 0])

    def test_windows_stop_rows_behind_the_buffer(self):
        begin = self.values.data_ptr()
        windows = torch.tensor([[begin, begin + 100 * 192]], device="cuda")
        with self.service.encode_ragged(self.values, self.ends, (32, 64), windows=windows) as batch:
            statuses = bytes_of(batch.statuses).view(torch.int64).tolist()
        self.assertEqual([status == 0 for status in statuses], [True, False, True, True, False])

    def test_statistics_count(self):
        self.service.encode_ragged(self.values, self.ends, (32, 64)).release()
        self.assertEqual(self.service.statistics()["encoded_maps"], len(self.sizes))


class Hostile(unittest.TestCase):
    def setUp(self):
        self.values = torch.zeros(64, 64, device="cuda")
        self.service = tmap.MapService(capacity=16)
        self.addCleanup(self.service.close)
        self.ends = torch.tensor((16, 64), device="cuda", dtype=torch.int32)

    def refused(self, kind, *arguments, **keywords):
        before = self.service.statistics()
        with self.assertRaises(kind) as caught:
            self.service.encode_ragged(*arguments, **keywords)
        self.assertEqual(self.service.statistics(), before)
        return caught.exception

    def test_wrong_arguments(self):
        values, ends = self.values, self.ends
        self.refused(TypeError, [1, 2], ends, (8, 8))
        self.refused(TypeError, values, [16, 64], (8, 8))
        self.refused(TypeError, values, ends.float(), (8, 8))
        self.refused(TypeError, values.to(torch.complex64), ends, (8, 8))
        self.refused(ValueError, values, ends.cpu(), (8, 8))
        self.refused(ValueError, values.cpu(), ends.cpu(), (8, 8))
        self.refused(ValueError, values, ends, (8,))
        self.refused(ValueError, values[:, ::2], ends, (8, 8))
        self.refused(ValueError, values, ends, (8, 8), format="begins")
        self.refused(ValueError, values, ends, (8, 8), swizzle="129B")
        self.refused(ValueError, values, ends, (8, -8))
        self.refused(TypeError, values, ends, (8, 8), stream="default")
        self.assertIs(self.refused(tmap.Error, values, ends, (8, 257)).status, tmap.Status.RULE_BROKEN)

    def test_exhaustion_says_where_the_slots_are(self):
        ends = torch.zeros(17, device="cuda", dtype=torch.int32)
        with self.assertRaises(tmap.Error) as caught:
            self.service.encode_ragged(self.values, ends, (8, 8))
        self.assertIs(caught.exception.status, tmap.Status.POOL_EXHAUSTED)
        self.assertEqual(caught.exception.slots["capacity"], 16)

    def test_a_released_batch_is_gone(self):
        batch = self.service.encode_ragged(self.values, self.ends, (8, 8))
        maps = batch.maps
        batch.release()
        for use in (batch.release, lambda: batch.ref, lambda: batch.maps, lambda: batch.use_on(0),
                    lambda: maps.__dlpack__(max_version=(1, 0)), lambda: maps.__dlpack__(stream=-1, max_version=(1, 0))):
            with self.assertRaises(tmap.Error) as caught:
                use()
            self.assertIs(caught.exception.status, tmap.Status.INVALID_HANDLE)

    def test_a_closed_service_is_gone_and_its_batches_are_not(self):
        batch = self.service.encode_ragged(self.values, self.ends, (8, 8))
        self.service.close()
        self.service.close()
        with self.assertRaises(tmap.Error) as caught:
            self.service.encode_ragged(self.values, self.ends, (8, 8))
        self.assertIs(caught.exception.status, tmap.Status.INVALID_HANDLE)
        self.assertEqual(bytes_of(batch.statuses).view(torch.int64).tolist(), [0, 0])
        self.service = tmap.MapService(capacity=16)
        batch.release()

    def test_maps_are_read_only(self):
        with self.service.encode_ragged(self.values, self.ends, (8, 8)) as batch:
            with self.assertRaises(BufferError):
                batch.maps.__dlpack__(stream=-1)
            with self.assertRaises(BufferError):
                batch.maps.__dlpack__(stream=-1, max_version=(1, 0), copy=True)


if __name__ == "__main__":
    unittest.main()

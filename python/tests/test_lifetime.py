# SPDX-License-Identifier: Apache-2.0
"""Arrays live until the stream that uses them has done so, over stand-ins for CUDA's driver, the
library, PyTorch and CuPy."""
import gc
import unittest
import unittest.mock
import weakref

from lifetime_cases import StandIns
from stand_ins import GLOBAL, CuPyArray, OnDevice, Tensor

import tmap
from tmap import _lifetime, ragged
from tmap import _structs as c
from tmap._libraries import ADAPTORS, LEGACY_STREAM


class Torches(StandIns):
    """PyTorch's allocator learns of a stream that is not the current one."""

    def pad(self, **options):
        self.arrays = [self.tensor("float32", 8, 4), self.tensor("int64", 2), self.tensor("float32", 2, 8, 4)]
        self.others = [self.tensor("int32", 2), self.tensor("int32", 4), self.tensor("uint64", 2, 2)]
        values, ends, out = self.arrays
        statuses, header, windows = self.others
        ragged.pad(ragged.Rows(values, ends), out, statuses=statuses, header=header, windows=windows, **options)

    def test_every_array_of_a_call(self):
        self.pad(stream=9)
        self.assertEqual([array.streams for array in self.arrays + self.others], [[9]] * 6)
        self.assertEqual(self.torch.waits, [(9, 5)] * 6)

    def test_nothing_is_to_be_told_on_the_current_stream(self):
        for options in ({}, {"stream": 5}):
            self.pad(**options)
            self.assertEqual([array.streams for array in self.arrays + self.others], [[]] * 6)
        self.assertFalse(_lifetime._kept)

    def test_the_legacy_stream_is_its_default_stream(self):
        self.pad(stream=LEGACY_STREAM)
        self.assertEqual([array.streams for array in self.arrays + self.others], [[0]] * 6)
        self.assertEqual(self.torch.waits, [(0, 5)] * 6)
        with unittest.mock.patch.object(ADAPTORS[Tensor], "current_stream", lambda device: 0):
            self.pad(stream=LEGACY_STREAM)
        self.assertEqual([array.streams for array in self.arrays + self.others], [[]] * 6)

    def test_what_is_written_counts_as_changed(self):
        self.pad()
        self.assertEqual([array.version for array in self.arrays + self.others], [0, 0, 1, 1, 1, 0])

    def test_a_call_that_failed_changed_nothing(self):
        self.library.answer = tmap.Status.INVALID_ARGUMENT
        with self.assertRaises(tmap.Error):
            self.pad()
        self.assertEqual([array.version for array in self.arrays + self.others], [0] * 6)

    def test_shapes_on_the_host_live_until_they_are_copied(self):
        kept = []
        with unittest.mock.patch.object(_lifetime, "keep", lambda stream, references: kept.extend(references)):
            ragged.copy(ragged.Tensors([self.tensor("float32", 4, 4)]), ragged.Tensors([self.tensor("float32", 4, 4)]))
        self.assertEqual([type(one) for one in kept], [c.MapPatch * 1] * 2)

    def test_a_product(self):
        a, b = self.tensor("bfloat16", 16, 16), self.tensor("bfloat16", 1, 16, 16)
        offs, out = self.tensor("int32", 1), self.tensor("bfloat16", 16, 16)
        tmap.grouped_mm(a, b, offs, out=out, stream=9)
        self.assertEqual([(array.streams, array.version) for array in (a, b, offs, out)], [([9], 0)] * 3 + [([9], 1)])

    def test_a_batch_until_its_streams_are_done(self):
        values, ends = self.tensor("float32", 8, 16), self.tensor("int32", 2)
        batch = tmap.MapService().encode_ragged(values, ends, (8, 16), stream=9)
        self.assertEqual((values.streams, ends.streams), ([9], [9]))
        batch.use_on(11)
        batch.use_on(5)
        self.assertEqual((values.streams, ends.streams), ([9, 11], [9]))
        batch.release()
        self.assertFalse(_lifetime._kept)

    def test_a_header_until_its_streams_are_done(self):
        given_back, calls = [], []
        service, values, ends = tmap.MapService(), self.tensor("float32", 8, 16), self.tensor("int32", 2)
        self.library.tmap_service_encode = lambda *arguments: calls.append(c.Call.from_buffer_copy(arguments[-1])) or 0
        with unittest.mock.patch.object(ADAPTORS[Tensor], "give_back", given_back.append):
            batch = service.encode_ragged(values, ends, (8, 16), header=True)
            self.assertIsNone(service.encode_ragged(values, ends, (8, 16)).header)
        self.assertEqual([(call.header, call.stream) for call in calls], [(4096, 5), (None, 5)])
        self.assertEqual(batch.header.shape, (4,))
        batch.use_on(11)
        batch.release()
        self.assertEqual((sorted(self.driver.events.values()), given_back), ([5, 11], []))
        self.driver.pass_all()
        _lifetime.let_go()
        self.assertEqual(given_back, [4096])

    def test_a_header_is_memory_of_some_library(self):
        with self.assertRaisesRegex(ValueError, "PyTorch or CuPy"):
            tmap.MapService().encode_ragged(OnDevice((8, 16), "f32"), OnDevice((2,), "i32"), (8, 16), header=True)


class References(StandIns):
    """References keep arrays of libraries that cannot learn of a stream."""

    def gather(self, kind, stream=None):
        arrays = [kind((8, 4), "f32"), kind((3,), "i32"), kind((3, 4), "f32")]
        ragged.gather_rows(*arrays, stream=stream)
        return [weakref.ref(array) for array in arrays]

    def are_kept(self, references):
        gc.collect()
        kept = [reference() is not None for reference in references]
        self.assertEqual(len(set(kept)), 1)
        return kept[0]

    def test_arrays_live_until_the_stream_is_done(self):
        for kind, stream in ((OnDevice, None), (OnDevice, 9), (CuPyArray, 9)):
            with self.subTest(kind.__name__, stream=stream):
                references = self.gather(kind, stream)
                self.assertEqual(list(self.driver.events.values()), [stream or 1])
                self.assertTrue(self.are_kept(references))
                later = self.gather(kind, stream)
                self.assertTrue(self.are_kept(references))
                self.driver.pass_all()
                _lifetime.let_go()
                self.assertFalse(self.are_kept(references) or self.are_kept(later))
                self.assertEqual(self.driver.events, {})

    def test_cupys_own_stream_reuses_memory_in_its_order(self):
        self.assertFalse(self.are_kept(self.gather(CuPyArray)))
        self.assertFalse(self.are_kept(self.gather(CuPyArray, 5)))
        self.assertEqual(self.driver.events, {})

    def test_a_stream_that_is_done_does_not_wait_for_another(self):
        first, second = self.gather(OnDevice, 9), self.gather(OnDevice, 11)
        self.driver.passed.add(2)
        self.gather(OnDevice, 11)
        self.assertTrue(self.are_kept(first))
        self.assertFalse(self.are_kept(second))

    def test_a_call_costs_the_same_however_many_are_kept(self):
        references = [self.gather(OnDevice, stream) for stream in range(9, 50)]
        self.driver.queries = self.driver.mode_changes = 0
        self.gather(OnDevice, 9)
        self.assertEqual((self.driver.queries, self.driver.mode_changes), (_lifetime._LOOKED_AT, 2))
        self.driver.pass_all()
        for _ in range(len(references)):
            self.gather(OnDevice, 9)
        self.assertFalse(any(self.are_kept(one) for one in references))

    def test_looking_may_come_to_look_again(self):
        """As when an object ends meanwhile whose end calls the library."""
        references = [self.gather(OnDevice, stream) for stream in (9, 11, 13)]
        self.driver.passed.update((1, 3))
        query, nested = self.driver.cuEventQuery, iter((_lifetime.let_go, _lifetime.let_go))

        def looks_again(event):
            answer = query(event)
            next(nested, lambda: None)()
            return answer

        with unittest.mock.patch.object(self.driver, "cuEventQuery", looks_again, create=True):
            _lifetime.let_go()
        self.assertEqual([self.are_kept(one) for one in references], [False, True, False])

    def test_calls_of_any_kind_look(self):
        references = self.gather(OnDevice)
        self.driver.pass_all()
        arrays = [self.tensor("float32", 8, 4), self.tensor("int32", 3), self.tensor("float32", 3, 4)]
        ragged.gather_rows(*arrays)
        self.assertFalse(self.are_kept(references))

    def test_looking_breaks_no_capture(self):
        references = self.gather(OnDevice, 9)
        self.driver.capturing.add(11)
        self.gather(OnDevice, 9)
        self.driver.pass_all()
        _lifetime.let_go()
        self.assertFalse(self.are_kept(references))
        self.assertEqual((self.driver.broken_captures, self.driver.capture_mode), (0, GLOBAL))

    def test_a_captured_call_leaves_its_arrays_to_the_caller(self):
        self.driver.capturing.add(9)
        self.assertFalse(self.are_kept(self.gather(OnDevice, 9)))
        self.assertEqual(self.driver.events, {})

    def test_a_batch_keeps_what_its_maps_describe(self):
        for kind, streams in ((OnDevice, (1, 11)), (CuPyArray, (11,))):
            values, ends = kind((8, 16), "f32"), kind((2,), "i32")
            batch = tmap.MapService().encode_ragged(values, ends, (8, 16))
            described, cut = weakref.ref(values), weakref.ref(ends)
            del values, ends
            self.driver.pass_all()
            _lifetime.let_go()
            self.assertTrue(self.is_alive(described))
            self.assertFalse(self.is_alive(cut))
            batch.use_on(11)
            batch.release()
            self.assertEqual(sorted(self.driver.events.values()), sorted(streams))
            self.assertTrue(self.is_alive(described))
            self.driver.pass_all()
            _lifetime.let_go()
            self.assertFalse(self.is_alive(described))

    def test_a_batch_that_is_dropped_keeps_it_too(self):
        values = OnDevice((8, 16), "f32")
        described = weakref.ref(values)
        tmap.MapService().encode_ragged(values, OnDevice((2,), "i32"), (8, 16), stream=9)
        del values
        gc.collect()
        self.assertEqual(list(self.driver.events.values()), [9, 9])
        self.assertTrue(self.is_alive(described))
        self.driver.pass_all()
        _lifetime.let_go()
        self.assertFalse(self.is_alive(described))

    def test_an_event_that_cannot_be_made_keeps_for_good(self):
        with unittest.mock.patch.object(self.driver, "cuEventRecord", lambda event, stream: 2, create=True):
            references = self.gather(OnDevice)
        self.driver.pass_all()
        _lifetime.let_go()
        self.assertTrue(self.are_kept(references))
        _lifetime._kept.clear()


if __name__ == "__main__":
    unittest.main()

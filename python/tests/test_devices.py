# SPDX-License-Identifier: Apache-2.0
"""A service and its batches work in their own context whichever device is current."""
import gc
import unittest
import unittest.mock
import warnings

from lifetime_cases import StandIns
from stand_ins import CONTEXT_OF, OnDevice

import tmap
from tmap import _lease, ragged
from tmap._libraries import Form

HERE, OTHER = CONTEXT_OF[0], CONTEXT_OF[1]


class Devices(StandIns):
    """The service and its batch are of device 0; device 1 is made the current one."""

    def setUp(self):
        super().setUp()
        self.service = tmap.MapService()
        values, ends = OnDevice((8, 16), "f32"), OnDevice((2,), "i32")
        self.batch = self.service.encode_ragged(values, ends, (8, 16))
        self.driver.contexts.append(OTHER)
        self.library.calls.clear()

    def called(self, *names):
        self.assertEqual(self.library.calls, [(name, HERE) for name in names])
        self.assertEqual(self.driver.contexts, [HERE, OTHER])
        self.library.calls.clear()

    def test_every_method_of_a_batch(self):
        batch = self.batch
        for use, name in ((lambda: batch.use_on(9), "use_on"), (batch.check_lent, "query"), (lambda: batch.ref, "query"),
                          (lambda: batch.maps, "query"), (lambda: batch.header, "query"), (batch.release, "release")):
            use()
            self.called(name)
        batch.__exit__()
        self.called()

    def test_arrays_of_its_memory(self):
        maps = self.batch.maps
        self.called("query")
        maps.__dlpack__(stream=3, max_version=(1, 0))
        self.called("query", "use_on")
        maps.__dlpack__(stream=-1, max_version=(1, 0), dl_device=(2, 0), copy=False)
        self.called("query")
        for words in ({"copy": True}, {"dl_device": (1, 0)}, {"dl_device": (2, 1)}):
            with self.assertRaisesRegex(BufferError, "not copied"):
                maps.__dlpack__(stream=3, max_version=(1, 0), **words)
        self.called()

    def test_the_end_of_a_with(self):
        with self.batch:
            pass
        self.called("release")

    def test_the_end_of_the_object(self):
        del self.batch
        gc.collect()
        self.called("release")

    def test_every_method_of_a_service(self):
        self.assertEqual(self.service.statistics(), {})
        self.called("statistics", "statistics")
        self.service.encode_ragged(OnDevice((8, 16), "f32"), OnDevice((2,), "i32"), (8, 16)).release()
        self.called("encode", "release")
        self.service.close()
        self.called("destroy")

    def test_the_step_of_a_single_element_may_be_anything(self):
        modes = (8, 1), "none", "none", "zero"
        self.assertTrue(self.service._template(Form((8, 1), (64, 12), "f32", 4), *modes))
        with self.assertRaisesRegex(ValueError, "gaps"):
            self.service._template(Form((8, 2), (64, 12), "f32", 4), *modes)

    def test_the_end_of_a_service(self):
        del self.service
        gc.collect()
        self.called("destroy")

    def test_arrays_of_another_device_than_the_services(self):
        with self.assertRaisesRegex(ValueError, "device 1.*device 0"):
            self.service.encode_ragged(OnDevice((8, 16), "f32", 1), OnDevice((2,), "i32", 1), (8, 16))
        self.called()

    def test_in_its_own_device_the_driver_is_asked_nothing(self):
        """Each question costs as much as the release."""
        self.driver.contexts.pop()
        batch = self.service.encode_ragged(self.tensor("float32", 8, 16), self.tensor("int32", 2), (8, 16))
        self.library.calls.clear()
        self.driver.asked = 0
        batch.check_lent()
        batch.use_on(9)
        batch.release()
        self.assertEqual(self.library.calls, [("query", HERE), ("use_on", HERE), ("release", HERE)])
        self.assertEqual((self.driver.asked, self.driver.pushes), (0, 0))

    def test_other_calls_with_arrays_that_name_no_library_want_theirs_to_be_current(self):
        def gather(device):
            arrays = (((8, 4), "f32"), ((3,), "i32"), ((3, 4), "f32"))
            ragged.gather_rows(*(OnDevice(*array, device) for array in arrays))

        with self.assertRaisesRegex(ValueError, "device 0.*device 1"):
            gather(0)
        self.called()
        gather(1)
        self.assertEqual(self.library.calls, [("tmap_ragged_gather_rows", OTHER)])

    def test_its_arrays_wait_for_streams_of_its_device(self):
        for end in (tmap.MapBatch.release, tmap.MapBatch.__del__):
            self.driver.recorded_in.clear()
            batch = self.service.encode_ragged(OnDevice((8, 16), "f32"), OnDevice((2,), "i32"), (8, 16))
            end(batch)
            self.assertEqual(self.driver.recorded_in, [HERE, HERE])

    def test_a_batch_that_cannot_be_released_is_not_lost(self):
        self.driver.may_push = False
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            del self.batch
            gc.collect()
        self.assertEqual([one.category for one in caught], [ResourceWarning])
        self.assertRegex(str(caught[0].message), "wrong_context")
        _lease.release_left()  # in vain
        self.driver.may_push = True
        self.library.calls.clear()
        self.service.encode_ragged(OnDevice((8, 16), "f32"), OnDevice((2,), "i32"), (8, 16)).release()
        self.called("release", "encode", "release")
        self.assertEqual(_lease._left, [])

    def test_a_batch_in_a_call_of_another_thread_is_not_lost(self):
        self.library.answer = tmap.Status.BATCH_BUSY
        with self.assertWarnsRegex(ResourceWarning, "batch_busy"):
            del self.batch
            gc.collect()
        self.library.answer = 0
        self.assertEqual(len(_lease._left), 1)
        _lease.release_left()
        self.assertEqual(_lease._left, [])

    def test_a_batch_that_is_gone_is_not_tried_again(self):
        self.library.answer = tmap.Status.INVALID_HANDLE
        del self.batch
        gc.collect()
        self.assertEqual(_lease._left, [])

    def test_a_release_that_fails_keeps_the_batch(self):
        self.driver.may_push = False
        with self.assertRaises(tmap.Error):
            self.batch.release()
        self.driver.may_push = True
        self.library.calls.clear()
        self.batch.release()
        self.called("release")


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Bad items on the GPU are counted, put into words, and raised by checked calls."""
import unittest

import support

torch = support.need_torch_gpu()

import tmap  # noqa: E402
from tmap import ragged  # noqa: E402


class Faults(unittest.TestCase):
    def setUp(self):
        self.values = torch.arange(8, dtype=torch.float32, device="cuda").reshape(4, 2)
        self.out = torch.full((4, 2), 7.0, device="cuda")
        self.index = torch.tensor([1, 4, 2, -1], device="cuda")
        torch.cuda.synchronize()
        tmap.faults(reset=True)

    def report(self):
        torch.cuda.synchronize()
        return tmap.faults()

    def test_nothing_was_bad(self):
        ragged.gather_rows(self.values, self.index.clamp(0, 3), self.out)
        report = self.report()
        self.assertFalse(report)
        self.assertIsNone(report.first)
        self.assertEqual(str(report), "no bad items")

    def test_what_was_bad_is_counted_and_reset(self):
        ragged.gather_rows(self.values, self.index, self.out)
        report = self.report()
        self.assertEqual((report.maps, report.tensors, report.rows, report.groups), (0, 0, 2, 0))
        self.assertEqual((report.first.call, report.first.bits), ("ragged::gather_rows", 128))
        self.assertIn(report.first.index, (1, 3))  # the first that a thread met
        self.assertIn("2 bad row numbers; the first: ragged::gather_rows (call", str(report))
        self.assertEqual(tmap.faults(reset=True).rows, 2)
        self.assertFalse(tmap.faults())

    def test_a_checked_operation_raises(self):
        with self.assertRaises(tmap.Error) as caught:
            ragged.gather_rows(self.values, self.index, self.out, check="sync")
        self.assertIs(caught.exception.status, tmap.Status.BAD_ITEMS)
        self.assertIn(caught.exception.bad.index, (1, 3))
        self.assertEqual(self.out.cpu().tolist(), [[2, 3], [7, 7], [4, 5], [7, 7]])
        self.assertEqual(self.report().rows, 2)

    def test_a_checked_product_raises(self):
        a = torch.ones(48, 64, dtype=torch.bfloat16, device="cuda")
        b = torch.ones(3, 64, 64, dtype=torch.bfloat16, device="cuda")
        out = torch.zeros(48, 64, dtype=torch.bfloat16, device="cuda")
        offs = torch.tensor([16, 32, 49], dtype=torch.int32, device="cuda")
        with self.assertRaises(tmap.Error) as caught:
            tmap.grouped_mm(a, b, offs, out=out, check="sync")
        self.assertEqual((caught.exception.bad.index, caught.exception.bad.bits), (2, 1))
        self.assertIn("1 of 3 groups is bad", str(caught.exception))
        self.assertTrue((out[:32] == 64).all() and (out[32:] == 0).all())

    def test_checked_maps_raise_and_are_given_back(self):
        base = torch.zeros(64, 64, device="cuda")
        ends = torch.tensor([16, 8, 64], device="cuda")
        with tmap.MapService(capacity=64) as service:
            for _ in range(50):
                with self.assertRaises(tmap.Error) as caught:
                    service.encode_ragged(base, ends, (8, 32), check="sync")
                self.assertIs(caught.exception.status, tmap.Status.BAD_ITEMS)
                self.assertEqual(caught.exception.bad.call, "map_service::encode")
        self.assertEqual(self.report().maps, 50)

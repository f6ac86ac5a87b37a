# SPDX-License-Identifier: Apache-2.0
"""Checked operations on the host, statuses in words, and the report's text."""
import os
import subprocess
import sys
import unittest

import support

np = support.need("numpy")

import tmap  # noqa: E402
from tmap import ragged  # noqa: E402
from tmap._errors import bad_item  # noqa: E402
from tmap import _structs as c  # noqa: E402

CHILD = """
import sys
sys.path[:0] = {path!r}
import numpy as np, tmap
values, out = np.ones((4, 2), np.float32), np.zeros((4, 2), np.float32)
try:
    tmap.ragged.gather_rows(values, np.array([0, 9, 1, -1]), out)
    print("nothing")
except tmap.Error as error:
    print(error.status.name, error)
"""


class Checked(unittest.TestCase):
    def setUp(self):
        self.values = np.arange(8, dtype=np.float32).reshape(4, 2)
        self.out = np.full((4, 2), 7, np.float32)
        self.index = np.array([1, 4, 2, -1])

    def test_an_exception_says_what_was_bad_after_the_others_are_done(self):
        with self.assertRaises(tmap.Error) as caught:
            ragged.gather_rows(self.values, self.index, self.out, check="sync")
        error = caught.exception
        self.assertIs(error.status, tmap.Status.BAD_ITEMS)
        self.assertEqual((error.found, error.allowed), (2, 4))
        self.assertEqual((error.bad.call, error.bad.index, error.bad.bits), ("ragged::gather_rows", 1, 128))
        self.assertGreater(error.bad.number, 0)
        self.assertIn("2 of 4 row numbers are bad, among them row number 1: index (there is no row of this number)", str(error))
        np.testing.assert_array_equal(self.out, [[2, 3], [7, 7], [4, 5], [7, 7]])

    def test_good_and_unchecked_ones_raise_nothing(self):
        for check in (None, "off"):
            ragged.gather_rows(self.values, self.index, self.out, check=check)
        ragged.gather_rows(self.values, np.array([1, 3, 2, 0]), self.out, check="sync")

    def test_other_words_are_refused(self):
        for check in ("on", True, 1, "Sync"):
            with self.assertRaises(ValueError):
                ragged.gather_rows(self.values, self.index, self.out, check=check)

    def child(self, setting):
        source = CHILD.format(path=[os.path.dirname(os.path.dirname(tmap.__file__))])
        done = subprocess.run([sys.executable, "-c", source], env={**os.environ, "TMAP_CHECK": setting}, text=True,
                              capture_output=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_the_environment(self):
        self.assertIn("BAD_ITEMS", self.child("sync"))
        self.assertEqual(self.child("off"), "nothing\n")
        answer = self.child("sometimes")
        self.assertIn("INVALID_ARGUMENT", answer)
        self.assertIn("`TMAP_CHECK` is neither `off` nor `sync`", answer)


class Words(unittest.TestCase):
    def test_statuses(self):
        self.assertEqual(tmap.describe_status("tensor", 0), "good")
        self.assertEqual(tmap.describe_status("group", 1 << 31), "empty")
        self.assertEqual(tmap.describe_status("group", -1 << 31), "empty")
        self.assertEqual(tmap.describe_status("map", 1 << 63), "empty")
        self.assertEqual(tmap.describe_status("tensor", 16), "mismatch (its two sides differ in shape)")
        self.assertTrue(tmap.describe_status("map", 1 << 5).startswith("T06 ("))
        self.assertTrue(tmap.describe_status("row", np.uint32(128)).startswith("index ("))

    def test_the_library_words_every_fault(self):
        for item, faults in (("tensor", ragged.Fault), ("group", tmap.GroupFault)):
            for fault in faults:
                words = fault.name.lower() + ("" if fault is faults.EMPTY else " (")
                self.assertTrue(tmap.describe_status(item, fault).startswith(words), fault)

    def test_rows_that_an_array_does_not_have(self):
        statuses, out = np.zeros(1, np.uint32), np.zeros((1, 9, 2), np.float32)
        ragged.pad(ragged.Rows(np.zeros((8, 2), np.float32), np.array([9])), out, statuses=statuses)
        self.assertIn("rows that do not exist", tmap.describe_status("tensor", statuses[0]))

    def test_what_is_no_status(self):
        for item, status in (("file", 0), ("tensor", 1 << 32), ("map", 1 << 64), ("row", -(1 << 31) - 1)):
            with self.assertRaises(ValueError):
                tmap.describe_status(item, status)
        for status in ("7", 1.5, None):
            with self.assertRaises(TypeError):
                tmap.describe_status("tensor", status)

    def test_items_of_the_library(self):
        self.assertIsNone(bad_item(c.BadItem()))
        self.assertEqual(bad_item(c.BadItem(call=4, number=3, index=2, bits=1)), tmap.BadItem("ragged::copy", 3, 2, 1))

    def test_reports_are_true_where_something_was_bad(self):
        self.assertFalse(tmap.FaultReport(0, 0, 0, 0, None, "no bad items"))
        for counts in ((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)):
            self.assertTrue(tmap.FaultReport(*counts, None, ""))
        self.assertEqual(str(tmap.FaultReport(0, 0, 0, 0, None, "no bad items")), "no bad items")

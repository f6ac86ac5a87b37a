# SPDX-License-Identifier: Apache-2.0
"""Objects explain and show themselves: `explain` of anything, and HTML for notebooks."""
import ctypes
import html.parser
import inspect
import re
import unittest

import support
from lifetime_cases import StandIns
from stand_ins import OnDevice

np = support.need("numpy")
import tmap  # noqa: E402
from tmap import _html, ragged  # noqa: E402

GOOD = {"dims": (64, 100), "box": (32, 8), "swizzle": "128B", "address": 4096}


def spec(**changes):
    return tmap.TensorSpec("f32", **{**GOOD, **changes})


class Page(html.parser.HTMLParser):
    """Reads HTML whose elements must all be closed, and keeps its text."""
    def __init__(self, text):
        super().__init__()
        self.open, self.text, self.tags = [], "", []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text += data


class Explain(unittest.TestCase):
    def test_arrays(self):
        values = np.zeros((8, 64), np.float32)
        for good in (values, values.T.copy(), values[:, :48]):
            self.assertRegex(tmap.explain(good), r"^f32 array of shape .* at 0x[0-9a-f]+: no rule broken$")
        self.assertRegex(tmap.explain(values[:, 1:]), "T06 global_address is .* must be a multiple of 16")
        self.assertIn("T17 box_dim[0] is 300", tmap.explain(values, box=(8, 300)))
        self.assertIn("last dim has gaps", tmap.explain(values[:, ::2]))
        self.assertIn("no tensor map has elements of c64", tmap.explain(values.astype(np.complex64)))
        for shape in ((), (1, 1, 1, 1, 1, 16)):
            self.assertIn("1 to 5", tmap.explain(np.zeros(shape, np.uint8)))
        self.assertIn("negative strides", tmap.explain(values[::-1]))
        self.assertIn("no tensor map can describe this array", tmap.explain(np.zeros(4, "datetime64[s]")))
        self.assertIn("T09", tmap.explain(values[:0]))

    def test_maps(self):
        data = tmap.encode_bits(spec())
        text = tmap.explain(data)
        self.assertTrue(text.startswith(tmap.describe(data)) and text.endswith("no rule broken"), text)
        self.assertEqual(tmap.explain(tmap.decode(data)), text)
        several = tmap.explain(data + bytes(128))
        self.assertRegex(several, r"^map 0: tiled f32 \(100, 64\) at 0x1000, box \(8, 32\), swizzle 128B\nmap 1: ")
        self.assertIn("no tensor map", several.split("\n")[1])
        with self.assertRaisesRegex(ValueError, "128 bytes, not 129"):
            tmap.explain(bytes(129))

    def test_everything_else(self):
        self.assertIn("T17", tmap.explain(spec(box=(32, 257))))
        self.assertIn("T17", tmap.explain(tmap.rule("T17")))
        fault = ragged.Fault.WINDOW | ragged.Fault.TRUNCATED
        self.assertEqual(tmap.explain(fault), tmap.describe_status("tensor", int(fault)))
        self.assertEqual(tmap.explain(tmap.GroupFault.PITCH), tmap.describe_status("group", 8))
        try:
            tmap.encode_bits(spec(box=(32, 257)))
        except tmap.Error as error:
            self.assertEqual(tmap.explain(error), str(error))
        rows = ragged.Rows(np.zeros((4, 8), np.float32), np.array([1, 4]), "ends")
        self.assertEqual(tmap.explain(rows), "<Rows of float32 [4, 8], cut by int64 [2] ends>")
        self.assertEqual(repr(ragged.Tensors([np.zeros(3)])), "<Tensors: 1, the first float64 [3]>")
        self.assertEqual(repr(ragged.Columns(np.array([1]), [np.array([2])], dtype=np.float16)),
                         "<Columns of f16, 1 dims, addresses int64 [1]>")


class Names(unittest.TestCase):
    def test_help_shows_the_keywords_of_operations(self):
        for name in ragged.__all__:
            operation = getattr(ragged, name)
            if inspect.isfunction(operation) and name != "faults_of":
                names = list(inspect.signature(operation).parameters)
                self.assertEqual(names[-6:], ["stream", "statuses", "header", "policy", "windows", "check"], name)

    def test_only_public_names_are_listed(self):
        self.assertEqual(sorted(dir(ragged)), sorted(ragged.__all__))


class OfSpecs(unittest.TestCase):
    def test_fields_and_rules(self):
        page = Page(spec()._repr_html_())
        for words in ("TensorSpec: f32 (100, 64), box (8, 32)", "0x1000", "128B", "No rule broken.", "13 by 2 boxes",
                      "4 rows and 0 columns past it"):
            self.assertIn(words, page.text)
        broken = spec(box=(32, 257), address=1)
        page = Page(broken._repr_html_())
        for line in tmap.explain(broken).split("\n"):
            self.assertIn(line.strip(), page.text)
        self.assertNotIn("No rule broken", page.text)

    def test_the_drawing_is_to_scale(self):
        rectangles = [tag[1] for tag in Page(spec()._repr_html_()).tags if tag[0] == "rect"]
        sides = [(float(one["width"]), float(one["height"])) for one in rectangles]
        self.assertEqual(len(sides), 3)  # covered by boxes, tensor, box
        for (width, height), (columns, rows) in zip(sides, ((64, 104), (64, 100), (32, 8))):
            self.assertAlmostEqual(width / height, columns / rows, delta=0.03 * columns / rows)
        self.assertIn("Not to scale", Page(spec(dims=(64, 100000))._repr_html_()).text)

    def test_specs_that_cannot_be_drawn(self):
        for changes in ({"dims": (0, 4)}, {"box": (0, 4)}, {"box": (4,)}, {"dims": (), "box": ()},
                        {"dims": (4,) * 7, "box": (4,) * 7}, {"dims": (2**64 - 1, 2**64 - 1)}):
            with self.subTest(**changes):
                self.assertTrue(Page(spec(**changes)._repr_html_()).text)

    def test_one_dim_and_many(self):
        self.assertIn("Tensor of 1 rows of 64", Page(spec(dims=(64,), box=(32,))._repr_html_()).text)
        deep = tmap.TensorSpec("u8", (64, 8, 3, 2), (32, 8, 1, 1))
        self.assertIn("one plane of dims (2, 3)", Page(deep._repr_html_()).text)
        self.assertIn("0x100000 is assumed", Page(deep._repr_html_()).text)

    def test_nothing_is_loaded_and_no_colour_is_fixed(self):
        for text in (spec()._repr_html_(), tmap.decode(tmap.encode_bits(spec()))._repr_html_()):
            self.assertNotRegex(text.replace("http://www.w3.org/2000/svg", ""), "http|<script|<style|src=|url\\(")
            self.assertNotRegex(text, "color:(black|white|#)")

    def test_text_is_escaped(self):
        self.assertEqual(Page(_html._block("<b>", _html._table([("a", "<script>&")]))).text, "<b>a<script>&")
        self.assertEqual([tag for tag, _ in Page(_html._tag("td", "", title='"><i>')).tags], ["td"])


class OfMaps(unittest.TestCase):
    def test_every_bit_has_its_field(self):
        fields = _html.fields_of_bits(tmap.encode_bits(spec()))
        table = (support.ROOT / "lib" / "codec" / "layout.hpp").read_text()
        bits = r"\{(\d+), (\d+), (\d+)\}"
        ranges = re.findall(rf'\("([\w\[\]]+)", (?:-?\d, )?{bits}(?:, {bits})?', table)
        expected = [None] * 1024
        for name, *numbers in ranges:
            if name in fields:
                for word, shift, width in (numbers[:3], numbers[3:]):
                    for bit in range(int(width or 0)):
                        expected[64 * int(word) + int(shift) + bit] = name
        self.assertGreater(len(set(fields)), 15)
        self.assertEqual(fields, expected)

    def test_bytes_and_values(self):
        data = tmap.encode_bits(spec())
        page = Page(tmap.decode(data)._repr_html_())
        cells = [attributes for tag, attributes in page.tags if tag == "td" and "title" in attributes]
        self.assertEqual(len(cells), 128)
        self.assertEqual(cells[0]["title"], "global_address")
        self.assertEqual(cells[127]["title"], "no field")
        self.assertIn("kind, version, rank, element_type", cells[8]["title"])
        for words in ("Tensor map: tiled f32 (100, 64)", "global_dim[1] 100", "swizzle 128B", "No rule broken."):
            self.assertIn(words, page.text)
        self.assertIn("Not a tensor map", Page(_html.of_map(b"\xff" * 128)).text)


class OfBatches(StandIns):
    """Statuses of a batch come from memory of the device, which a stand-in for the driver has."""

    def batch(self, statuses):
        memory = (ctypes.c_uint64 * len(statuses))(*statuses)
        self.driver.memory = bytes(memory)

        def query(handle, info):
            info._obj.ref.statuses = 0x7000
            return self.library.in_home("query")

        self.library.tmap_batch_query = query
        batch = tmap.MapService().encode_ragged(OnDevice((8, 16), "f32"), OnDevice((len(statuses),), "i32"), (8, 16))
        self.addCleanup(lambda: batch.is_lent() and batch.release())
        return batch

    def test_counts_and_first_bad_items(self):
        bad = 1 << tmap.rule("T05").number
        batch = self.batch([0, 1 << 63, bad, 0, bad | 1 << tmap.rule("T17").number])
        words = tmap.describe_status("map", bad)
        text = tmap.explain(batch)
        self.assertRegex(text, r"^MapBatch of 5 maps: 2 good, 1 empty, 2 bad\nmap 2: ")
        self.assertEqual(text.split("\n")[1], f"map 2: {words}")
        page = Page(batch._repr_html_())
        self.assertIn("good2empty1bad2", page.text)
        self.assertIn(f"map 2{words}", page.text)
        self.assertEqual(self.driver.reads, [(0x7000, 40, 1)] * 2)
        self.assertEqual(repr(batch), "<MapBatch of 5 maps>")

    def test_only_the_first_are_listed(self):
        batch = self.batch([1 << 3] * 20)
        self.assertEqual(len(tmap.explain(batch).split("\n")), 10)
        self.assertIn("and 12 more", tmap.explain(batch))
        self.assertIn("and 12 more", Page(batch._repr_html_()).text)

    def test_a_capture_is_not_broken(self):
        batch = self.batch([0])
        self.driver.capturing.add(1)
        self.assertIn("cannot be read now", tmap.explain(batch))
        self.assertIn("cannot be read now", Page(batch._repr_html_()).text)
        self.assertEqual(self.driver.reads, [])

    def test_a_released_batch(self):
        batch = self.batch([0])
        batch.release()
        self.assertEqual(tmap.explain(batch), "MapBatch of 1 maps: released")
        self.assertIn("released", Page(batch._repr_html_()).text)
        self.assertEqual(repr(batch), "<MapBatch of 1 maps, released>")


if __name__ == "__main__":
    unittest.main()

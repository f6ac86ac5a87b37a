# SPDX-License-Identifier: Apache-2.0
"""What kernels compiled at run time need of the package: the headers, and the layout of a batch's
parameter."""
import ctypes
import tempfile
import unittest
import unittest.mock
from pathlib import Path

import support

numpy = support.need("numpy")
import tmap  # noqa: E402
from tmap import _headers, _structs  # noqa: E402


class Headers(unittest.TestCase):
    def test_the_folder_has_every_header_of_the_repository(self):
        repository = Path(__file__).resolve().parents[2] / "include"
        expected = {path.relative_to(repository): path.read_bytes() for path in repository.rglob("*.*h*")}
        self.assertGreater(len(expected), 60)
        given = Path(tmap.include_dir())
        self.assertEqual({path.relative_to(given): path.read_bytes() for path in given.rglob("*.*h*")}, expected)

    def test_a_package_without_headers_says_what_to_do(self):
        with tempfile.TemporaryDirectory() as folder:
            with unittest.mock.patch.object(_headers, "_FOLDERS", (Path(folder),)):
                with self.assertRaisesRegex(FileNotFoundError, "install the package"):
                    tmap.include_dir()

    def test_a_package_without_a_cmake_package_says_what_to_do(self):
        with tempfile.TemporaryDirectory() as folder:
            with unittest.mock.patch.object(_headers, "_PACKAGE", Path(folder)):
                with self.assertRaisesRegex(FileNotFoundError, "build and install tmap with CMake"):
                    tmap.cmake_prefix()
                config = Path(folder) / "cmake" / "tmapConfig.cmake"
                config.parent.mkdir()
                config.touch()
                self.assertEqual(tmap.cmake_prefix(), folder)


class Parameter(unittest.TestCase):
    def test_the_dtype_of_a_ref_has_the_members_of_the_c_struct(self):
        dtype, struct = numpy.dtype(tmap.MapBatch.REF_DTYPE), _structs.BatchRef
        self.assertEqual(dtype.itemsize, ctypes.sizeof(struct))
        self.assertEqual({name: (dtype.fields[name][1], dtype.fields[name][0].itemsize) for name in dtype.names},
                         {name: (getattr(struct, name).offset, getattr(struct, name).size) for name, _ in struct._fields_})


if __name__ == "__main__":
    unittest.main()

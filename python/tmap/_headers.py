# SPDX-License-Identifier: Apache-2.0
"""The headers and the package for CMake, for kernels and programs of the caller."""
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_FOLDERS = (_PACKAGE / "include", _PACKAGE.parents[1] / "include")


def include_dir() -> str:
    """Returns the folder with tmap's headers. NVRTC needs this folder (`-I`) and the headers of
    CUDA and of libcu++ for `#include <tmap/device/acquire.cuh>`. It is in the installed package, or
    in the repository that this package is part of. Raises `FileNotFoundError` if neither has it."""
    for folder in _FOLDERS:
        if (folder / "tmap" / "device" / "acquire.cuh").is_file():
            return str(folder)
    raise FileNotFoundError(f"tmap: no headers in {' or in '.join(map(str, _FOLDERS))}: install the package "
                            "(pip install ./python), or import it from the repository")


def cmake_prefix() -> str:
    """Returns the folder for CMake's `tmap_ROOT`, in which `find_package(tmap)` finds the library
    and the headers of this package. C and C++ programs then link `tmap::shared`, which also needs
    the headers of the CUDA toolkit. It is in the installed package only: raises
    `FileNotFoundError` for a package that was imported from the repository."""
    if (_PACKAGE / "cmake" / "tmapConfig.cmake").is_file():
        return str(_PACKAGE)
    raise FileNotFoundError(f"tmap: no tmapConfig.cmake in {_PACKAGE / 'cmake'}: install the package "
                            "(pip install ./python), or build and install tmap with CMake")

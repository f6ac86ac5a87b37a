# SPDX-License-Identifier: Apache-2.0
"""The C++ headers, for kernels that are compiled at run time."""
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
    raise FileNotFoundError(f"tmap: no headers in {' or in '.join(map(str, _FOLDERS))}: install "
                            "the package "
                            "(pip install ./python), or import it from the repository")

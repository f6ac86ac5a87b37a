# SPDX-License-Identifier: Apache-2.0
"""The order of dims. Arrays have their dims outermost first, as DLPack does; tensor maps, and so the library, have them
innermost first."""
from typing import Sequence


def innermost_first(dims: Sequence[int]) -> tuple:
    """Dims, strides or a box of an array, in the library's order. Nothing else in this package turns them."""
    return tuple(reversed(dims))

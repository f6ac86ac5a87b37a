# SPDX-License-Identifier: Apache-2.0
"""tmap: tensor maps made on the GPU, and operations on batches of tensors of different sizes.

A tensor map is the 128-byte object that describes a tensor to the copy engine of a Hopper GPU: its
address, its layout, and the box that one copy moves.

Maps         `TensorSpec`, `explain`, `validate`; `encode` (by the driver), `encode_bits` (no GPU
             needed), `decode`, `describe`; `simulate_load`, `simulate_store`, `simulate_reduce`.
             `MapService.encode_ragged` makes one map for each tensor of a batch, on the device.
Operations   `tmap.ragged`: copy, pack, pad and their inverses, rows by index, transpose, cast,
             saxpy, max_pool_1d, reduce_rows, quantize, column_sums. `grouped_mm`: many matrix
             products in one call; `grouped_mm_by_pointers`: products of matrices at any addresses.
Experts      `tmap.moe`: `route` chooses the experts of each token and sorts the choices by expert,
             `combine` adds up the rows of each token.
Groups       `tmap.peer`: groups of GPUs, memory that all of them reach, exchanges of rows when only
             the GPUs know how many, and experts that are spread over the ranks.
Faults       `faults`: the bad items that calls passed over on the device. `explain` and
             `describe_status` put a status into words. Every call takes `check="sync"`.
Own kernels  `MapBatch.ref` is a kernel parameter; `include_dir()` has the headers for CuPy,
             cuda.core and others that compile at run time, `cmake_prefix()` what C and C++
             programs need to link the library. `tmap.triton` gives maps to kernels of Triton and
             Gluon.
PyTorch      `import tmap.torch_ops` registers `torch.ops.tmap.grouped_mm`, products in 8 bits,
             `pad_ragged` and `unpad_ragged`. `tmap.torch.install` makes PyTorch's own grouped
             products call tmap, and `tmap.compat` has the calls of other projects.
             `tmap.transformers.register` makes it an implementation of Transformers' experts.

Arrays are of any library that speaks DLPack: PyTorch, CuPy, JAX (to read), NumPy (in memory of the
host). A call that fails raises `Error`, `TypeError` or `ValueError` and has changed nothing. Specs,
decoded maps and batches of maps show themselves in notebooks. docs/python.md has more.
"""
from . import moe, peer, ragged
from ._errors import BadItem, Error, Rule, Status, rule, rules_of
from ._explain import explain
from ._faults import FaultReport, describe_status, faults
from ._epilogue import Gate
from ._gemm import GroupFault, group_faults_of, grouped_mm
from ._gemm_pointers import grouped_mm_by_pointers
from ._headers import cmake_prefix, include_dir
from ._lease import MapBatch
from ._library import version
from ._service import MapService
from ._simulator import simulate_load, simulate_reduce, simulate_store, tile_sizes
from ._spec import (DecodedMap, TensorSpec, Violation, decode, describe, describe_json, encode,
                    encode_bits, validate)

__version__ = ".".join(map(str, version()))
__all__ = ["BadItem", "DecodedMap", "Error", "FaultReport", "Gate", "GroupFault", "MapBatch", "MapService",
           "Rule", "Status", "TensorSpec", "Violation", "cmake_prefix", "decode", "describe", "describe_json",
           "describe_status", "encode", "encode_bits", "explain", "faults", "group_faults_of",
           "grouped_mm", "grouped_mm_by_pointers", "include_dir", "moe", "peer", "ragged", "rule",
           "rules_of", "simulate_load", "simulate_reduce", "simulate_store", "tile_sizes",
           "validate", "version"]

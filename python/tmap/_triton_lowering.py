# SPDX-License-Identifier: Apache-2.0
"""Gives Triton's compiler the operation that takes the address of a tensor map for a descriptor.

Triton's own lowering has it (`ttng.reinterpret_tensor_descriptor`), its Python builder has not. So
a function of that one operation is parsed, moved into the kernel's module and called. Triton
inlines it like any other function. Nothing of Triton is replaced or hooked.
"""
import hashlib
import os
import re
import tempfile
from pathlib import Path

import triton
import triton.language as tl
from triton._C.libtriton import ir
from triton.language import core

from ._triton_blocks import box_of

TRIED = ("3.5.1", "3.6.0", "3.7.0", "3.8.0", "3.9.0")
OPERATION = "ttng.reinterpret_tensor_descriptor"
LEAST_ARCH = 90
MAP_BITS = 1024
_OF_TRITON = {"fp16": "f16", "bf16": "bf16", "fp32": "f32", "fp64": "f64", "fp8e4nv": "f8_e4m3", "fp8e5": "f8_e5m2"}
ACQUIRE = "fence.proxy.tensormap::generic.acquire.gpu [$1], 128;\n\tmov.b64 $0, $1;"
_TEXT = """module {{
  tt.func private @{name}(%address: {address}) -> {descriptor} {{
    cf.br ^body
  ^body:
    %made = {operation} %address : {address} to {descriptor}
    tt.return %made : {descriptor}
  }}
}}
"""

# Becomes part of the key under which Triton keeps compiled kernels: `tensor_map` passes it on, and
# nothing reads it.
LOWERING = tl.constexpr(hashlib.sha256(Path(__file__).read_bytes()).hexdigest())


def check_version(version: str) -> None:
    """Raises `ImportError` for a version of Triton that was not tried."""
    if version.split("+")[0] not in TRIED:
        raise ImportError(f"tmap.triton: found Triton {version}; tried with it: {', '.join(TRIED)}. Install one of "
                          "these (pip install triton==3.6.0), or use kernels of CuPy or cuda.core with "
                          "tmap.include_dir()")


check_version(triton.__version__)


def check_target(semantic) -> None:
    """Raises `RuntimeError` where kernels are not compiled for a Hopper GPU or a newer one."""
    if not isinstance(semantic.builder, ir.builder):
        raise RuntimeError("tmap.triton: Triton's interpreter has no tensor maps; run without TRITON_INTERPRET")
    options = semantic.builder.options
    backend, arch = options.backend_name, str(options.arch)
    if backend != "cuda" or int(re.sub(r"\D", "", arch) or 0) < LEAST_ARCH:
        raise RuntimeError(f"tmap.triton: the kernel is compiled for {backend} {arch}; tensor maps need cuda "
                           f"sm{LEAST_ARCH} or newer")


def acquired(maps, index, semantic):
    """Emits the acquire of a map in an array, and returns its address as a pointer to elements.

    The address comes out of the acquire. So nothing that uses it can move before the acquire."""
    builder, step = semantic.builder, MAP_BITS // maps.type.element_ty.primitive_bitwidth
    index = semantic.cast(semantic.to_tensor(index), tl.int64)
    place = semantic.add(maps, semantic.mul(index, semantic.to_tensor(step), False), False)
    made = builder.create_inline_asm(ACQUIRE, "=l,l", [place.handle], [place.handle.get_type()], False, 1)
    return made.get_result(0)


def descriptor_of(address, descriptor_type, semantic, generator):
    """Emits the operation for an address and returns its value of this type of the compiler."""
    kernel = generator.module
    texts = str(address.get_type()), str(descriptor_type)
    name = "tmap_map_" + re.sub(r"\W+", "_", "_".join(texts))
    if kernel.has_function(name):
        function = kernel.get_function(name)
    else:
        function = _add_function(kernel, name, address.get_type(), descriptor_type, texts, generator.context)
    return semantic.builder.call(function, [address]).get_result(0)


def check_arguments(maps, block):
    """Returns the block's extents. Raises for arguments of a kernel that are wrong."""
    if not maps.type.is_ptr():
        raise TypeError(f"maps is {maps.type}: it must be a kernel parameter made by tmap.triton.tensor_maps")
    block = [core._unwrap_if_constexpr(extent) for extent in core._unwrap_if_constexpr(block)]
    element = str(maps.type.element_ty)
    box_of(_OF_TRITON.get(element, element), block)
    return block


def _add_function(kernel, name, address_type, descriptor_type, texts, context):
    # A builder without a place makes a function that belongs to no module yet.
    builder = ir.builder(context)
    function = builder.get_or_insert_function(
        kernel, name, builder.get_function_ty([address_type], [descriptor_type]), "private", False)
    kernel.push_back(function)
    entry = function.add_entry_block()
    parsed = _parse(_TEXT.format(name=name, operation=OPERATION, address=texts[0], descriptor=texts[1]), context)
    found = []
    parsed.walk(lambda op: found.append(op) if op.get_name() == OPERATION else None)
    old = found[0].get_operand(0)
    found[0].get_block().merge_block_before(entry)
    entry.replace_use_in_block_with(old, function.args(0))
    return function


def _parse(text, context):
    file, path = tempfile.mkstemp(suffix=".mlir")
    try:
        with os.fdopen(file, "w") as out:
            out.write(text)
        return ir.parse_mlir_module(path, context)
    finally:
        os.unlink(path)

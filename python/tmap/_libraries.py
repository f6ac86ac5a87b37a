# SPDX-License-Identifier: Apache-2.0
"""Arrays of any library as addresses, shapes and strides, and each library's streams and memory."""
import math
import sys
from contextlib import nullcontext
from functools import lru_cache
from typing import Any, Optional, Tuple

from . import _dlpack
from ._numbers import TYPE_NAMES


class Form:
    """All properties of an array but its address, in the array's own order: outermost dim first.
    Similar arrays share one object, so everything that follows from forms is computed once
    (`lru_cache`)."""
    __slots__ = ("shape", "strides", "dtype", "item_bytes", "is_packed", "nbytes")

    def __init__(self, shape: Tuple[int, ...], strides: Tuple[int, ...], dtype: str,
                 item_bytes: int):
        packed = _dlpack.packed_strides(shape, item_bytes)
        if 0 in shape:  # libraries give any strides
            strides = packed
        self.shape, self.strides = shape, strides  # strides in bytes
        self.dtype, self.item_bytes = dtype, item_bytes
        if any(extent > 1 and stride < 0 for extent, stride in zip(shape, strides)):
            raise ValueError(f"an array has negative strides, {strides} in bytes: copy it first")
        self.is_packed = all(extent == 1 or stride == step for extent, stride,
                             step in zip(shape, strides, packed))
        self.nbytes = math.prod(shape) * item_bytes

    def require(self, name: str, dtypes: Optional[Tuple[str, ...]] = None,
                rank: Optional[int] = None) -> None:
        if dtypes is not None and self.dtype not in dtypes:
            raise TypeError(f"{name} has elements of {self.dtype}, not of {' or '.join(dtypes)}")
        if rank is not None and len(self.shape) != rank:
            raise ValueError(f"{name} has {len(self.shape)} dims, not {rank}")


_form = lru_cache(maxsize=4096)(Form)


class View:
    """An array as the library sees it, and the capsule of its library, or None."""
    __slots__ = ("address", "form", "read_only", "array", "capsule")

    def __init__(self, address: int, form: Form, read_only: bool, array: Any, capsule: Any = None):
        self.address, self.form, self.read_only = address, form, read_only
        self.array, self.capsule = array, capsule

    shape = property(lambda self: self.form.shape)
    strides = property(lambda self: self.form.strides)
    dtype = property(lambda self: self.form.dtype)
    item_bytes = property(lambda self: self.form.item_bytes)
    is_packed = property(lambda self: self.form.is_packed)
    nbytes = property(lambda self: self.form.nbytes)


def torch_names(torch) -> dict:
    """Returns our names of the PyTorch types that this version has."""
    return {getattr(torch, theirs): ours for theirs, ours in TYPE_NAMES.items()
            if hasattr(torch, theirs)}


HERE = nullcontext()
LEGACY_STREAM = 1  # DLPack's number and CUDA's handle of what libraries call stream 0


class _AnyLibrary:
    """Any library, by DLPack: it has no current stream and gives no memory."""
    gives_memory = False
    is_told = False  # true if it learns which streams use its arrays, and reuses memory after them
    counts_writes = False

    def __init__(self, is_immutable=False):
        self.is_immutable = is_immutable

    def device_of(self, array):
        """Returns its CUDA device, or None for memory of the host."""
        if not hasattr(array, "__dlpack_device__") or not hasattr(array, "__dlpack__"):
            raise TypeError(f"a {type(array).__name__} is no array: give one of NumPy, PyTorch, "
                            "CuPy or JAX")
        kind, number = array.__dlpack_device__()
        if kind in (_dlpack.CUDA, _dlpack.CUDA_MANAGED):
            return number
        if kind in (_dlpack.CPU, _dlpack.CUDA_HOST):
            return None
        raise TypeError(f"an array on a device of DLPack's kind {int(kind)}: tmap knows CPUs and "
                        "CUDA")

    def view(self, array, uses, is_current):
        """Returns a view for work on the device and stream of `uses`, a `Site`. The stream waits
        for the work that the array's producer has enqueued. It is None on the host. `is_current` is
        true if it is this library's current stream."""
        stream = uses.stream
        # DLPack has no stream 0.
        address, shape, strides, dtype, item, read_only, capsule = _dlpack.read(
            array, LEGACY_STREAM if stream == 0 else stream)
        form = _form(shape, tuple(step * item for step in strides), dtype, item)
        view = View(address, form, read_only or self.is_immutable, array, capsule)
        if stream is not None and not is_current:
            self.lend(view, uses.device, uses)
        return view

    def lend(self, view, device, uses):
        """Keeps the array's memory, which its library reuses when the last reference goes, until
        the stream of `uses` has used it."""
        uses.add(view)


class _LentMemory:
    """Memory of PyTorch's allocator, without a tensor around it, which costs twice as much."""
    __slots__ = ("address", "_give_back")

    def __init__(self, address, give_back):
        self.address, self._give_back = address, give_back

    def __del__(self):
        self._give_back(self.address)


class _Torch(_AnyLibrary):
    """PyTorch. Its tensors are read through their own methods: those that need a gradient have no
    capsule, and capsules cost more. Streams, devices and memory come from the functions that its
    public ones call: the current stream takes 0.1 microseconds so, not 3
    (docs/measurements/python_calls.md)."""
    gives_memory = is_told = counts_writes = True

    def __init__(self, torch):
        super().__init__()
        self.count_write = torch.autograd.graph.increment_version
        self.torch, self._strided, self._names = torch, torch.strided, torch_names(torch)
        inner, cuda = torch._C, torch.cuda
        self.current_device = getattr(inner, "_cuda_getDevice", None) or cuda.current_device
        self.current_stream = (getattr(inner, "_cuda_getCurrentRawStream", None)
                               or (lambda device: cuda.current_stream(device).cuda_stream))
        self.take = (getattr(inner, "_cuda_cudaCachingAllocator_raw_alloc", None)
                     or (lambda size, stream: cuda.caching_allocator_alloc(size, stream=stream)))
        self.give_back = getattr(inner, "_cuda_cudaCachingAllocator_raw_delete",
                                 None) or cuda.caching_allocator_delete
        self._form = lru_cache(maxsize=4096)(self._new_form)

    def _new_form(self, shape, steps, dtype):
        item = dtype.itemsize
        name = self._names.get(dtype, str(dtype))
        return _form(tuple(shape), tuple(step * item for step in steps), name,
                     item), dtype.is_complex

    def device_of(self, tensor):
        if tensor.is_cuda:
            return tensor.get_device()
        if not tensor.is_cpu:
            raise TypeError(f"a tensor on {tensor.device}: tmap knows cpu and cuda")
        return None

    def view(self, tensor, uses, is_current):
        if tensor.layout is not self._strided:
            raise TypeError(f"a tensor of layout {tensor.layout}: tmap knows strided ones")
        form, is_complex = self._form(tensor.shape, tensor.stride(), tensor.dtype)
        if tensor.is_neg() or (is_complex and tensor.is_conj()):
            raise TypeError("a tensor whose memory holds other values than it: call .resolve_neg() "
                            "or .resolve_conj()")
        view = View(tensor.data_ptr(), form, tensor.requires_grad and tensor.is_leaf, tensor)
        is_current = is_current or uses.stream is None
        if not is_current and not self.is_current(uses.stream, uses.device):
            current = self.torch.cuda.current_stream(tensor.device)
            self.stream(uses.stream, tensor.device).wait_stream(current)
            self.lend(view, uses.device, uses)
        return view

    def lend(self, view, device, uses):
        """Informs its allocator."""
        if not self.is_current(uses.stream, device):
            view.array.record_stream(self.stream(uses.stream, view.array.device))

    def is_current(self, stream, device):
        return self.current_stream(device) == (0 if stream == LEGACY_STREAM else stream)

    def stream(self, stream, device):
        """Returns PyTorch's stream. CUDA's legacy stream is its own one, with no other number than
        0."""
        cuda = self.torch.cuda
        if stream in (0, LEGACY_STREAM):
            return cuda.default_stream(device)
        return cuda.ExternalStream(stream, device)

    def use(self, device):
        return HERE if self.current_device() == device else self.torch.cuda.device(device)

    def memory(self, size, device, stream):
        """Call this inside `use`."""
        address = self.take(size, stream)
        return address, _LentMemory(address, self.give_back)


class _CuPy(_AnyLibrary):
    gives_memory = True

    def __init__(self, cupy):
        super().__init__()
        self.cupy = cupy

    def current_stream(self, device):
        with self.use(device):
            return self.cupy.cuda.get_current_stream().ptr

    def lend(self, view, device, uses):
        """Each of its pools belongs to a stream: memory of the current stream's pool is reused in
        that stream's order."""
        if self.current_stream(device) != uses.stream:
            super().lend(view, device, uses)

    def use(self, device):
        return self.cupy.cuda.Device(device)

    def memory(self, size, device, stream):
        with self.use(device), self.cupy.cuda.ExternalStream(stream):
            memory = self.cupy.empty(size, dtype="uint8")
        return memory.data.ptr, memory


_LIBRARIES = (("torch", "Tensor", _Torch), ("cupy", "ndarray", _CuPy))


class _Adaptors(dict):
    """Finds the library of an array by the array's type."""

    def __missing__(self, kind):
        self[kind] = self._find(kind)
        return self[kind]

    def _find(self, kind):
        """Imports nothing: the caller has an array, so its library is imported."""
        for name, base, adaptor in _LIBRARIES:
            base = getattr(sys.modules.get(name), base, None)
            if base is not None and issubclass(kind, base):
                return adaptor(sys.modules[name]) if kind is base else self[base]
        return _AnyLibrary(is_immutable=kind.__module__.split(".")[0] in ("jax", "jaxlib"))


ADAPTORS = _Adaptors()


def current_stream(device: int) -> int:
    """Returns the current stream of PyTorch or CuPy, if one of them is imported and sees GPUs, else
    CUDA's default stream."""
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and torch.cuda.is_available():
        return ADAPTORS[torch.Tensor].current_stream(device)
    return LEGACY_STREAM if cupy is None else ADAPTORS[cupy.ndarray].current_stream(device)

# SPDX-License-Identifier: Apache-2.0
"""Arrays of any library as addresses, shapes and strides, and where the work on them goes: device, stream, memory."""
import sys
from contextlib import nullcontext
from typing import Any, NamedTuple, Optional, Tuple

from . import _dlpack


class View(NamedTuple):
    """An array as the library sees it, in the array's own order: outermost dim first."""
    address: int
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]  # in bytes
    dtype: str
    item_bytes: int
    read_only: bool
    owner: Any  # keeps the memory

    @property
    def is_packed(self) -> bool:
        step = self.item_bytes
        for extent, stride in zip(reversed(self.shape), reversed(self.strides)):
            if extent != 1 and stride != step:
                return 0 in self.shape
            step *= extent
        return True

    @property
    def nbytes(self) -> int:
        total = self.item_bytes
        for extent in self.shape:
            total *= extent
        return total


def torch_names(torch) -> dict:
    """Our names of PyTorch's types, of those that this version has."""
    names = (("uint8", "u8"), ("uint16", "u16"), ("uint32", "u32"), ("uint64", "u64"), ("int8", "i8"), ("int16", "i16"),
             ("int32", "i32"), ("int64", "i64"), ("float16", "f16"), ("float32", "f32"), ("float64", "f64"),
             ("bfloat16", "bf16"), ("bool", "bool"), ("float8_e4m3fn", "f8_e4m3"), ("float8_e5m2", "f8_e5m2"),
             ("complex64", "c64"), ("complex128", "c128"))
    return {getattr(torch, theirs): ours for theirs, ours in names if hasattr(torch, theirs)}


class _Torch:
    """PyTorch: read through its own methods, since tensors that need a gradient have no capsule."""

    def __init__(self, torch):
        self.torch = torch
        self.names = torch_names(torch)

    def device_of(self, tensor):
        if tensor.is_cuda:
            return tensor.get_device()
        if not tensor.is_cpu:
            raise TypeError(f"a tensor on {tensor.device}: tmap knows cpu and cuda")
        return None

    def view(self, tensor, stream):
        if tensor.layout is not self.torch.strided:
            raise TypeError(f"a tensor of layout {tensor.layout}: tmap knows strided ones")
        if stream is not None:
            current = self.torch.cuda.current_stream(tensor.device)
            if current.cuda_stream != stream:
                self.torch.cuda.ExternalStream(stream, tensor.device).wait_stream(current)
        item = tensor.element_size()
        strides = tuple([step * item for step in tensor.stride()])
        return View(tensor.data_ptr(), tuple(tensor.shape), strides, self.names.get(tensor.dtype, str(tensor.dtype)),
                    item, tensor.requires_grad and tensor.is_leaf, tensor)

    def current_stream(self, device):
        return self.torch.cuda.current_stream(device).cuda_stream

    def use(self, device):
        return nullcontext() if self.torch.cuda.current_device() == device else self.torch.cuda.device(device)

    def memory(self, size, device, stream):
        memory = self.torch.empty(size, dtype=self.torch.uint8, device=f"cuda:{device}")
        if self.torch.cuda.current_stream(device).cuda_stream != stream:
            memory.record_stream(self.torch.cuda.ExternalStream(stream, device))
        return memory.data_ptr(), memory


class _CuPy:
    def __init__(self, cupy):
        self.cupy = cupy

    def current_stream(self, device):
        with self.use(device):
            return self.cupy.cuda.get_current_stream().ptr

    def use(self, device):
        return self.cupy.cuda.Device(device)

    def memory(self, size, device, stream):
        with self.use(device), self.cupy.cuda.ExternalStream(stream):
            memory = self.cupy.empty(size, dtype="uint8")
        return memory.data.ptr, memory


_adaptor_of_type: dict = {}
_LIBRARIES = (("torch", "Tensor", _Torch), ("cupy", "ndarray", _CuPy))


def _find_adaptor(kind):
    """Imports nothing: who has an array has imported its library."""
    for name, base, adaptor in _LIBRARIES:
        module = sys.modules.get(name)
        if issubclass(kind, getattr(module, base, ())):
            return adaptor(module)
    return None


def _adaptor_of(array):
    """Of the library that an array comes from, or None."""
    kind = type(array)
    if kind not in _adaptor_of_type:
        _adaptor_of_type[kind] = _find_adaptor(kind)
    return _adaptor_of_type[kind]


def _device_of(array):
    """Its CUDA device, or None for memory of the host."""
    adaptor = _adaptor_of(array)
    if isinstance(adaptor, _Torch):
        return adaptor.device_of(array)
    if not hasattr(array, "__dlpack_device__") or not hasattr(array, "__dlpack__"):
        raise TypeError(f"{type(array).__name__} is no array: it has no __dlpack__")
    kind, number = array.__dlpack_device__()
    if kind in (_dlpack.CUDA, _dlpack.CUDA_MANAGED):
        return number
    if kind in (_dlpack.CPU, _dlpack.CUDA_HOST):
        return None
    raise TypeError(f"an array on a device of DLPack's kind {int(kind)}: tmap knows CPUs and CUDA")


def _is_immutable(array):
    return type(array).__module__.split(".")[0] in ("jax", "jaxlib")


def stream_handle(stream) -> int:
    """A cudaStream_t as a number: of a number, or of the stream of any library."""
    if isinstance(stream, int):
        return stream
    asked = getattr(stream, "__cuda_stream__", None)
    if asked is not None:
        return int((asked() if callable(asked) else asked)[1])
    for name in ("cuda_stream", "ptr"):
        if hasattr(stream, name):
            return int(getattr(stream, name))
    raise TypeError(f"{type(stream).__name__} is no CUDA stream")


class Site:
    """Where one call's work goes: a CUDA device and a stream, or the host."""

    def __init__(self, stream, *arrays):
        """That of the arrays, which must be on one device. `stream` None: the current one of PyTorch or CuPy, whichever
        the first of their arrays comes from, else CUDA's default stream."""
        self.device = _device_of(arrays[0])
        self.adaptor = None
        for array in arrays:
            if _device_of(array) != self.device:
                raise ValueError("arrays of one call are all on one device, or all on the host")
            self.adaptor = self.adaptor or _adaptor_of(array)
        if self.device is None:
            if stream is not None:
                raise ValueError("work on the host takes no stream")
            self.stream = None
        elif stream is not None:
            self.stream = stream_handle(stream)
        else:
            self.stream = self.adaptor.current_stream(self.device) if self.adaptor else 1

    @property
    def on_host(self) -> bool:
        return self.device is None

    def read(self, array, name: str, dtypes: Optional[Tuple[str, ...]] = None, rank: Optional[int] = None) -> View:
        """An array that is read on the site's stream. What its producer enqueued comes first."""
        adaptor = _adaptor_of(array)
        if _device_of(array) != self.device:
            raise ValueError(f"{name} is on another device")
        if isinstance(adaptor, _Torch):
            view = adaptor.view(array, self.stream)
        else:
            # DLPack has no stream 0: 1 stands for CUDA's default stream.
            stream = self.stream if self.on_host else self.stream or 1
            address, shape, strides, dtype, item, read_only, capsule = _dlpack.read(array, stream)
            view = View(address, shape, tuple(step * item for step in strides), dtype, item,
                        read_only or _is_immutable(array), (array, capsule))
        if dtypes is not None and view.dtype not in dtypes:
            raise TypeError(f"{name} has elements of {view.dtype}, not of {' or '.join(dtypes)}")
        if rank is not None and len(view.shape) != rank:
            raise ValueError(f"{name} has {len(view.shape)} dims, not {rank}")
        return view

    def write(self, array, name: str, dtypes: Optional[Tuple[str, ...]] = None, rank: Optional[int] = None) -> View:
        """An array that is written on the site's stream."""
        view = self.read(array, name, dtypes, rank)
        if view.read_only:
            raise ValueError(f"{name} would be written, and is read-only (or a leaf that needs a gradient)")
        return view

    def optional(self, array, name: str, dtypes: Tuple[str, ...], elements: int, write=False) -> Optional[int]:
        """The address of a packed array of so many elements at least; None for None."""
        if array is None:
            return None
        view = (self.write if write else self.read)(array, name, dtypes)
        if not view.is_packed or view.nbytes < elements * view.item_bytes:
            raise ValueError(f"{name} must hold {elements} elements without gaps")
        return view.address

    def use(self):
        """Makes the site's device the thread's current one, for a `with`."""
        return self.adaptor.use(self.device) if self.adaptor and not self.on_host else nullcontext()

    def memory(self, size: int) -> Tuple[int, Any]:
        """Device memory to work in, from the library that the arrays come from: its address and its owner. It may be
        given back at once: these libraries reuse memory in stream order."""
        if self.adaptor is None:
            raise ValueError("memory to work in comes from PyTorch or CuPy: give one array of theirs")
        return self.adaptor.memory(size, self.device, self.stream)

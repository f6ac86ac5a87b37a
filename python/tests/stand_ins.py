# SPDX-License-Identifier: Apache-2.0
"""CUDA's driver, the library and the libraries of arrays as far as lifetimes and devices go,
without a GPU: each notes what it is asked."""
import contextlib
import ctypes
import itertools
import types

from test_dlpack import Producer

from tmap import Status
from tmap._libraries import LEGACY_STREAM
from tmap._library import lib

CONTEXT_OF = {0: 0x1000, 1: 0x2000}  # by device
GLOBAL = 0  # CUDA's strictest capture mode


class Driver:
    """What `tmap._driver.cuda` is asked. One thread's contexts, and streams that stand still until
    `pass_all`."""

    def __init__(self):
        self.contexts, self.capturing, self.events, self.passed = [CONTEXT_OF[0]], set(), {}, set()
        self.capture_mode, self.broken_captures = GLOBAL, 0
        self.numbers, self.may_push, self.pushes = itertools.count(1), True, 0
        self.asked = 0  # questions which context is current
        self.recorded_in = []  # contexts of events
        self.queries, self.mode_changes = 0, 0
        self.memory, self.reads = b"", []  # bytes at any address; (address, size, stream) of copies

    def current(self):
        return self.contexts[-1]

    def pass_all(self):
        self.passed.update(self.events)

    def cuCtxGetCurrent(self, found):
        self.asked += 1
        found._obj.value = self.current()
        return 0

    def cuCtxGetDevice(self, found):
        found._obj.value = {context: device for device, context in CONTEXT_OF.items()}[self.current()]
        return 0

    def cuDevicePrimaryCtxRetain(self, found, device):
        found._obj.value = CONTEXT_OF[device]
        return 0

    def cuCtxPushCurrent_v2(self, context):
        if not self.may_push:
            return 201
        self.contexts.append(context)
        self.pushes += 1
        return 0

    def cuCtxPopCurrent_v2(self, popped):
        self.contexts.pop()
        return 0

    def cuStreamIsCapturing(self, stream, state):
        state._obj.value = int(stream in self.capturing)
        return 0

    def cuThreadExchangeStreamCaptureMode(self, mode):
        self.mode_changes += 1
        self.capture_mode, mode._obj.value = mode._obj.value, self.capture_mode
        return 0

    def cuEventCreate(self, event, flags):
        event._obj.value = next(self.numbers)
        return 0

    def cuEventRecord(self, event, stream):
        self.events[event.value] = stream
        self.recorded_in.append(self.current())
        return 0

    def cuEventQuery(self, event):
        """As CUDA: an event that was never recorded has passed, and the question breaks a global
        capture."""
        self.queries += 1
        if self.capturing and self.capture_mode == GLOBAL:
            self.broken_captures += 1
            return 900
        return 600 if event.value in self.events and event.value not in self.passed else 0

    def cuMemcpyDtoHAsync_v2(self, to, address, size, stream):
        self.reads.append((address, size, stream))
        to[:] = self.memory[:size]
        return 0

    def cuStreamSynchronize(self, stream):
        return 0

    def cuEventDestroy_v2(self, event):
        self.events.pop(event.value, None)
        return 0


class Library:
    """The C functions named, which note each call that they take: its name and the context. Those
    of batches refuse another context than theirs, as the real ones do; those of the end and the
    numbers of a service do there what they can, so they take every call. Others are the real
    ones."""
    DONE = ("tmap_template_create", "tmap_template_destroy", "tmap_ragged_copy", "tmap_ragged_gather_rows",
            "tmap_ragged_pad", "tmap_gemm_rows")

    def __init__(self, driver, home=CONTEXT_OF[0]):
        self.driver, self.home, self.calls, self.answer = driver, home, [], 0

    def __getattr__(self, name):
        if name in self.DONE:
            return lambda *arguments: self.noted(name, 0)
        return getattr(lib, name)

    def noted(self, name, code):
        self.calls.append((name, self.driver.current()))
        return self.answer or code

    def in_home(self, name):
        return self.noted(name, 0) if self.driver.current() == self.home else Status.WRONG_CONTEXT

    def tmap_service_create(self, options, handle):
        handle._obj.value = 5
        return self.noted("create", 0)

    def tmap_service_destroy(self, handle):
        return self.noted("destroy", 0)

    def tmap_service_statistics(self, handle, text, capacity, length):
        length._obj.value = 2
        if text is not None:
            text.value = b"{}"
        return self.noted("statistics", 0)

    def tmap_service_encode(self, service, template, source, count, handle, call):
        handle._obj.value = 77
        return self.in_home("encode")

    def tmap_batch_query(self, handle, info):
        return self.in_home("query")

    def tmap_batch_use_on(self, handle, stream):
        return self.in_home("use_on")

    def tmap_batch_release(self, handle):
        return self.in_home("release")


class OnDevice(Producer):
    """An array of a library that has no current stream, as JAX's."""

    def __init__(self, shape, dtype, device=0):
        super().__init__(bytes(4096), shape, dtype, device=(2, device))


class CuPyArray(OnDevice):
    """An array as CuPy's."""


class CuPy:
    """The module. Memory to work in is an array of its own."""

    def __init__(self, current=5):
        stream = types.SimpleNamespace(ptr=current)
        self.cuda = types.SimpleNamespace(Device=lambda number: contextlib.nullcontext(),
                                          ExternalStream=lambda handle: contextlib.nullcontext(),
                                          get_current_stream=lambda: stream)

    @staticmethod
    def empty(size, dtype):
        return types.SimpleNamespace(data=types.SimpleNamespace(ptr=4096))


class DType:
    is_complex = False

    def __init__(self, itemsize):
        self.itemsize = itemsize


class Tensor:
    """A tensor as PyTorch's, on device 0."""
    is_cuda, is_cpu, requires_grad, is_leaf = True, False, False, True
    layout, device = "strided", "cuda:0"

    def __init__(self, shape, dtype):
        self.shape, self.dtype, self.streams, self.version = shape, dtype, [], 0
        self.memory = ctypes.create_string_buffer(4096)

    def get_device(self):
        return 0

    def is_neg(self):
        return False

    is_conj = is_neg

    def stride(self):
        return tuple(int(step) for step in itertools.accumulate((1, *self.shape[:0:-1]), lambda a, b: a * b))[::-1]

    def data_ptr(self):
        return ctypes.addressof(self.memory)

    def record_stream(self, stream):
        self.streams.append(stream.handle)


class Torch:
    """The module, with the functions that its public ones call."""
    strided = "strided"

    def __init__(self, current=5):
        for name, size in (("float32", 4), ("int32", 4), ("int64", 8), ("uint64", 8), ("bfloat16", 2)):
            setattr(self, name, DType(size))
        self.waits = []
        torch = self

        class ExternalStream:
            def __init__(self, handle, device):
                self.handle = handle

            def wait_stream(self, other):
                torch.waits.append((self.handle, other))

            def __new__(cls, handle, device):
                if handle == LEGACY_STREAM:
                    raise RuntimeError(f"invalid StreamId{handle}")  # as PyTorch
                return super().__new__(cls)

        default_stream = ExternalStream(0, 0)
        self.cuda = types.SimpleNamespace(ExternalStream=ExternalStream, current_stream=lambda device: current,
                                          default_stream=lambda device: default_stream,
                                          current_device=lambda: 0, caching_allocator_delete=None)
        self._C = types.SimpleNamespace(_cuda_getDevice=lambda: 0, _cuda_getCurrentRawStream=lambda device: current,
                                        _cuda_cudaCachingAllocator_raw_alloc=lambda size, stream: 4096,
                                        _cuda_cudaCachingAllocator_raw_delete=lambda address: None)
        graph = types.SimpleNamespace(increment_version=self.count)
        self.autograd = types.SimpleNamespace(graph=graph)

    @staticmethod
    def count(tensor):
        tensor.version += 1

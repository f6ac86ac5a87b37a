# SPDX-License-Identifier: Apache-2.0
"""Calls of CUDA's driver that need no library of arrays: contexts and events."""
import ctypes
import threading
from ctypes import byref, c_int32, c_size_t, c_uint32, c_void_p
from typing import Optional

from ._errors import Status

_ARGUMENTS = {
    "cuCtxGetCurrent": (c_void_p,),
    "cuCtxGetDevice": (c_void_p,),
    "cuDevicePrimaryCtxRetain": (c_void_p, c_int32),
    "cuCtxPushCurrent_v2": (c_void_p,),
    "cuCtxPopCurrent_v2": (c_void_p,),
    "cuStreamIsCapturing": (c_void_p, c_void_p),
    "cuThreadExchangeStreamCaptureMode": (c_void_p,),
    "cuEventCreate": (c_void_p, c_uint32),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventQuery": (c_void_p,),
    "cuEventDestroy_v2": (c_void_p,),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_void_p, c_size_t, c_void_p),
    "cuStreamSynchronize": (c_void_p,),
}
_NO_TIMING = 2
_RELAXED = 2
_NOT_READY = 600
_WRONG_CONTEXT = int(Status.WRONG_CONTEXT)


class _NoDriver:
    """Stands for the driver on a machine without one: there is no context and nothing to wait
    for."""

    def __getattr__(self, name):
        return lambda *arguments: 1


def _load():
    try:
        loaded = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return _NoDriver()
    for name, arguments in _ARGUMENTS.items():
        getattr(loaded, name).argtypes = arguments
    return loaded


cuda = _load()


class _Found(threading.local):
    """The place of a result, made once for each thread."""

    def __init__(self):
        self.context = c_void_p()
        self.reference = byref(self.context)


_found = _Found()


def _current():
    """Returns the thread's context, or None."""
    return _found.context.value if cuda.cuCtxGetCurrent(_found.reference) == 0 else None


def current_device() -> Optional[int]:
    """Returns the device of the thread's context, or None."""
    number = c_int32()
    return number.value if cuda.cuCtxGetDevice(byref(number)) == 0 else None


class Home:
    """The context that was current in this thread when this was made, and its device."""
    __slots__ = ("context", "device")

    def __init__(self):
        self.context, self.device = _current(), current_device()

    @classmethod
    def on(cls, device: int) -> "Home":
        """Returns the primary context of a device, which CUDA's runtime and libraries of arrays
        use."""
        home, context = cls(), c_void_p()
        if home.device != device:
            is_found = cuda.cuDevicePrimaryCtxRetain(byref(context), device) == 0
            home.context, home.device = context.value if is_found else None, device
        return home

    def call(self, function, *arguments):
        """Calls a function of the library in this context and returns its result. In another
        context the function does nothing and reports it, so there is no need to ask the driver
        first."""
        code = function(*arguments)
        return self.inside(function, *arguments) if code == _WRONG_CONTEXT else code

    def inside(self, function, *arguments):
        """Calls any function with this context as the thread's current one and returns its
        result."""
        context = self.context
        if context is None or _current() == context or cuda.cuCtxPushCurrent_v2(context) != 0:
            return function(*arguments)
        try:
            return function(*arguments)
        finally:
            cuda.cuCtxPopCurrent_v2(byref(c_void_p()))


def is_capturing(stream: int) -> bool:
    state = c_int32()
    return cuda.cuStreamIsCapturing(stream, byref(state)) == 0 and state.value != 0


class RelaxedCapture:
    """Lets this thread ask about events while a stream is captured in the global mode. Without it
    the question would break that capture."""
    __slots__ = ("_mode",)

    def __enter__(self):
        self._mode = c_int32(_RELAXED)
        cuda.cuThreadExchangeStreamCaptureMode(byref(self._mode))

    def __exit__(self, *exception):
        cuda.cuThreadExchangeStreamCaptureMode(byref(self._mode))


def read_memory(address: int, size: int, stream: int) -> Optional[ctypes.Array]:
    """Waits for the stream and copies device memory of the current context. Returns None where the
    stream is being captured or the copy fails."""
    copied = (ctypes.c_char * size)()
    with RelaxedCapture():
        if is_capturing(stream):
            return None
        failed = (cuda.cuMemcpyDtoHAsync_v2(copied, address, size, stream) != 0
                  or cuda.cuStreamSynchronize(stream) != 0)
    return None if failed else copied


class Event:
    """A point of a stream of the current context."""
    __slots__ = ("_event", "_is_recorded")

    def __init__(self, stream: int):
        self._event = c_void_p()
        self._is_recorded = (cuda.cuEventCreate(byref(self._event), _NO_TIMING) == 0
                             and cuda.cuEventRecord(self._event, stream) == 0)

    def is_passed(self) -> bool:
        """Is true also in a lost context, where no work is left. Is false where it cannot be
        known."""
        return self._is_recorded and cuda.cuEventQuery(self._event) != _NOT_READY

    def __del__(self):
        if self._event:
            cuda.cuEventDestroy_v2(self._event)

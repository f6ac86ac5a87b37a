# SPDX-License-Identifier: Apache-2.0
"""The exceptions that failed calls of the library raise."""
import enum
from ctypes import byref, c_size_t, create_string_buffer
from dataclasses import dataclass
from typing import Dict, Optional, Tuple, Union

from . import _structs as c
from ._library import lib
from ._numbers import integer, status_bits


class Status(enum.IntEnum):
    """Names what went wrong, with the numbers of `tmap_status`."""
    OK = 0
    RULE_BROKEN = 1
    INVALID_ARGUMENT = 2
    NO_DRIVER = 3
    NO_DEVICE = 4
    COMPUTE_CAPABILITY_TOO_LOW = 5
    DRIVER_TOO_OLD = 6
    SYMBOL_MISSING = 7
    DRIVER_REFUSED = 8
    NO_CONTEXT = 9
    EARLIER_ASYNCHRONOUS_ERROR = 10
    NO_KERNEL_IMAGE = 11
    OUT_OF_MEMORY = 12
    CUDA_FAILURE = 13
    NOT_A_TENSOR_MAP = 14
    ILLEGAL_INSTRUCTION = 15
    ILLEGAL_MEMORY_ACCESS = 16
    MISALIGNED_ADDRESS = 17
    UNSUPPORTED = 18
    POOL_EXHAUSTED = 19
    SERVICE_DEAD = 20
    FORKED = 21
    WRONG_CONTEXT = 22
    SELF_TEST_FAILED = 23
    PAGEABLE_MEMORY_IN_CAPTURE = 24
    BAD_ITEMS = 25
    NO_PEER_ACCESS = 26
    NCCL_MISSING = 27
    NCCL_VERSION = 28
    NCCL_FAILURE = 29
    MULTICAST_NOT_OFF = 30
    WINDOWS_DIFFER = 31
    PEER_TIMEOUT = 32
    GROUP_BROKEN = 33
    PEER_LOST = 34
    PEER_MISMATCH = 35
    PEER_OVERFLOW = 36
    INVALID_HANDLE = 256
    BUFFER_TOO_SMALL = 257
    BATCH_BUSY = 258
    INTERNAL_ERROR = 259
    GROUP_BUSY = 260
    UNKNOWN = -1  # of a library newer than this package

    @classmethod
    def _missing_(cls, value):
        return cls.UNKNOWN


# Advice for Python, where the library's own sentence speaks of C.
_ADVICE = {
    Status.PAGEABLE_MEMORY_IN_CAPTURE:
        "the addresses and shapes of tmap.ragged.Tensors lie in such memory: take Rows or Columns, "
        "whose arrays lie on the device, in calls that a graph captures",
}


@dataclass(frozen=True)
class Rule:
    """A rule that tensor maps must keep (docs/fields_and_rules.md): its name, "T07", and its
    sentence."""
    number: int
    name: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.name}: {self.sentence}"


def rule(number: Union[int, str]) -> Rule:
    """Returns the rule of this number, or of this name: `rule("T17")`."""
    if isinstance(number, str):
        every = (rule(i) for i in range(lib.tmap_rule_count()))
        found = next((one for one in every if one.name == number), None)
        if found is None:
            raise ValueError(f"there is no rule {number!r}")
        return found
    number = integer(number, "number", 32)
    name, sentence = lib.tmap_rule_name(number), lib.tmap_rule_sentence(number)
    if name is None:
        raise ValueError(f"there is no rule {number}")
    return Rule(number, name.decode(), sentence.decode())


def rules_of(bits: int) -> Tuple[Rule, ...]:
    """Returns the rules in a bit set: bit i stands for rule i. A negative number is a set of 64
    bits that was read as signed."""
    bits = status_bits(bits, 64, "bits")
    return tuple(rule(i) for i in range(lib.tmap_rule_count()) if bits >> i & 1)


@dataclass(frozen=True)
class BadItem:
    """A bad map, tensor, row number or group: the `call` that met it, "ragged::copy_async", the
    call's `number` in this process, the item's `index` and the `bits` of its status
    (`describe_status`)."""
    call: str
    number: int
    index: int
    bits: int


def bad_item(item: c.BadItem) -> Optional[BadItem]:
    if item.call == 0:
        return None
    return BadItem(lib.tmap_call_name(item.call).decode(), item.number, item.index, item.bits)


class Error(RuntimeError):
    """A call of the library failed and changed nothing. A call that fails with `Status.BAD_ITEMS`
    has done its work.

    `status` names what went wrong. If rules were broken, `rules` has all that are known, `rule` is
    the first and `axis` its dimension (innermost is 0) or None. `argument` names the argument at
    fault, as C has it ("source.tensors.offsets"), or is None. `found` and `allowed` are the value
    that was met and the limit it broke. `cuda_code` is the CUresult or cudaError_t that caused the
    failure, or 0. `slots` counts a service's slots by state when it has no more. `bad` is one of
    the bad items that a checked call met, `found` of `allowed`.
    """

    def __init__(self, message: str, status: Status, rules: Tuple[Rule, ...] = (),
                 first: Optional[Rule] = None, axis: Optional[int] = None, found: int = 0,
                 allowed: int = 0, cuda_code: int = 0, slots: Optional[Dict[str, int]] = None,
                 bad: Optional[BadItem] = None, argument: Optional[str] = None):
        super().__init__(message)
        self.status = status
        self.rules = rules
        self.rule = first
        self.axis = axis
        self.found = found
        self.allowed = allowed
        self.cuda_code = cuda_code
        self.slots = slots
        self.bad = bad
        self.argument = argument


def text_of(function, *arguments) -> str:
    """Returns a text of the library, of any length."""
    length = c_size_t()
    check(function(*arguments, None, 0, byref(length)))
    while True:
        capacity = length.value + 1
        buffer = create_string_buffer(capacity)
        code = function(*arguments, buffer, capacity, byref(length))
        if code != Status.BUFFER_TOO_SMALL:
            check(code)
            return buffer.value.decode()


def last_error() -> Error:
    """Returns the last failure on this thread."""
    last = c.LastError()
    lib.tmap_last_error(byref(last))
    status = Status(last.code)
    first = rule(last.first_rule) if last.rules else None
    message = "; ".join(filter(None, (text_of(lib.tmap_last_message), _ADVICE.get(status))))
    slots = {name: getattr(last.slots, name) for name, _ in c.SlotCounts._fields_}
    return Error(message, status, rules_of(last.rules), first,
                 axis=last.axis if last.axis >= 0 else None, found=last.found,
                 allowed=last.allowed, cuda_code=last.cuda_code,
                 slots=slots if status is Status.POOL_EXHAUSTED else None, bad=bad_item(last.bad),
                 argument=last.argument.decode() or None)


def check(code: int) -> None:
    """Raises `Error` for a code of failure."""
    if code != 0:
        raise last_error()

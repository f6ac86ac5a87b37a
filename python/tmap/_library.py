# SPDX-License-Identifier: Apache-2.0
"""Finds and loads the shared library and declares its functions."""
import ctypes
import os
from ctypes import POINTER, c_char_p, c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path

from . import _structs as c

_TEXT = (c_char_p, c_size_t, POINTER(c_size_t))

# Lists the arguments of each function. Structs are passed by reference, as c_void_p. All these
# return a status. ragged.py declares the functions of ragged operations.
_ARGUMENTS = {
    "tmap_last_error": (c_void_p,),
    "tmap_last_message": _TEXT,
    "tmap_faults": (c_void_p,),
    "tmap_reset_faults": (c_void_p,),
    "tmap_fault_report_text": (c_void_p, *_TEXT),
    "tmap_item_text": (c_uint32, c_uint64, *_TEXT),
    "tmap_packed_spec": (c_uint32, c_uint64, c_uint32, c_void_p, c_void_p, c_void_p),
    "tmap_validate": (c_void_p, c_void_p, c_void_p, c_uint32, c_void_p),
    "tmap_explain": (c_void_p, c_void_p, *_TEXT),
    "tmap_encode": (c_void_p, c_void_p),
    "tmap_encode_bits": (c_void_p, c_void_p),
    "tmap_decode": (c_void_p, c_void_p),
    "tmap_describe": (c_void_p, *_TEXT),
    "tmap_describe_json": (c_void_p, *_TEXT),
    "tmap_template_create": (c_void_p, c_uint32, c_void_p),
    "tmap_template_destroy": (c.Handle,),
    "tmap_rows_workspace_bytes": (c_uint64, c_uint32, c_void_p),
    "tmap_service_create": (c_void_p, c_void_p),
    "tmap_service_destroy": (c.Handle,),
    "tmap_service_statistics": (c.Handle, *_TEXT),
    "tmap_service_encode": (c.Handle, c.Handle, c_void_p, c_uint64, c_void_p, c_void_p),
    "tmap_batch_query": (c.Handle, c_void_p),
    "tmap_batch_use_on": (c.Handle, c_void_p),
    "tmap_batch_release": (c.Handle,),
    "tmap_ragged_workspace_bytes": (c_uint64, c_uint32, c_void_p),
    "tmap_ragged_pad_rows": (c_void_p, c_void_p, c_void_p),
    "tmap_ragged_unpad_rows": (c_void_p, c_void_p),
    "tmap_tile_sizes": (c_void_p, c_void_p, c_void_p),
    "tmap_simulate_load": (c_void_p, c_void_p, c_uint32, c_void_p, c_void_p),
    "tmap_simulate_store": (c_void_p, c_void_p, c_uint32, c_void_p),
    "tmap_simulate_reduce": (c_uint32, c_void_p, c_void_p, c_uint32, c_void_p),
    "tmap_gemm_workspace_bytes": (c_uint32, c_void_p),
    "tmap_gemm_rows": (c_void_p, c_void_p),
    "tmap_gemm_columns": (c_void_p, c_void_p),
    "tmap_gemm_weights": (c_void_p, c_void_p),
    "tmap_gemm_pointers": (c_void_p, c_void_p),
    "tmap_moe_workspace_bytes": (c_void_p, c_void_p),
    "tmap_moe_route": (c_void_p, c_void_p, c_void_p),
    "tmap_moe_combine": (c_void_p, c_void_p),
    "tmap_moe_layer_workspace_bytes": (c_void_p, c_void_p),
    "tmap_moe_layer": (c_void_p, c_void_p, c_void_p),
    "tmap_moe_combine_backward": (c_void_p, c_void_p),
    "tmap_peer_group_from_addresses": (c_uint32, c_void_p, c_uint32, c_uint64, c_void_p),
    "tmap_peer_group_of_process": (c_void_p, c_uint32, c_void_p),
    "tmap_peer_group_from_nccl": (c_void_p, c_uint64, c_void_p),
    "tmap_peer_new_id": (c_void_p,),
    "tmap_peer_group_create": (c_void_p, c_void_p),
    "tmap_peer_group_query": (c.Handle, c_void_p, c_void_p),
    "tmap_peer_group_check": (c.Handle,),
    "tmap_peer_group_destroy": (c.Handle,),
    "tmap_peer_group_allocate": (c.Handle, c_uint64, c_void_p),
    "tmap_peer_group_allocate_local": (c.Handle, c_uint64, c_uint64, c_void_p),
    "tmap_peer_memory_query": (c.Handle, c_void_p),
    "tmap_peer_memory_destroy": (c.Handle,),
    "tmap_peer_exchange_rows": (c.Handle, c_void_p, c_void_p),
    "tmap_peer_workspace_bytes": (c_void_p, c_uint32, c_void_p),
    "tmap_peer_expert_rows": (c_void_p, c_uint32, c_void_p),
    "tmap_peer_dispatch": (c.Handle, c_void_p, c_void_p),
    "tmap_peer_combine": (c.Handle, c_void_p, c_void_p),
    "tmap_peer_await_pulls": (c.Handle, c_uint64, c_void_p),
    "tmap_peer_barrier": (c.Handle, c_uint64, c_void_p),
    "tmap_peer_self_test": (c.Handle, c_uint64, c_void_p),
    "tmap_peer_abort": (c.Handle,),
    "tmap_peer_last_outcome": (c.Handle, c_void_p),
    "tmap_all_ranks_spec": (c_void_p, c.Handle, c_void_p),
}
_OTHERS = {
    "tmap_version": (c_uint32, ()),
    "tmap_status_name": (c_char_p, (c_int32,)),
    "tmap_call_name": (c_char_p, (c_uint32,)),
    "tmap_rule_count": (c_uint32, ()),
    "tmap_rule_name": (c_char_p, (c_uint32,)),
    "tmap_rule_sentence": (c_char_p, (c_uint32,)),
    "tmap_moe_most_rows": (c_uint64, (c_uint64, c_uint32, c_uint32, c_uint32)),
    "tmap_gemm_plan_count": (c_uint32, ()),
    "tmap_gemm_plan_name": (c_char_p, (c_uint32,)),
}


def _path():
    """Returns TMAP_LIBRARY, else the library in this package, else the installed one."""
    named = os.environ.get("TMAP_LIBRARY")
    if named:
        return named
    packaged = Path(__file__).with_name("libtmap.so")
    return str(packaged) if packaged.exists() else "libtmap.so.0"


def _load():
    try:
        return ctypes.CDLL(_path())
    except OSError as reason:
        raise ImportError(f"tmap: the library cannot be loaded: {reason}. Install it with "
                          "'pip install ./python', or set TMAP_LIBRARY to its path") from reason


def _wrong_library(reason):
    return ImportError(f"tmap: {_path()} is not the library this package needs: {reason}")


lib = _load()


def declare(name: str, *arguments, result=c_int32) -> None:
    """Declares the arguments and the result of a function."""
    try:
        function = getattr(lib, name)
    except AttributeError as reason:
        raise _wrong_library(reason) from reason
    function.argtypes, function.restype = arguments, result


for _name, _arguments in _ARGUMENTS.items():
    declare(_name, *_arguments)
for _name, (_result, _arguments) in _OTHERS.items():
    declare(_name, *_arguments, result=_result)


def version():
    """Returns the version of the library: (major, minor, patch)."""
    number = lib.tmap_version()
    return number // 10000, number // 100 % 100, number % 100

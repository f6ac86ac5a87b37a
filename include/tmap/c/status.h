// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <tmap/config.hpp>  // macros only, which C reads, too

/// @file
/// Declares what every function of the C interface shares (tmap.h): version, statuses, texts, log.

#ifdef __cplusplus
extern "C" {
#endif

#define TMAP_VERSION_MAJOR 0
#define TMAP_VERSION_MINOR 1
#define TMAP_VERSION_PATCH 0
#define TMAP_VERSION (TMAP_VERSION_MAJOR * 10000 + TMAP_VERSION_MINOR * 100 + TMAP_VERSION_PATCH)

/// Returns `TMAP_VERSION` of the library, which may differ from the header's.
TMAP_API uint32_t tmap_version(void);

/// The type of a CUDA stream, `cudaStream_t`, without CUDA's headers.
struct CUstream_st;
typedef struct CUstream_st* tmap_stream;

/// The type of a CUDA event, `cudaEvent_t`.
struct CUevent_st;
typedef struct CUevent_st* tmap_event;

/// Holds 0 or the number of a failure. Numbers below 256 are those of `tmap::status`, which
/// error.hpp describes.
typedef int32_t tmap_status;
enum {
  TMAP_OK = 0,
  TMAP_RULE_BROKEN = 1,
  TMAP_INVALID_ARGUMENT = 2,
  TMAP_NO_DRIVER = 3,
  TMAP_NO_DEVICE = 4,
  TMAP_COMPUTE_CAPABILITY_TOO_LOW = 5,
  TMAP_DRIVER_TOO_OLD = 6,
  TMAP_SYMBOL_MISSING = 7,
  TMAP_DRIVER_REFUSED = 8,
  TMAP_NO_CONTEXT = 9,
  TMAP_EARLIER_ASYNCHRONOUS_ERROR = 10,
  TMAP_NO_KERNEL_IMAGE = 11,
  TMAP_OUT_OF_MEMORY = 12,
  TMAP_CUDA_FAILURE = 13,
  TMAP_NOT_A_TENSOR_MAP = 14,
  TMAP_ILLEGAL_INSTRUCTION = 15,
  TMAP_ILLEGAL_MEMORY_ACCESS = 16,
  TMAP_MISALIGNED_ADDRESS = 17,
  TMAP_UNSUPPORTED = 18,
  TMAP_POOL_EXHAUSTED = 19,
  TMAP_SERVICE_DEAD = 20,
  TMAP_FORKED = 21,
  TMAP_WRONG_CONTEXT = 22,
  TMAP_SELF_TEST_FAILED = 23,
  TMAP_PAGEABLE_MEMORY_IN_CAPTURE = 24,
  TMAP_BAD_ITEMS = 25,
  TMAP_NO_PEER_ACCESS = 26,
  TMAP_NCCL_MISSING = 27,
  TMAP_NCCL_VERSION = 28,
  TMAP_NCCL_FAILURE = 29,
  TMAP_MULTICAST_NOT_OFF = 30,
  TMAP_WINDOWS_DIFFER = 31,
  TMAP_PEER_TIMEOUT = 32,
  TMAP_GROUP_BROKEN = 33,
  TMAP_PEER_LOST = 34,
  TMAP_PEER_MISMATCH = 35,
  TMAP_PEER_OVERFLOW = 36,
  TMAP_INVALID_HANDLE = 256,    ///< a handle that names nothing: never made, of another kind, or destroyed
  TMAP_BUFFER_TOO_SMALL = 257,  ///< for a text, which is cut; `length` gets its whole length
  TMAP_BATCH_BUSY = 258,        ///< another thread is in a call with the same batch
  TMAP_INTERNAL_ERROR = 259,    ///< a defect of the library
  TMAP_GROUP_BUSY = 260         ///< another thread is in a call with the same group of GPUs
};

/// Returns "rule_broken", ...; "unknown" for any other number.
TMAP_API const char* tmap_status_name(tmap_status code);

/// Counts the slots of a service by state (`tmap::slot_counts`).
typedef struct tmap_slot_counts {
  uint64_t capacity;
  uint64_t free;
  uint64_t leased;
  uint64_t pending;
  uint64_t captured;
} tmap_slot_counts;

/// `tmap::bad_item`.
typedef struct tmap_bad_item {
  uint32_t call;  ///< 0: there is no such item; else `tmap_call_name` names the call
  uint32_t reserved;
  uint64_t number;
  uint64_t index;
  uint64_t bits;
} tmap_bad_item;

/// Bytes of an argument's name, its zero included.
#define TMAP_ARGUMENT_CAPACITY 64

/// The calling thread's last call that failed.
typedef struct tmap_error {
  uint32_t struct_size;
  tmap_status code;
  uint64_t rules;      ///< a bit for each rule known to be broken, bit i for rule i
  int32_t first_rule;  ///< meaningful when `rules` is not 0
  int32_t axis;        ///< of the first broken rule, or -1
  uint64_t found;
  uint64_t allowed;
  int32_t cuda_code;  ///< CUresult or cudaError_t that caused the failure, or 0
  uint32_t reserved;
  tmap_slot_counts slots;  ///< with `TMAP_POOL_EXHAUSTED`
  tmap_bad_item bad;       ///< with `TMAP_BAD_ITEMS`
  /// The argument at fault, members after dots: "count", "source.tensors.global_dim[3]". It is
  /// empty if the code or a rule is clear enough. The members of a union are left out.
  char argument[TMAP_ARGUMENT_CAPACITY];
} tmap_error;

/// Returns the last failure on this thread; `code` is `TMAP_OK` if nothing has failed. Neither this
/// function nor the next changes it.
/// @fails `TMAP_INVALID_ARGUMENT`.
TMAP_API tmap_status tmap_last_error(tmap_error* last);

/// Returns the same in words: the function, the argument and what is wrong with it. The text is
/// empty if nothing has failed.
/// @fails `TMAP_INVALID_ARGUMENT`, `TMAP_BUFFER_TOO_SMALL`, `TMAP_OUT_OF_MEMORY`.
TMAP_API tmap_status tmap_last_message(char* text, size_t capacity, size_t* length);

/// Rules have the numbers 0 to `tmap_rule_count() - 1`. Names and sentences are as in
/// docs/fields_and_rules.md; null for any other number.
TMAP_API uint32_t tmap_rule_count(void);
TMAP_API const char* tmap_rule_name(uint32_t rule);
TMAP_API const char* tmap_rule_sentence(uint32_t rule);

/// debug, info, warning, error: 0 to 3.
typedef uint32_t tmap_log_level;
typedef void (*tmap_log_callback)(tmap_log_level level, const char* text, void* user);

/// Works as `tmap::set_log_callback` (log.hpp): null restores the default. After this function has
/// returned, the previous callback is never called again. The callback must not call tmap.
/// @fails `TMAP_OUT_OF_MEMORY`.
TMAP_API tmap_status tmap_set_log_callback(tmap_log_callback callback, void* user);

#ifdef __cplusplus
}
#endif

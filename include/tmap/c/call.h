// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/status.h>

/// @file
/// How a call treats its batch, which is the same for maps, tensors, rows and groups
/// (batch_run.hpp, item_status.hpp).

#ifdef __cplusplus
extern "C" {
#endif

/// Values of `tmap_call::engine`.
enum { TMAP_ON_STREAM = 0, TMAP_ON_HOST = 1 };

/// Values of `tmap_call::check` (`tmap::fault_check`). The environment variable TMAP_CHECK sets the
/// default.
enum { TMAP_CHECK_DEFAULT = 0, TMAP_CHECK_OFF = 1, TMAP_CHECK_SYNC = 2 };

/// Routes of tensors (`tmap::route`), and sets of them.
enum { TMAP_ROUTE_TENSOR_MAP = 0, TMAP_ROUTE_BULK = 1, TMAP_ROUTE_LDGSTS = 2, TMAP_ROUTE_PLAIN = 3 };
#define TMAP_ROUTE_BIT(route) (1u << (route))

/// Values of `tmap_call::policy`. The environment variable TMAP_POLICY sets the default.
enum { TMAP_POLICY_DEFAULT = 0, TMAP_POLICY_ENABLE = 1, TMAP_POLICY_DISABLE = 2, TMAP_POLICY_FORCE = 3 };

/// Values of `tmap_call::publish` (`tmap::publish`).
enum { TMAP_PUBLISH_STORES = 0, TMAP_PUBLISH_COPY_FENCE = 1 };

/// Counts the bad and empty items of a batch. Aligned to 16 bytes.
typedef struct tmap_batch_header {
  uint32_t bad_count;
  uint32_t first_bad;  ///< 0xffffffff: none
  uint32_t empty_count;
  uint32_t reserved;
} tmap_batch_header;

/// A window of a group of GPUs: `tmap::peer_memory` (peer.h). 0 names none. Any number of threads
/// may use a window.
typedef struct tmap_peer_memory {
  uint64_t value;
} tmap_peer_memory;

/// Addresses that an item may reach, aligned to 16 bytes.
typedef struct tmap_address_window {
  uint64_t begin;
  uint64_t end;
} tmap_address_window;

/// How a call runs and what it reports. Each call that takes one also takes null, which stands for
/// zeros. A member that a call has no use for must be 0: its comment names the calls that use it.
///
/// Pointers are memory of the caller where the call runs: device memory, or memory of this process
/// on the host. Each may be null. `statuses` holds a word for each item: `uint64_t` for maps,
/// `uint32_t` for tensors, rows and groups. A word is 0 for a good item. An empty item has the
/// highest bit alone. A bad one has a bit for each fault, which `tmap_item_text` words.
typedef struct tmap_call {
  uint32_t struct_size;
  uint32_t engine;     ///< TMAP_ON_*; TMAP_ON_HOST for ragged operations only
  tmap_stream stream;  ///< of a call on a stream; null is the default stream
  void* workspace;     ///< of a call on a stream, aligned to 256 bytes; functions return how much a call needs
  uint64_t workspace_bytes;
  void* statuses;  ///< not for services, whose batches have statuses
  tmap_batch_header* header;
  const tmap_address_window* windows;  ///< maps and tensors; with any, an item that reaches outside each of them is bad
  uint32_t window_count;
  uint32_t check;    ///< TMAP_CHECK_*
  uint32_t policy;   ///< ragged operations: TMAP_POLICY_*
  uint32_t allowed;  ///< ragged operations: TMAP_ROUTE_BIT(...) | ..., where 0 stands for all routes
  uint32_t trusted;  ///< maps: 0 or 1
  uint32_t publish;  ///< maps: TMAP_PUBLISH_*
  uint32_t plan;     ///< grouped products: 0 chooses one by the problem's sizes; else 1 + the plan's number
  uint32_t blocks;   ///< grouped products: the most that compute tiles, at least 2; 0: one for each multiprocessor
  const uint32_t* owners;  ///< maps: null, or the rank that each tensor lies on, in device memory (`tmap::map_owners`)
  tmap_peer_memory owner_window;  ///< with `owners`: the window that the tensors lie in
} tmap_call;

#ifdef __cplusplus
}
#endif

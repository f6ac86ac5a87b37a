// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>
#include <tmap/peer_group.hpp>

#include <cstddef>
#include <cstdint>

#include "lib/peer/peer_calls.hpp"

// The part of NCCL that groups use. tmap opens the library at run time, so that it neither links
// NCCL nor needs its headers.

namespace tmap::peer {

/// Mirrors ncclResult_t.
enum class nccl_result : int {
  success = 0,
  unhandled_cuda_error = 1,
  invalid_argument = 4,
  invalid_usage = 5,
  remote_error = 6,
  in_progress = 7,
};

/// Mirrors the beginning of ncclConfig_t as of NCCL 2.14. NCCL reads no more of it than `size` and
/// `version` allow, and takes its own values for the rest.
struct nccl_config {
  std::size_t size{offsetof(nccl_config, blocking) + sizeof blocking};
  unsigned int magic{0xcafebeef};
  unsigned int version{21400};
  int blocking{};
};

/// Mirrors ncclWindow_t.
using nccl_window_handle = void*;

struct nccl_functions {
  int version{};  ///< 22809 for 2.28.9
  nccl_result (*new_id)(peer_id* id){};
  nccl_result (*init_rank)(ncclComm** made, int ranks, peer_id id, int rank, nccl_config* config){};
  nccl_result (*abort)(ncclComm* communicator){};
  nccl_result (*state)(ncclComm* communicator, nccl_result* state){};
  nccl_result (*count)(const ncclComm* communicator, int* ranks){};
  nccl_result (*rank)(const ncclComm* communicator, int* rank){};
  nccl_result (*device)(const ncclComm* communicator, int* device){};
  nccl_result (*all_gather)(const void* from, void* to, std::size_t count, int type, ncclComm* communicator,
                            cudaStream_t stream){};
  nccl_result (*all_to_all)(const void* from, void* to, std::size_t count, int type, ncclComm* communicator,
                            cudaStream_t stream){};
  nccl_result (*allocate)(void** data, std::size_t bytes){};
  nccl_result (*free)(void* data){};
  nccl_result (*open_window)(ncclComm* communicator, void* data, std::size_t bytes, nccl_window_handle* window,
                             int flags){};
  nccl_result (*close_window)(ncclComm* communicator, nccl_window_handle window){};
  /// Null before NCCL 2.29.2.
  nccl_result (*window_address)(nccl_window_handle window, std::size_t offset, int rank, void** address){};
};

/// Finds NCCL: the copy that the process has loaded, such as PyTorch's, else libnccl.so.2 of the
/// loader's path. Fails with `nccl_missing`, with `nccl_version` if that version does not know the
/// addresses of windows, and with `multicast_not_off`.
[[nodiscard]] result<nccl_functions> find_nccl(const peer_calls& calls);

/// Returns the outcome of a call of NCCL that is not in progress.
[[nodiscard]] result<void> outcome_of(nccl_result code);

}  // namespace tmap::peer

#define TMAP_TRY_NCCL(call)                                                                        \
  do {                                                                                             \
    if (const ::tmap::result<void> tmap_outcome = ::tmap::peer::outcome_of(call); !tmap_outcome) { \
      return ::tmap::failure{tmap_outcome.error()};                                                \
    }                                                                                              \
  } while (false)

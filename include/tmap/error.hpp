// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/bad_items.hpp>
#include <tmap/config.hpp>
#include <tmap/rule.hpp>
#include <tmap/slot_counts.hpp>

#include <cuda/std/expected>

#include <cstdint>
#include <string>

namespace tmap {

/// What went wrong. Every function that can fail answers with a `result`; none throws or aborts.
enum class status : std::uint8_t {
  rule_broken = 1,             ///< the spec breaks a rule of the table: `rules`, `first`
  invalid_argument,            ///< an argument outside the function's contract
  no_driver,                   ///< no CUDA driver on this machine
  no_device,                   ///< a driver, but no GPU
  compute_capability_too_low,  ///< the GPU has no copy engine (needs 9.0)
  driver_too_old,              ///< the driver lacks this function's version
  symbol_missing,              ///< the driver does not know the function
  driver_refused,              ///< the driver refused a spec that breaks none of our rules
  no_context,                  ///< the calling thread has no CUDA context
  earlier_asynchronous_error,  ///< the context was already broken by an earlier kernel
  no_kernel_image,             ///< tmap was not built for this GPU
  out_of_memory,               ///< an allocation failed
  cuda_failure,                ///< any other CUDA error: `cuda_code`
  not_a_tensor_map,            ///< the 128 bytes are no map this codec knows
  illegal_instruction,         ///< simulator: the copy engine would raise this
  illegal_memory_access,       ///< simulator: the copy engine would raise this
  misaligned_address,          ///< simulator: the copy engine would raise this
  unsupported,                 ///< a combination that is documented but not modelled
  pool_exhausted,              ///< not enough free slots: `found` were asked for, `slots` says where all are
  service_dead,                ///< the context was lost or broken: make a new service in a new context
  forked,            ///< the service was made before this process was forked off: CUDA works in the parent only
  wrong_context,     ///< another context is current than the one the service was made in
  self_test_failed,  ///< a map made by the kernel differs from the driver's: `found` is the case
  /// a captured call was given an array in pageable memory: `argument` says on which side, `found` is its address
  pageable_memory_in_capture,
  bad_items,  ///< a checked call (`fault_check`) met bad items, `found` of `allowed`; `bad` is one of them
};

/// One failure, as plain data; the text is made on demand.
struct error {
  status code{status::invalid_argument};
  rule_set rules{};          ///< every rule known to be broken (may be empty)
  rule first{};              ///< the first broken rule; meaningful when `rules` is not empty
  std::int32_t axis{-1};     ///< axis of the first broken rule, or -1
  std::uint64_t found{};     ///< the value found
  std::uint64_t allowed{};   ///< the bound, multiple or count allowed
  std::int32_t cuda_code{};  ///< CUresult or cudaError_t behind the failure, 0 when there is none
  slot_counts slots{};       ///< of the pool, with `pool_exhausted`
  const char* argument{};    ///< the argument at fault, a literal; null where the status or a rule says enough
  bad_item bad{};            ///< with `bad_items`
};

template <class T>
using result = cuda::std::expected<T, error>;

using failure = cuda::std::unexpected<error>;

/// One sentence a person can act on: what failed, where, found, allowed. Empty for want of memory only.
TMAP_API std::string to_string(const error& e);

/// The enumerator's name, for logs and JSON.
TMAP_API const char* name(status code);

}  // namespace tmap

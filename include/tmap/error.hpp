// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/bad_items.hpp>
#include <tmap/config.hpp>
#include <tmap/rule.hpp>
#include <tmap/slot_counts.hpp>

#include <cuda/std/expected>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tmap {

/// The kinds of failure. Every function that can fail returns a `result`; none throws or aborts.
enum class status : std::uint8_t {
  rule_broken = 1,             ///< the spec breaks a rule of the table: `rules`, `first`
  invalid_argument,            ///< an argument outside the function's contract: `argument`, `reason`
  no_driver,                   ///< no CUDA driver on this machine
  no_device,                   ///< a driver, but no GPU
  compute_capability_too_low,  ///< the GPU has no copy engine (needs 9.0)
  driver_too_old,              ///< the driver lacks this function's version
  symbol_missing,              ///< the driver does not know the function
  driver_refused,              ///< the driver refused a spec that breaks no rule of the table
  no_context,                  ///< the calling thread has no CUDA context
  earlier_asynchronous_error,  ///< the context was already broken by an earlier kernel
  no_kernel_image,             ///< tmap was not built for this GPU, or what was called cannot be
  out_of_memory,               ///< an allocation failed
  cuda_failure,                ///< any other CUDA error: `cuda_code`
  not_a_tensor_map,            ///< the 128 bytes are no map this codec knows
  illegal_instruction,         ///< simulator: the copy engine would raise this
  illegal_memory_access,       ///< simulator: the copy engine would raise this
  misaligned_address,          ///< simulator: the copy engine would raise this
  unsupported,                 ///< a combination that is documented, but not modelled, or not for this GPU
  pool_exhausted,              ///< not enough free slots: `found` were asked for, `slots` counts all of them
  service_dead,                ///< the context was lost or broken: make a new service in a new context
  forked,            ///< the service was made before this process was forked off: CUDA works in the parent only
  wrong_context,     ///< another context is current than the one the service was made in
  self_test_failed,  ///< a map made by the kernel differs from the driver's: `found` is the case; or a peer's bytes
  /// a captured call was given an array in pageable memory: `argument` names its side, `found` is
  /// its address
  pageable_memory_in_capture,
  bad_items,          ///< a checked call (`fault_check`) met bad items, `found` of `allowed`; `bad` is one of them
  no_peer_access,     ///< a GPU of a group cannot reach the memory of another one
  nccl_missing,       ///< libnccl.so.2 cannot be loaded
  nccl_version,       ///< NCCL has the version `found`, and a group needs `allowed`
  nccl_failure,       ///< a call of NCCL failed: `found` is its ncclResult_t
  multicast_not_off,  ///< the environment does not set NCCL_NVLS_ENABLE to 0
  windows_differ,     ///< two ranks asked for windows of different sizes
  peer_timeout,       ///< a rank of the group did not come before the deadline
  group_broken,       ///< an earlier call of the group failed, on this rank or on another one
  peer_lost,          ///< the process of a peer ended, or its GPU failed
  peer_mismatch,      ///< the ranks of a group made different calls: `found` is the rank
  peer_overflow,      ///< more rows would come to rank `found` than it has room for
};

/// The name of an argument as its caller wrote it, with members after dots: "count",
/// "source.tensors.global_dim[3]". A plain value that holds at most `capacity` characters and cuts
/// longer text.
class argument_name {
 public:
  static constexpr std::size_t capacity = 63;

  constexpr argument_name() = default;
  constexpr argument_name(std::string_view text) { append(text); }                      // NOLINT: a text is a name
  constexpr argument_name(const char* text) : argument_name(std::string_view{text}) {}  // NOLINT

  constexpr bool empty() const { return text_[0] == '\0'; }
  constexpr const char* c_str() const { return text_; }
  constexpr std::string_view view() const { return text_; }

  constexpr void append(std::string_view more) {
    std::size_t end = view().size();
    for (const char letter : more) {
      if (end < capacity) text_[end++] = letter;
    }
  }

  friend constexpr bool operator==(const argument_name& a, const argument_name& b) { return a.view() == b.view(); }
  friend constexpr bool operator!=(const argument_name& a, const argument_name& b) { return !(a == b); }

 private:
  char text_[capacity + 1]{};
};

/// A failure as plain data. Its text is made on demand.
struct error {
  status code{status::invalid_argument};
  rule_set rules{};          ///< every rule known to be broken (may be empty)
  rule first{};              ///< the first broken rule; meaningful when `rules` is not empty
  std::int32_t axis{-1};     ///< axis of the first broken rule, or -1
  std::uint64_t found{};     ///< the value found
  std::uint64_t allowed{};   ///< the bound, multiple or count allowed
  std::int32_t cuda_code{};  ///< the CUresult or cudaError_t that caused the failure, or 0
  slot_counts slots{};       ///< of the pool, with `pool_exhausted`
  argument_name argument{};  ///< the argument at fault; empty if the status or a rule is enough
  /// A literal that follows the argument's name: "is {found}; it must be ...". `{found}` and
  /// `{allowed}` stand for those members. Null if the status is enough.
  const char* reason{};
  bad_item bad{};  ///< with `bad_items`
};

template <class T>
using result = cuda::std::expected<T, error>;

using failure = cuda::std::unexpected<error>;

/// Returns one sentence that a person can act on: what failed, where, found, allowed. Empty only if
/// memory runs out.
TMAP_API std::string to_string(const error& e);

/// Returns the enumerator's name, for logs and JSON.
TMAP_API const char* name(status code);

}  // namespace tmap

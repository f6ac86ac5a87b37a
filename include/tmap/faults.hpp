// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/bad_items.hpp>
#include <tmap/config.hpp>
#include <tmap/error.hpp>
#include <tmap/grouped_gemm.hpp>
#include <tmap/map_status.hpp>
#include <tmap/ragged.hpp>

#include <cstdint>
#include <string>

namespace tmap {

// Bad maps, tensors, rows and groups are passed over on the device, and the call that met them has
// long returned. They are counted all the same, in every CUDA context, always: this is where to ask
// whether there were any.

/// Bad items of all calls of a context since the counts were last reset, as far as their kernels
/// have run. The replays of a graph count, by the number of the call that was captured.
struct fault_report {
  std::uint64_t maps{};     ///< refused by the encoder (`map_status::is_bad`)
  std::uint64_t tensors{};  ///< `ragged::tensor_status::is_bad`
  std::uint64_t rows{};     ///< row numbers of `gather_rows` and `scatter_rows` that do not exist
  std::uint64_t groups{};   ///< `gemm::group_status::is_bad`
  /// The first that any kernel met. Items are judged in parallel: others of the same call may have
  /// lower indices. `batch_call::none` where there is none, or while it is being written.
  bad_item first{};

  std::uint64_t all() const { return maps + tensors + rows + groups; }
};

// Of the calling thread's current context. Counted are the calls of `batch_call`. Not counted:
// kernels of one's own that encode (unless their `map_guard` has a sink), and operations on the
// host.
//
// Both wait for two copies of 64 bytes at most on a stream of their own, and for no other work:
// what is still running is not in the report. They may be called while streams are captured, in any
// mode. Thread-safe. They fail with `no_driver`, `no_device`, `no_context`, `no_kernel_image`,
// `out_of_memory`, `earlier_asynchronous_error`, `cuda_failure`.

/// The counts.
[[nodiscard]] TMAP_API result<fault_report> faults();

/// The same, and sets all of it to zero. Kernels may run meanwhile: each bad item is counted in
/// this report or in a later one, and in one only. The first of the next report may be one that
/// this report counted. A call that fails has lost nothing.
[[nodiscard]] TMAP_API result<fault_report> reset_faults();

/// "3 bad maps, 1 bad tensor; the first: ragged::copy (call 17): tensor 3: stride (...)", or "no
/// bad items".
TMAP_API std::string to_string(const fault_report& report);
/// "ragged::copy (call 17): tensor 3: stride (...)"; "none" of no item.
TMAP_API std::string to_string(const bad_item& item);

/// As it is called in C++: "ragged::copy".
TMAP_API const char* name(batch_call call);

// What became of one item, in words: "good", "empty", or each rule or fault with what it means.
TMAP_API std::string to_string(map_status status);
namespace ragged {
TMAP_API std::string to_string(tensor_status status);
}
namespace gemm {
TMAP_API std::string to_string(group_status status);
}

/// What TMAP_CHECK says: never `environment`. Read once in the process. Fails with
/// `invalid_argument` and names the variable where it is neither `off` nor `sync`, as does then
/// each call that asks it.
[[nodiscard]] TMAP_API result<fault_check> check_from_environment();

}  // namespace tmap

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/bad_items.hpp>
#include <tmap/config.hpp>
#include <tmap/error.hpp>
#include <tmap/grouped_gemm.hpp>
#include <tmap/map_status.hpp>
#include <tmap/moe.hpp>
#include <tmap/ragged.hpp>

#include <cstdint>
#include <string>

namespace tmap {

/// @file
/// A call skips bad maps, tensors, rows and groups on the device, after the call has returned to
/// the host. They are always counted, for each CUDA context. Ask here whether there were any.

/// The bad items of all calls of a context since the last reset, as far as their kernels have run.
/// Replays of a graph count too, under the number of the captured call.
struct fault_report {
  std::uint64_t maps{};     ///< refused by the encoder (`map_status::is_bad`)
  std::uint64_t tensors{};  ///< `ragged::tensor_status::is_bad`
  std::uint64_t rows{};     ///< row numbers of `gather_rows` and `scatter_rows` that do not exist, and
                            ///< `moe::choice_status::is_bad`
  std::uint64_t groups{};   ///< `gemm::group_status::is_bad`
  /// The first bad item that a kernel met. Items are judged in parallel, so other bad items of the
  /// same call may have lower indices. `batch_call::none` if there is none, or while it is being
  /// written.
  bad_item first{};

  std::uint64_t all() const { return maps + tensors + rows + groups; }
};

/// @file
/// `faults` and `reset_faults` report on the calling thread's current context. They count the calls
/// of `batch_call`. They do not count kernels of your own that encode (unless their `map_guard` has
/// a sink), nor operations on the host.
///
/// Both wait for at most three copies of 64 bytes on a stream of their own. They wait for no other
/// work, so work that is still running is not in the report. They may be called while streams are
/// captured, in any mode. Thread-safe. They fail with `no_driver`, `no_device`, `no_context`,
/// `no_kernel_image`, `out_of_memory`, `earlier_asynchronous_error`, `cuda_failure`.

/// Returns the counts.
[[nodiscard]] TMAP_API result<fault_report> faults();

/// Returns the counts and sets them to zero. Kernels may run at the same time: each bad item is
/// counted in exactly one report, this one or a later one. The first item of the next report may be
/// one that this report counted. A call that fails loses no count.
[[nodiscard]] TMAP_API result<fault_report> reset_faults();

/// Returns "3 bad maps, 1 bad tensor; the first: ragged::copy (call 17): tensor 3: stride (...)",
/// or "no bad items".
TMAP_API std::string to_string(const fault_report& report);
/// Returns "ragged::copy (call 17): tensor 3: stride (...)"; "none" if there is no item.
TMAP_API std::string to_string(const bad_item& item);

/// Returns the call's name in C++: "ragged::copy".
TMAP_API const char* name(batch_call call);

/// Describes the status of one item: "good", "empty", or each rule or fault with its meaning.
TMAP_API std::string to_string(map_status status);
namespace ragged {
TMAP_API std::string to_string(tensor_status status);
}
namespace gemm {
TMAP_API std::string to_string(group_status status);
}
namespace moe {
TMAP_API std::string to_string(choice_status status);
}

/// Returns the value of TMAP_CHECK, never `environment`. The process reads the variable once.
/// @fails `invalid_argument`, naming the variable, if it is neither `off` nor `sync`; so does each
/// call that depends on it.
[[nodiscard]] TMAP_API result<fault_check> check_from_environment();

}  // namespace tmap

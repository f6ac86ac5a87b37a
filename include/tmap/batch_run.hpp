// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/bad_items.hpp>
#include <tmap/item_status.hpp>

#include <cuda/std/span>
#include <cuda/stream_ref>

#include <cstdint>
#include <variant>

namespace tmap {

/// Device memory of the caller that a call works in, aligned to 256 bytes. It is in use until the
/// call's work has run, so calls that run at the same time need one each.
struct workspace {
  void* memory{};
  std::uint64_t bytes{};
};

/// The call enqueues its work on `stream` and returns. It may be captured in a graph.
struct on_stream {
  cuda::stream_ref stream;
  workspace scratch{};
};

/// The call does its work before it returns, on host memory. Every address it is given is an
/// address of this process.
struct on_host {};

/// The place where a call runs that can run in both.
using engine = std::variant<on_stream, on_host>;

/// How a call treats its batch: the same for maps, tensors, rows and groups. Pointers are the
/// caller's memory in the place where the call runs: device memory, or host memory with `on_host`.
/// Each may be null. Until the work has run in stream order, do not change `windows` and do not
/// read `statuses` or `header`.
///
/// `Choices` holds the options that only this kind of call has. `Where` is `on_stream` or `engine`.
template <class Fault, class Choices, class Where>
struct batch_run {
  Where where;
  item_status<Fault>* statuses{};  ///< one for each item
  batch_header* header{};          ///< counts bad and empty items; needs no initial value
  /// If there are any, an item must lie inside one of them, or it is bad. Each item is compared
  /// with each window in turn, so give only a few.
  cuda::std::span<const address_window> windows{};
  fault_check check{};  ///< whether the call waits, and fails with `bad_items` where an item is bad
  Choices choices{};
};

}  // namespace tmap

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/bad_items.hpp>
#include <tmap/item_status.hpp>

#include <cuda/std/span>
#include <cuda/stream_ref>

#include <cstdint>
#include <variant>

namespace tmap {

/// Memory of the caller that a call works in, aligned to 256 bytes and busy until the call's work
/// is done: calls that run at the same time need one each. Device memory.
struct workspace {
  void* memory{};
  std::uint64_t bytes{};
};

/// The call enqueues its work on `stream` and returns. It may be captured in a graph.
struct on_stream {
  cuda::stream_ref stream;
  workspace scratch{};
};

/// The call does its work before it returns, on memory of the host: every address it is given is
/// one of this process.
struct on_host {};

/// Where a call that can do both runs.
using engine = std::variant<on_stream, on_host>;

/// How a call treats its batch: the same for maps, tensors, rows and groups. Pointers are memory of
/// the caller where the call runs (device memory, or the host's `on_host`), unchanged (`windows`)
/// or unread (`statuses`, `header`) until the work has run in stream order; each may be null.
///
/// `Choices` is what the kind of call lets its caller choose beside that, `Where` is `on_stream` or
/// `engine`.
template <class Fault, class Choices, class Where>
struct batch_run {
  Where where;
  item_status<Fault>* statuses{};  ///< one for each item
  batch_header* header{};          ///< bad and empty items, needs no initial value
  /// With any, an item that reaches outside each of them is bad. Every item looks through them in
  /// turn: meant for a few.
  cuda::std::span<const address_window> windows{};
  fault_check check{};  ///< whether the call waits, and fails with `bad_items` where an item is bad
  Choices choices{};
};

}  // namespace tmap

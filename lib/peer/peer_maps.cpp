// SPDX-License-Identifier: Apache-2.0
#include <tmap/detail/spec_arithmetic.hpp>
#include <tmap/peer_maps.hpp>

#include "lib/peer/call_checks.hpp"
#include "lib/support/arguments.hpp"

namespace tmap {

namespace {

/// Returns the distance from one rank's window to the next rank's, or 0 if there is not one.
std::uint64_t distance_of(const peer_memory_ref& ref) {
  if (ref.ranks == 1) return peer_header_bytes;  // no step is ever taken
  const std::uint64_t distance = ref.windows[1] - ref.windows[0];
  for (std::uint32_t i = 1; i < ref.ranks; ++i) {
    if (ref.windows[i] - ref.windows[i - 1] != distance) return 0;
  }
  return ref.windows[1] > ref.windows[0] ? distance : 0;
}

void check_place(support::arguments& given, const tensor_spec& local, const peer_memory_ref& ref) {
  const std::uint64_t offset = local.global_address - ref.address(ref.rank);
  const std::uint64_t reach = detail::saturate(detail::reach_bytes(local, local.rank));
  if (offset <= ref.bytes && reach <= ref.bytes - offset) return;
  given.refuse("local", "does not lie in the window of this rank: it has {found} bytes, and the window {allowed}",
               reach, ref.bytes);
}

}  // namespace

result<tensor_spec> all_ranks_spec(const tensor_spec& local, const peer_memory& window) {
  constexpr support::argument name{"local"};
  support::arguments given;
  peer::check_window(given, window);
  given.range(local.rank, 1, max_rank - 1, name.member("rank"));
  if (given) check_place(given, local, window.ref());
  const peer_memory_ref& ref = window.ref();
  const std::uint64_t distance = given ? distance_of(ref) : 0;
  if (given && (distance == 0 || distance % 16 != 0 || distance >= detail::global_stride_limit)) {
    given.refuse("window", "does not have the windows of all ranks at one distance that a map can have");
  }
  if (!given) return failure{given.complaint()};
  tensor_spec all = local;
  all.rank = local.rank + 1;
  all.global_address = ref.address(0, local.global_address - ref.address(ref.rank));
  all.global_dim[local.rank] = ref.ranks;
  all.global_stride_bytes[local.rank - 1] = distance;
  all.box_dim[local.rank] = 1;
  all.element_stride[local.rank] = 1;
  return all;
}

}  // namespace tmap

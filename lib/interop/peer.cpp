// SPDX-License-Identifier: Apache-2.0
#include <tmap/c/peer.h>
#include <tmap/peer_group.hpp>

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>
#include <vector>

#include "lib/interop/convert.hpp"
#include "lib/interop/inputs.hpp"
#include "lib/interop/objects.hpp"
#include "lib/interop/peer_arguments.hpp"

namespace tmap::interop {
namespace {

/// An array of one element for each rank.
template <class T>
struct rank_list {
  void check(arguments& all) const {
    all.range(ranks, 1, max_group_ranks, "ranks");
    all.pointer(elements, name);
  }
  T* value() const { return elements; }

  const char* name;
  T* elements;
  std::uint32_t ranks;
};
template <class T>
rank_list(const char*, T*, std::uint32_t) -> rank_list<T>;

template <class Make>
answer hand_out_group(tmap_peer_group& group, const Make& make) {
  return hand_out_made(peer_groups(), &group, [&](std::shared_ptr<held_group>& to) -> answer {
    auto held = std::make_shared<held_group>();
    result<peer_group> made = make();
    if (!made) return named(made.error());
    held->group.emplace(std::move(*made));
    to = std::move(held);
    return {};
  });
}

/// Hands out all groups or none.
answer hand_out_all(std::vector<peer_group>& made, tmap_peer_group* groups) {
  std::vector<tmap_peer_group> handles(made.size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    const answer handed = hand_out_group(handles[i], [&]() -> result<peer_group> { return std::move(made[i]); });
    if (handed.is_ok()) continue;
    while (i-- > 0) peer_groups().remove(handles[i].value);
    return handed;
  }
  std::copy(handles.begin(), handles.end(), groups);
  return {};
}

answer of_process(const std::int32_t* devices, const std::uint32_t& ranks, tmap_peer_group* groups) {
  const std::vector<int> all(devices, devices + ranks);
  result<std::vector<peer_group>> made = peer_group::of_process(all);
  return made ? hand_out_all(*made, groups) : named(made.error());
}

/// Calls `use(group)` while no other call uses the group.
template <class Use>
answer with_group(tmap_peer_group group, const Use& use) {
  const auto held = peer_groups().find(group.value);
  if (held == nullptr) return stale("group");
  const turn<held_group> mine{*held};
  if (!mine.is_granted()) return busy("group", TMAP_GROUP_BUSY);
  return use(*held->group);
}

/// Hands out the window that `make(group)` makes.
template <class Make>
answer hand_out_window(tmap_peer_group group, tmap_peer_memory& window, const Make& make) {
  return with_group(group, [&](peer_group& of) {
    return hand_out_made(peer_memories(), &window, [&](std::shared_ptr<const peer_memory>& to) -> answer {
      auto held = std::make_shared<peer_memory>();
      result<peer_memory> made = make(of);
      if (!made) return named(made.error());
      *held = std::move(*made);
      to = std::move(held);
      return {};
    });
  });
}

}  // namespace
}  // namespace tmap::interop

using namespace tmap::interop;

tmap_status tmap_peer_group_from_addresses(uint32_t rank, const uint64_t* windows, uint32_t ranks,
                                           uint64_t window_bytes, tmap_peer_group* group) {
  return run(
      __func__,
      [&](const uint64_t* at, tmap_peer_group& to) {
        const std::vector<tmap::device_address> all(at, at + ranks);
        return hand_out_group(to, [&] { return tmap::peer_group::from_addresses(rank, all, window_bytes); });
      },
      rank_list{"windows", windows, ranks}, output{"group", group});
}

tmap_status tmap_peer_group_of_process(const int32_t* devices, uint32_t ranks, tmap_peer_group* groups) {
  return run(
      __func__, [&](const int32_t* all, tmap_peer_group* to) { return of_process(all, ranks, to); },
      rank_list{"devices", devices, ranks}, rank_list{"groups", groups, ranks});
}

tmap_status tmap_peer_group_from_nccl(struct ncclComm* communicator, uint64_t patience_ms, tmap_peer_group* group) {
  const std::chrono::milliseconds patience = patience_of(patience_ms, tmap::peer_start{}.patience);
  return run(
      __func__,
      [&](tmap_peer_group& to) {
        return hand_out_group(to, [&] { return tmap::peer_group::from_nccl(communicator, patience); });
      },
      output{"group", group});
}

tmap_status tmap_peer_new_id(tmap_peer_id* id) {
  return ask(__func__, output{"id", id}, tmap::peer_group::new_id);
}

tmap_status tmap_peer_group_create(const tmap_peer_start* start, tmap_peer_group* group) {
  return run(
      __func__,
      [](const tmap::peer_start& how, tmap_peer_group& to) {
        return hand_out_group(to, [&] { return tmap::peer_group::create(how); });
      },
      input{"start", start}, output{"group", group});
}

tmap_status tmap_peer_group_query(tmap_peer_group group, uint32_t* rank, uint32_t* ranks) {
  return run(
      __func__,
      [&](uint32_t& to_rank, uint32_t& to_ranks) {
        return with_group(group, [&](const tmap::peer_group& of) -> answer {
          to_rank = of.rank();
          to_ranks = of.ranks();
          return {};
        });
      },
      output{"rank", rank}, output{"ranks", ranks});
}

tmap_status tmap_peer_group_check(tmap_peer_group group) {
  return call(__func__, [&] { return with_group(group, [](tmap::peer_group& of) { return named(of.check()); }); });
}

tmap_status tmap_peer_group_destroy(tmap_peer_group group) {
  return call(__func__, [&] { return peer_groups().remove(group.value) == nullptr ? stale("group") : answer{}; });
}

tmap_status tmap_peer_group_allocate(tmap_peer_group group, uint64_t bytes, tmap_peer_memory* window) {
  return run(
      __func__,
      [&](tmap_peer_memory& to) {
        return hand_out_window(group, to, [&](tmap::peer_group& of) { return of.allocate(bytes); });
      },
      output{"window", window});
}

tmap_status tmap_peer_group_allocate_local(tmap_peer_group group, uint64_t bytes, uint64_t pair_bytes,
                                           tmap_peer_memory* window) {
  return run(
      __func__,
      [&](tmap_peer_memory& to) {
        return hand_out_window(group, to, [&](tmap::peer_group& of) { return of.allocate_local(bytes, pair_bytes); });
      },
      output{"window", window});
}

tmap_status tmap_peer_memory_query(tmap_peer_memory window, tmap_peer_memory_ref* ref) {
  return run(
      __func__,
      [](const tmap::peer_memory& of, tmap_peer_memory_ref& to) -> answer {
        to = std::bit_cast<tmap_peer_memory_ref>(of.ref());
        return {};
      },
      window_of(window), output{"ref", ref});
}

tmap_status tmap_peer_memory_destroy(tmap_peer_memory window) {
  return call(__func__, [&] { return peer_memories().remove(window.value) == nullptr ? stale("window") : answer{}; });
}

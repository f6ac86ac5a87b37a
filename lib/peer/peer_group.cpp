// SPDX-License-Identifier: Apache-2.0
#include <tmap/peer_group.hpp>

#include <new>
#include <utility>

#include "lib/peer/access.hpp"
#include "lib/peer/communicator.hpp"
#include "lib/peer/given_addresses.hpp"
#include "lib/peer/id_file.hpp"
#include "lib/peer/make_group.hpp"
#include "lib/peer/nccl_windows.hpp"
#include "lib/peer/same_process.hpp"
#include "lib/support/arguments.hpp"

namespace tmap {

namespace peer {

peer_memory access::memory(window&& opened, std::uint64_t bytes, std::uint32_t rank, std::uint32_t ranks) {
  peer_memory made;
  made.owner_ = std::move(opened.owner);
  made.local_ = opened.local;
  for (std::uint32_t i = 0; i < ranks; ++i) made.ref_.windows[i] = opened.at[i];
  made.ref_.bytes = bytes;
  made.ref_.rank = rank;
  made.ref_.ranks = ranks;
  return made;
}

namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 40;
constexpr std::int64_t most_patience_ms = 24 * 60 * 60 * 1000;

failure without_memory() {
  return failure{error{status::out_of_memory}};
}

void check_patience(support::arguments& given, std::chrono::milliseconds patience, const support::argument& name) {
  given.range(static_cast<std::uint64_t>(patience.count()), 1, most_patience_ms, name);
}

result<peer_group> group_over(const result<std::shared_ptr<communicator>>& over) {
  if (!over) return failure{over.error()};
  const std::uint32_t rank = (*over)->rank();
  const std::uint32_t ranks = (*over)->ranks();
  return access::group(nccl_windows(*over), rank, ranks);
}

result<void> check_start(const peer_start& start) {
  support::arguments given;
  given.range(start.ranks, 1, max_group_ranks, "start.ranks");
  if (given) given.at_most(start.rank, start.ranks - 1, "start.rank");
  check_patience(given, start.patience, "start.patience");
  return given.outcome();
}

result<peer_id> id_from(const nccl_functions& nccl) {
  peer_id id;
  TMAP_TRY_NCCL(nccl.new_id(&id));
  return id;
}

/// Returns the group if the way to all its ranks and back works, or if they do not reach each
/// other.
result<peer_group> tested_group(result<peer_group>&& made, std::chrono::milliseconds patience,
                                const peer_calls& calls) {
  if (!made) return std::move(made);
  const result<peer_memory> window = made->allocate(1);
  if (!window && window.error().code == status::no_peer_access) return std::move(made);
  if (!window) return failure{window.error()};
  if (const result<void> tested = calls.test_window(*window, patience); !tested) return failure{tested.error()};
  return std::move(made);
}

/// Rank 0 makes the id and gives it to the others.
result<peer_id> share_id(const peer_start& start, const nccl_functions& nccl, const peer_calls& calls) {
  if (start.id_file.empty()) return start.id;
  if (start.rank != 0) return read_id(start, calls);
  const result<peer_id> id = id_from(nccl);
  if (!id) return id;
  if (const result<void> written = write_id(start, *id); !written) return failure{written.error()};
  return id;
}

}  // namespace

result<std::vector<peer_group>> group_of_process(const std::vector<int>& devices, const peer_calls& calls) noexcept
    try {
  support::arguments given;
  given.range(devices.size(), 1, max_group_ranks, "devices.size()");
  if (!given) return failure{given.complaint()};
  result<std::vector<std::shared_ptr<provider>>> made = same_process(devices, calls);
  if (!made) return failure{made.error()};
  const auto ranks = static_cast<std::uint32_t>(made->size());
  std::vector<peer_group> groups;
  for (std::uint32_t i = 0; i < ranks; ++i) groups.push_back(access::group(std::move((*made)[i]), i, ranks));
  return groups;
} catch (const std::bad_alloc&) {
  return without_memory();
}

result<peer_group> group_from_nccl(ncclComm* given_communicator, std::chrono::milliseconds patience,
                                   const peer_calls& calls) noexcept try {
  support::arguments given;
  given.pointer(given_communicator, 1, "communicator");
  check_patience(given, patience, "patience");
  if (!given) return failure{given.complaint()};
  const result<nccl_functions> nccl = find_nccl(calls);
  if (!nccl) return failure{nccl.error()};
  return group_over(communicator::adopt(given_communicator, patience, *nccl, calls));
} catch (const std::bad_alloc&) {
  return without_memory();
}

result<peer_id> new_id(const peer_calls& calls) {
  const result<nccl_functions> nccl = find_nccl(calls);
  return nccl ? id_from(*nccl) : failure{nccl.error()};
}

result<peer_group> create_group(const peer_start& start, const peer_calls& calls) noexcept try {
  if (const result<void> checked = check_start(start); !checked) return failure{checked.error()};
  const result<nccl_functions> nccl = find_nccl(calls);
  if (!nccl) return failure{nccl.error()};
  const result<peer_id> id = share_id(start, *nccl, calls);
  if (!id) return failure{id.error()};
  const result<std::shared_ptr<communicator>> made = communicator::make(start, *id, *nccl, calls);
  if (!start.id_file.empty() && start.rank == 0) remove_id(start);
  return start.self_test ? tested_group(group_over(made), start.patience, calls) : group_over(made);
} catch (const std::bad_alloc&) {
  return without_memory();
}

}  // namespace peer

peer_memory::peer_memory(peer_memory&& other) noexcept
    : owner_{std::move(other.owner_)},
      local_{std::exchange(other.local_, nullptr)},
      ref_{std::exchange(other.ref_, {})} {}
peer_memory& peer_memory::operator=(peer_memory&& other) noexcept {
  owner_ = std::move(other.owner_);
  local_ = std::exchange(other.local_, nullptr);
  ref_ = std::exchange(other.ref_, {});
  return *this;
}
peer_memory::~peer_memory() = default;

peer_group::peer_group(std::shared_ptr<peer::provider> provider, std::uint32_t rank, std::uint32_t ranks)
    : provider_{std::move(provider)}, rank_{rank}, ranks_{ranks} {}
peer_group::peer_group(peer_group&&) noexcept = default;
peer_group& peer_group::operator=(peer_group&&) noexcept = default;
peer_group::~peer_group() = default;

result<peer_group> peer_group::from_addresses(std::uint32_t rank, const std::vector<device_address>& windows,
                                              std::uint64_t window_bytes) try {
  support::arguments given;
  given.range(windows.size(), 1, max_group_ranks, "windows.size()");
  if (given) given.at_most(rank, windows.size() - 1, "rank");
  if (!given) return failure{given.complaint()};
  result<std::shared_ptr<peer::provider>> made = peer::given_addresses(windows, window_bytes);
  if (!made) return failure{made.error()};
  return peer::access::group(std::move(*made), rank, static_cast<std::uint32_t>(windows.size()));
} catch (const std::bad_alloc&) {
  return peer::without_memory();
}

result<std::vector<peer_group>> peer_group::of_process(const std::vector<int>& devices) {
  return peer::group_of_process(devices, peer::real_peer_calls());
}

result<peer_group> peer_group::from_nccl(ncclComm* communicator, std::chrono::milliseconds patience) {
  return peer::group_from_nccl(communicator, patience, peer::real_peer_calls());
}

result<peer_id> peer_group::new_id() {
  return peer::new_id(peer::real_peer_calls());
}

result<peer_group> peer_group::create(const peer_start& start) {
  return peer::create_group(start, peer::real_peer_calls());
}

result<peer_memory> peer_group::allocate(std::uint64_t bytes) try {
  support::arguments given;
  given.range(bytes, 1, peer::most_bytes, "bytes");
  if (!given) return failure{given.complaint()};
  if (const result<void> usable = check(); !usable) return failure{usable.error()};
  result<peer::window> opened = provider_->open(bytes);
  if (!opened) return failure{opened.error()};
  return peer::access::memory(std::move(*opened), bytes, rank_, ranks_);
} catch (const std::bad_alloc&) {
  return peer::without_memory();
}

result<peer_memory> peer_group::allocate_local(std::uint64_t bytes, std::uint64_t pair_bytes) try {
  support::arguments given;
  given.range(bytes, 1, peer::most_bytes, "bytes");
  given.range(pair_bytes, 1, peer::most_bytes, "pair_bytes");
  if (!given) return failure{given.complaint()};
  if (const result<void> usable = check(); !usable) return failure{usable.error()};
  result<peer::window> opened = provider_->open_local(bytes, pair_bytes);
  if (!opened) return failure{opened.error()};
  return peer::access::memory(std::move(*opened), bytes, rank_, ranks_);
} catch (const std::bad_alloc&) {
  return peer::without_memory();
}

result<void> peer_group::check() {
  if (provider_ != nullptr) return provider_->check();
  return support::refused("peer_group", "was moved from; call the group that it was moved to");
}

}  // namespace tmap

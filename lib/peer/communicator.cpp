// SPDX-License-Identifier: Apache-2.0
#include "lib/peer/communicator.hpp"

#include "lib/support/arguments.hpp"
#include "lib/support/check.hpp"

namespace tmap::peer {
namespace {

constexpr int type_of_numbers = 5;  // ncclUint64

bool is_in_range(int ranks) {
  return ranks > 0 && static_cast<std::uint32_t>(ranks) <= max_group_ranks;
}

}  // namespace

communicator::communicator(const peer_calls& calls, const nccl_functions& nccl, std::chrono::milliseconds patience)
    : calls_{calls}, nccl_{nccl}, birthplace_{calls}, patience_{static_cast<std::uint64_t>(patience.count())} {}

/// Aborts a communicator of our own, which also ends its work on the stream: ncclCommDestroy waits
/// for the other ranks of the machine, and for ever if one of them has died. The work of a broken
/// communicator of the caller may still use the numbers, so they stay.
communicator::~communicator() {
  if (!birthplace_.may_end() || (is_broken_ && !is_own_)) return;
  const device_guard current{calls_, device_};
  if (is_own_ && communicator_ != nullptr) static_cast<void>(nccl_.abort(communicator_));
  cudaError_t code = numbers_ == nullptr ? cudaSuccess : calls_.free(numbers_);
  if (code != cudaSuccess) support::clear_last_error(code);
  code = stream_ == nullptr ? cudaSuccess : calls_.close_stream(stream_);
  if (code != cudaSuccess) support::clear_last_error(code);
}

result<std::shared_ptr<communicator>> communicator::adopt(ncclComm* given, std::chrono::milliseconds patience,
                                                          const nccl_functions& nccl, const peer_calls& calls) {
  auto made = std::make_shared<communicator>(calls, nccl, patience);
  made->communicator_ = given;
  result<void> ready = made->read_ranks();
  if (ready) ready = made->open_stream();
  if (!ready) return failure{ready.error()};
  return made;
}

result<std::shared_ptr<communicator>> communicator::make(const peer_start& start, const peer_id& id,
                                                         const nccl_functions& nccl, const peer_calls& calls) {
  auto made = std::make_shared<communicator>(calls, nccl, start.patience);
  TMAP_TRY_CUDA(calls.current_device(&made->device_));
  made->is_own_ = true;
  nccl_config config;
  const nccl_result code =
      nccl.init_rank(&made->communicator_, static_cast<int>(start.ranks), id, static_cast<int>(start.rank), &config);
  result<void> ready = made->settle(code);
  if (!ready) return made->break_for(ready.error());
  ready = made->read_ranks();
  if (ready) ready = made->open_stream();
  if (!ready) return failure{ready.error()};
  return made;
}

result<void> communicator::read_ranks() {
  int ranks = 0;
  int rank = 0;
  TMAP_TRY_NCCL(nccl_.count(communicator_, &ranks));
  TMAP_TRY_NCCL(nccl_.rank(communicator_, &rank));
  TMAP_TRY_NCCL(nccl_.device(communicator_, &device_));
  if (!is_in_range(ranks)) {
    return support::refused("communicator", "has {found} ranks; a group has at most {allowed}",
                            static_cast<std::uint64_t>(ranks), max_group_ranks);
  }
  ranks_ = static_cast<std::uint32_t>(ranks);
  rank_ = static_cast<std::uint32_t>(rank);
  return {};
}

result<void> communicator::open_stream() {
  const device_guard current{calls_, device_};
  TMAP_TRY_CUDA(current.code());
  TMAP_TRY_CUDA(calls_.open_stream(&stream_));
  void* numbers = nullptr;
  TMAP_TRY_CUDA(calls_.allocate(&numbers, sizeof(std::uint64_t) * (ranks_ + 1)));
  numbers_ = static_cast<std::uint64_t*>(numbers);
  return {};
}

failure communicator::break_for(const error& reason) {
  is_broken_ = true;
  return failure{reason};
}

failure communicator::out_of_patience() {
  return break_for({.code = status::peer_timeout,
                    .found = patience_,
                    .reason = "another rank of the group did not come within {found} ms"});
}

nccl_result communicator::state() const {
  nccl_result found = nccl_result::success;
  const nccl_result asked = nccl_.state(communicator_, &found);
  return asked == nccl_result::success ? found : asked;
}

result<void> communicator::check() {
  if (const result<void> is_ours = birthplace_.check(); !is_ours) return is_ours;
  if (is_broken_) return failure{error{status::group_broken}};
  const nccl_result now = state();
  if (now == nccl_result::in_progress) return {};
  const result<void> found = outcome_of(now);
  return found ? found : break_for(found.error());
}

/// A communicator that does not block reports success, too, for a registration that is in progress.
result<void> communicator::settle(nccl_result code) {
  const std::uint64_t begin = calls_.milliseconds();
  if (code == nccl_result::success) code = state();
  while (code == nccl_result::in_progress) {
    if (calls_.milliseconds() - begin > patience_) return out_of_patience();
    calls_.nap();
    code = state();
  }
  const result<void> found = outcome_of(code);
  return found ? found : break_for(found.error());
}

result<void> communicator::wait_for_stream() {
  const std::uint64_t begin = calls_.milliseconds();
  for (;;) {
    const cudaError_t code = calls_.query(stream_);
    if (code == cudaSuccess) return {};
    if (code != cudaErrorNotReady) return break_for(support::runtime_error(code));
    support::clear_last_error(code);
    if (const result<void> found = check(); !found) return found;
    if (calls_.milliseconds() - begin > patience_) return out_of_patience();
    calls_.nap();
  }
}

result<rank_values> communicator::fetch() {
  if (const result<void> done = wait_for_stream(); !done) return failure{done.error()};
  rank_values all{};
  TMAP_TRY_CUDA(calls_.copy(all.data(), numbers_, sizeof(std::uint64_t) * ranks_, stream_));
  TMAP_TRY_CUDA(calls_.wait(stream_));
  return all;
}

/// A rank that fails here does not know whether the others did, so it cannot go on with them.
result<rank_values> communicator::exchange(std::uint64_t mine) {
  result<rank_values> all = gather(mine);
  if (!all) return break_for(all.error());
  return all;
}

result<rank_values> communicator::gather(std::uint64_t mine) {
  TMAP_TRY_CUDA(calls_.copy(numbers_ + ranks_, &mine, sizeof mine, stream_));
  const nccl_result code = nccl_.all_gather(numbers_ + ranks_, numbers_, 1, type_of_numbers, communicator_, stream_);
  if (const result<void> settled = settle(code); !settled) return failure{settled.error()};
  return fetch();
}

result<void> communicator::all_to_all(const std::uint64_t* from, std::uint64_t* to, std::uint64_t count,
                                      cudaStream_t stream) {
  return settle(nccl_.all_to_all(from, to, count, type_of_numbers, communicator_, stream));
}

result<rank_values> communicator::ask(nccl_window_handle window) {
  TMAP_TRY_CUDA(calls_.ask_window(window, ranks_, numbers_, stream_));
  return fetch();
}

}  // namespace tmap::peer

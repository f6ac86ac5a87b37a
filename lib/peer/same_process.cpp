// SPDX-License-Identifier: Apache-2.0
#include "lib/peer/same_process.hpp"

#include <list>
#include <mutex>
#include <utility>

#include "lib/support/arguments.hpp"
#include "lib/support/check.hpp"

namespace tmap::peer {
namespace {

/// The memory of one window on every GPU.
class device_windows {
 public:
  device_windows(const peer_calls& calls, const std::vector<int>& devices)
      : calls_{calls}, birthplace_{calls}, devices_{devices} {}
  device_windows(const device_windows&) = delete;
  device_windows& operator=(const device_windows&) = delete;

  ~device_windows() {
    if (!birthplace_.may_end()) return;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      if (memory_[i] == nullptr) continue;
      const device_guard current{calls_, devices_[i]};
      const cudaError_t code = current.code() == cudaSuccess ? calls_.free(memory_[i]) : current.code();
      if (code != cudaSuccess) support::clear_last_error(code);
    }
  }

  result<void> allocate(std::size_t bytes) {
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const device_guard current{calls_, devices_[i]};
      TMAP_TRY_CUDA(current.code());
      TMAP_TRY_CUDA(calls_.allocate(&memory_[i], bytes));
      if (const result<void> cleared = clear(calls_, memory_[i], peer_header_bytes); !cleared) return cleared;
    }
    return {};
  }

  addresses at() const {
    addresses all{};
    for (std::size_t i = 0; i < devices_.size(); ++i) all[i] = memory_[i];
    return all;
  }

 private:
  const peer_calls& calls_;
  const birthplace birthplace_;
  const std::vector<int> devices_;
  std::array<void*, max_group_ranks> memory_{};
};

/// A window that one rank has made and another one has not taken yet.
struct waiting_window {
  std::uint64_t bytes;
  std::shared_ptr<device_windows> memory;
};

/// The windows of all ranks. The first rank that asks for its n-th window makes it for all.
/// Thread-safe.
class shared_windows {
 public:
  shared_windows(const peer_calls& calls, const std::vector<int>& devices)
      : calls_{calls}, birthplace_{calls}, devices_{devices}, waiting_(devices.size()), left_(devices.size()) {}

  result<void> check() const { return birthplace_.check(); }

  result<window> open(std::uint32_t rank, std::uint64_t bytes) {
    const std::lock_guard lock{mutex_};
    if (waiting_[rank].empty()) return make(rank, bytes);
    const waiting_window& first = waiting_[rank].front();
    if (first.bytes != bytes) return differs(bytes, first.bytes);
    window made{first.memory->at(), first.memory};
    waiting_[rank].pop_front();
    return made;
  }

  /// Lets go of windows that this rank will never take.
  void leave(std::uint32_t rank) {
    std::list<waiting_window> never_taken;
    const std::lock_guard lock{mutex_};
    left_[rank] = true;
    never_taken.swap(waiting_[rank]);
  }

 private:
  static failure differs(std::uint64_t found, std::uint64_t allowed) {
    return failure{error{.code = status::windows_differ,
                         .found = found,
                         .allowed = allowed,
                         .argument = "bytes",
                         .reason = "is {found}; another rank of the group asked for {allowed}"}};
  }

  result<window> make(std::uint32_t rank, std::uint64_t bytes) {
    const auto memory = std::make_shared<device_windows>(calls_, devices_);
    std::vector<std::list<waiting_window>> others(devices_.size());
    for (std::uint32_t i = 0; i < others.size(); ++i) {
      if (i != rank && !left_[i]) others[i].push_back({bytes, memory});
    }
    if (const result<void> made = memory->allocate(window_bytes(bytes)); !made) return failure{made.error()};
    for (std::uint32_t i = 0; i < others.size(); ++i) waiting_[i].splice(waiting_[i].end(), others[i]);
    return window{memory->at(), memory};
  }

  const peer_calls& calls_;
  const birthplace birthplace_;
  const std::vector<int> devices_;
  std::mutex mutex_;
  std::vector<std::list<waiting_window>> waiting_;
  std::vector<bool> left_;
};

class process_rank final : public provider {
 public:
  process_rank(std::shared_ptr<shared_windows> windows, std::uint32_t rank)
      : windows_{std::move(windows)}, rank_{rank} {}
  ~process_rank() override { windows_->leave(rank_); }

  result<void> check() override { return windows_->check(); }
  result<window> open(std::uint64_t bytes) override { return windows_->open(rank_, bytes); }

 private:
  const std::shared_ptr<shared_windows> windows_;
  const std::uint32_t rank_;
};

result<void> check_devices(const std::vector<int>& devices, const peer_calls& calls) {
  int count = 0;
  TMAP_TRY_CUDA(calls.device_count(&count));
  support::arguments given;
  const support::argument list{"devices"};
  for (std::uint32_t i = 0; i < devices.size(); ++i) {
    const auto device = static_cast<std::uint64_t>(static_cast<std::int64_t>(devices[i]));
    if (devices[i] < 0 || devices[i] >= count) {
      given.refuse(list[i], "is {found}; this process sees {allowed} GPUs", device, static_cast<std::uint64_t>(count));
    }
    for (std::uint32_t j = 0; j < i; ++j) {
      if (devices[i] == devices[j]) given.refuse(list[i], "is {found}, as an earlier rank's", device);
    }
  }
  return given.outcome();
}

result<void> open_to(int device, int peer, const peer_calls& calls) {
  int can = 0;
  TMAP_TRY_CUDA(calls.can_access_peer(&can, device, peer));
  if (can == 0) {
    return failure{error{.code = status::no_peer_access,
                         .found = static_cast<std::uint64_t>(device),
                         .allowed = static_cast<std::uint64_t>(peer),
                         .reason = "GPU {found} cannot reach the memory of GPU {allowed}"}};
  }
  const device_guard current{calls, device};
  TMAP_TRY_CUDA(current.code());
  const cudaError_t code = calls.enable_peer_access(peer);
  if (code != cudaErrorPeerAccessAlreadyEnabled) TMAP_TRY_CUDA(code);
  support::clear_last_error(cudaErrorPeerAccessAlreadyEnabled);
  return {};
}

result<void> open_all(const std::vector<int>& devices, const peer_calls& calls) {
  for (const int device : devices) {
    for (const int peer : devices) {
      if (device == peer) continue;
      if (const result<void> opened = open_to(device, peer, calls); !opened) return opened;
    }
  }
  return {};
}

}  // namespace

result<std::vector<std::shared_ptr<provider>>> same_process(const std::vector<int>& devices, const peer_calls& calls) {
  if (const result<void> checked = check_devices(devices, calls); !checked) return failure{checked.error()};
  if (const result<void> opened = open_all(devices, calls); !opened) return failure{opened.error()};
  const auto windows = std::make_shared<shared_windows>(calls, devices);
  std::vector<std::shared_ptr<provider>> ranks;
  for (std::uint32_t i = 0; i < devices.size(); ++i) ranks.push_back(std::make_shared<process_rank>(windows, i));
  return ranks;
}

}  // namespace tmap::peer

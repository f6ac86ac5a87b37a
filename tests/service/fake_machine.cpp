// SPDX-License-Identifier: Apache-2.0
// Counts and records what the fake machine does.
#include <atomic>
#include <iterator>

#include "service/fake_service.hpp"

namespace tmap::testing {

std::uint64_t fake_machine::new_context() {
  static std::atomic<std::uint64_t> last{100};
  return ++last;
}

cudaError_t fake_machine::enter() {
  const std::lock_guard lock{mutex_};
  ++made_;
  return countdown_ != 0 && --countdown_ == 0 ? code_ : cudaSuccess;
}

bool fake_machine::is_pinned(const void* data) {
  const std::lock_guard lock{mutex_};
  const auto next = host_blocks_.upper_bound(data);
  if (next == host_blocks_.begin()) return false;
  const auto& [block, bytes] = *std::prev(next);
  return static_cast<const char*>(data) < static_cast<const char*>(block) + bytes;
}

void fake_machine::fail_call(std::uint64_t n, cudaError_t code) {
  countdown_ = n;
  code_ = code;
}

bool fake_machine::is_clean() const {
  return host_blocks() == 0 && private_streams == 0 && streams.live_allocations() == 0 && streams.live_events() == 0;
}

}  // namespace tmap::testing

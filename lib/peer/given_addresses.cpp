// SPDX-License-Identifier: Apache-2.0
#include "lib/peer/given_addresses.hpp"

#include <algorithm>

#include "lib/support/arguments.hpp"

namespace tmap::peer {
namespace {

constexpr std::uint64_t alignment = 256;

class given_memory final : public provider {
 public:
  given_memory(const std::vector<device_address>& given, std::uint64_t bytes) : bytes_{bytes} {
    std::copy(given.begin(), given.end(), next_.begin());
  }

  result<window> open(std::uint64_t bytes) override {
    const std::uint64_t room = bytes_ < peer_header_bytes ? 0 : bytes_ - peer_header_bytes;
    support::arguments given;
    if (bytes > room) given.refuse("bytes", "is {found}; the memory has room for {allowed} more", bytes, room);
    if (!given) return failure{given.complaint()};
    window made{next_, std::make_shared<char>()};
    const std::uint64_t taken = std::min(bytes_, (peer_header_bytes + bytes + alignment - 1) / alignment * alignment);
    for (device_address& each : next_) each += taken;
    bytes_ -= taken;
    return made;
  }

  result<void> check() override { return {}; }

 private:
  addresses next_{};
  std::uint64_t bytes_;
};

bool overlap(std::uint64_t a, std::uint64_t b, std::uint64_t bytes) {
  return (a < b ? b - a : a - b) < bytes;
}

void check_window(support::arguments& given, const std::vector<device_address>& all, std::uint32_t i,
                  std::uint64_t bytes) {
  const support::argument list{"windows"};
  given.address(all[i], alignment, list[i]);
  if (given && all[i] + (bytes - 1) < all[i]) given.refuse(list[i], "is {found:#x}; the window wraps around", all[i]);
  for (std::uint32_t j = 0; j < i; ++j) {
    if (!overlap(all[i], all[j], bytes)) continue;
    given.refuse(list[i], "is {found:#x}, inside the window of another rank at {allowed:#x}", all[i], all[j]);
  }
}

}  // namespace

result<std::shared_ptr<provider>> given_addresses(const std::vector<device_address>& windows,
                                                  std::uint64_t window_bytes) {
  support::arguments given;
  given.at_least(window_bytes, peer_header_bytes + 1, "window_bytes");
  for (std::uint32_t i = 0; given && i < windows.size(); ++i) check_window(given, windows, i, window_bytes);
  if (!given) return failure{given.complaint()};
  return std::make_shared<given_memory>(windows, window_bytes);
}

}  // namespace tmap::peer

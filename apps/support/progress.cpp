// SPDX-License-Identifier: Apache-2.0
#include "apps/support/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace tmap::apps {

progress::progress(std::string label, std::uint64_t total, std::chrono::milliseconds patience)
    : label_{std::move(label)}, total_{total}, terminal_{isatty(STDERR_FILENO) == 1}, next_{clock::now() + patience} {}

progress::~progress() {
  if (drawn_) fmt::print(stderr, "\r\x1b[K");
}

void progress::advance(std::uint64_t steps) {
  done_ += steps;
  if (!terminal_ || clock::now() < next_) return;
  draw();
  drawn_ = true;
  next_ = clock::now() + std::chrono::milliseconds{100};
}

void progress::draw() const {
  constexpr std::uint64_t width = 40;
  const std::uint64_t filled = total_ == 0 ? width : width * done_ / total_;
  fmt::print(stderr, "\r{:<10} [{:#<{}}{:.<{}}] {:3}%", label_, "", filled, "", width - filled,
             total_ == 0 ? 100 : 100 * done_ / total_);
}

}  // namespace tmap::apps

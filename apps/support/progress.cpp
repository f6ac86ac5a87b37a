// SPDX-License-Identifier: Apache-2.0
#include "apps/support/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace tmap::apps {
namespace {

constexpr std::chrono::milliseconds redraw_interval{100};

}  // namespace

progress::progress(std::string label, std::uint64_t total, std::chrono::milliseconds patience)
    : label_{std::move(label)}, total_{total}, next_{begin_ + patience} {
  if (isatty(STDERR_FILENO) == 1) painter_ = std::thread{[this] { redraw_until_the_end(); }};
}

progress::~progress() {
  if (!painter_.joinable()) return;
  {
    const std::lock_guard lock{mutex_};
    ended_ = true;
  }
  end_.notify_one();
  painter_.join();
  if (drawn_) fmt::print(stderr, "\r\x1b[K");
}

void progress::advance(std::uint64_t steps) {
  if (!painter_.joinable()) return;
  const std::lock_guard lock{mutex_};
  done_ += steps;
  draw_when_due();
}

void progress::redraw_until_the_end() {
  std::unique_lock lock{mutex_};
  while (!end_.wait_until(lock, next_, [this] { return ended_; })) draw_when_due();
}

void progress::draw_when_due() {
  if (clock::now() < next_) return;
  draw();
  drawn_ = true;
  next_ = clock::now() + redraw_interval;
}

void progress::draw() const {
  if (total_ == 0) {
    const auto seconds = std::chrono::duration<double>{clock::now() - begin_}.count();
    fmt::print(stderr, "\r{:<10} {:.1f} s", label_, seconds);
    return;
  }
  constexpr std::uint64_t width = 40;
  const std::uint64_t filled = width * done_ / total_;
  fmt::print(stderr, "\r{:<10} [{:#<{}}{:.<{}}] {:3}%", label_, "", filled, "", width - filled, 100 * done_ / total_);
}

}  // namespace tmap::apps

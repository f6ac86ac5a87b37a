// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lib/simulator/ranks/model_link.hpp"

// Links with one fault each. A program that runs over one of them must fail in the model.

namespace tmap::testing {

/// Makes a link of its own out of the one that a thread got.
struct faulty_link : ranks::model_link {
  explicit faulty_link(const ranks::model_link& sound) : ranks::model_link(sound) {}
};

struct without_quiet : faulty_link {
  using faulty_link::faulty_link;
  void quiet() {}
};

struct flush_for_quiet : faulty_link {
  using faulty_link::faulty_link;
  void quiet() { flush(); }
};

/// Waits for its bulk stores and leaves out the fence.
struct quiet_without_fence : faulty_link {
  using faulty_link::faulty_link;
  void quiet() { machine_->wait_group(thread_); }
};

struct without_flush : faulty_link {
  using faulty_link::faulty_link;
  void flush() {}
};

struct without_proxy_fence : faulty_link {
  using faulty_link::faulty_link;
  void proxy_fence() {}
};

struct without_sync : faulty_link {
  using faulty_link::faulty_link;
  void sync() {}
};

struct without_wait_gets : faulty_link {
  using faulty_link::faulty_link;
  void wait_gets() {}
};

struct raise_relaxed : faulty_link {
  using faulty_link::faulty_link;
  void raise(std::uint32_t to, std::uint64_t signal, std::uint32_t by) {
    machine_->reduce(thread_, at(to, signal), by, false);
  }
};

struct wait_relaxed : faulty_link {
  using faulty_link::faulty_link;
  [[nodiscard]] bool wait(std::uint64_t signal, std::uint32_t value, std::uint64_t deadline) {
    return machine_->poll(thread_, at(rank_, signal), value, deadline, false);
  }
};

}  // namespace tmap::testing

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace tmap::support {

/// Holds an object of the process that is never destroyed, because threads may use it while the
/// process exits. It takes no heap memory.
template <class T>
class immortal {
 public:
  template <class... Arguments>
  explicit immortal(Arguments&&... arguments) : object_(std::forward<Arguments>(arguments)...) {}
  immortal(const immortal&) = delete;
  immortal& operator=(const immortal&) = delete;
  ~immortal() {}

  T& operator*() { return object_; }

 private:
  union {
    T object_;
  };
};

}  // namespace tmap::support

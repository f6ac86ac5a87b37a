// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tmap.h>
#include <tmap/decode.hpp>
#include <tmap/device_limits.hpp>
#include <tmap/environment.hpp>
#include <tmap/faults.hpp>
#include <tmap/map_fields.hpp>
#include <tmap/map_service.hpp>
#include <tmap/map_template.hpp>
#include <tmap/route.hpp>

#include <cuda_runtime_api.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "support/spec_text.hpp"

// Tests every public call with a failure of something that it needs. The call must report the
// failure or succeed without. It must not throw, and if it fails it must change nothing.
// `what_fails` defines what a program makes fail.

namespace tmap::testing {

/// Makes things fail in turn: allocations of host memory in interop_test, and calls of CUDA in
/// failing_cuda_test.
struct needed_thing {
  void (*fail)(std::uint64_t n, bool all_after);  ///< the n-th fails, counted from now on (1 is the next, 0 is none)
  std::uint64_t (*asked)();                       ///< the number of requests since then
  bool (*is_named)(status code);                  ///< whether a status is the error for this shortage
  bool (*may_go_unseen)();                        ///< whether a call may succeed without the thing that failed last
  bool (*reads_memory)();                         ///< whether there is a GPU, which would read the arguments' memory
  /// Runs `attempt()`, in a process of its own if a first call differs from the next.
  bool (*run)(const std::function<bool()>& attempt);
};
extern const needed_thing what_fails;

/// Returns an address that is good unless a GPU reads it.
template <class T>
T* somewhere() {
  return what_fails.reads_memory() ? nullptr : reinterpret_cast<T*>(0x10000);
}

/// Describes a public call by the linker's name without arguments, and the test that makes what it
/// needs fail in turn. This entry tests `overloads` of that name.
struct public_call {
  std::string name;
  std::function<void()> check;
  int overloads{1};  ///< exported overloads that no other entry here tests
};

/// Marks an overload on the host whose other entry, on a stream, covers its symbol.
inline constexpr int no_enqueued_call = 0;

// These functions return all calls, grouped by what they need.
std::vector<public_call> plain_calls();   ///< of C++, without a service
std::vector<public_call> ragged_calls();  ///< on host memory and on a device's, C++ and C
std::vector<public_call> service_calls_of_cpp();
std::vector<public_call> peer_calls_of_cpp();
std::vector<public_call> peer_calls_of_c();
std::vector<public_call> plain_calls_of_c();
std::vector<public_call> service_calls_of_c();

// Converts results to text, so that two of them can be compared.

inline std::string text_of(const tensor_map& map) {
  std::string text;
  for (const std::uint64_t word : map.words) text += std::to_string(word) + ' ';
  return text;
}
inline std::string text_of(const map_template& base) {
  return text_of(base.map) + to_text(base.spec) + std::to_string(bits_of(base.fields));
}
inline std::string text_of(const decoded_map& map) {
  return to_text(map.spec);
}
inline std::string text_of(const device_limits& limits) {
  return std::to_string(limits.shared_memory_bytes);
}
inline std::string text_of(route_policy policy) {
  return name(policy == route_policy::enable ? route::plain : route::bulk);
}
inline std::string text_of(fault_check check) {
  return std::to_string(static_cast<std::uint32_t>(check));
}
inline std::string text_of(const fault_report& report) {
  return to_string(report);
}
inline std::string text_of(std::uint64_t number) {
  return std::to_string(number);
}
inline std::string text_of(const std::string& text) {
  return text;
}
inline std::string text_of(const char* text) {
  return text == nullptr ? "null" : text;
}
inline std::string text_of(const map_service& service) {
  return to_json(service.statistics());
}
inline std::string text_of(const service_statistics& statistics) {
  return to_json(statistics);
}
inline std::string text_of(const map_batch& batch) {
  return std::to_string(batch.size());
}
inline std::string text_of(tmap_status code) {
  return tmap_status_name(code);
}
inline std::string text_of(const environment_item& item) {
  return item.name + item.detail + item.used_for;
}
inline std::string text_of(const field_difference& d) {
  return d.field + d.first + d.second;
}
inline std::string text_of(const map_field& field) {
  return field.name + field.value;
}
template <class T>
std::string text_of(const std::vector<T>& list) {
  std::string text;
  for (const T& each : list) text += text_of(each) + '\n';
  return text;
}
template <class T>
std::string text_of(const result<T>& answer) {
  if (!answer) return to_string(answer.error());
  if constexpr (std::is_void_v<T>) {
    return "success";
  } else {
    return text_of(*answer);
  }
}

// Returns whether a result reports the failure. A text or a list cannot hold an error and is empty
// instead.

inline bool says_failure(const std::string& text) {
  return text.empty();
}
inline bool says_failure(const std::vector<environment_item>& items) {
  const auto is_missing = [](const environment_item& item) {
    return !item.state && what_fails.is_named(item.state.error().code);
  };
  return items.empty() || std::any_of(items.begin(), items.end(), is_missing);
}
inline bool says_failure(tmap_status code) {
  return what_fails.is_named(static_cast<status>(code));
}
template <class T>
bool says_failure(const result<T>& answer) {
  return !answer && what_fails.is_named(answer.error().code);
}
template <class T>
bool says_failure(const T&) {
  return false;
}

/// Stands for the result of a call that returns nothing.
struct done {};
inline std::string text_of(done) {
  return "done";
}

/// Selects what fails: the n-th thing, and perhaps all after it.
struct shortage {
  std::uint64_t n;
  bool all_after;
};

/// Returns `call(scene)` under a shortage. Returns nothing if it threw, which fails the test.
template <class Scene, class Call>
auto answer_with(const shortage& lacking, Scene& scene, const Call& call, bool& has_failed)
    -> std::optional<decltype(call(scene))> {
  std::optional<decltype(call(scene))> answer;
  what_fails.fail(lacking.n, lacking.all_after);
  try {
    answer.emplace(call(scene));
  } catch (...) {  // the result stays empty
  }
  has_failed = what_fails.asked() >= lacking.n;
  what_fails.fail(0, false);
  return answer;
}

/// Records what the call does without a shortage, in a scene of its own.
struct usual_course {
  std::string before;
  std::string answer;
  std::string after;
  std::string work;
};

template <class Make, class Call>
usual_course take_usual_course(const Make& make, const Call& call) {
  usual_course usual;
  auto scene = make();
  usual.before = scene.state();
  {
    const auto answer = call(scene);
    EXPECT_FALSE(says_failure(answer)) << text_of(answer);
    usual.answer = text_of(answer);
    usual.after = scene.state();
  }
  usual.work = scene.work();
  return usual;
}

/// Returns whether the call reached the first thing that fails.
template <class Make, class Call>
bool fails_well(const Make& make, const Call& call, const shortage& lacking) {
  SCOPED_TRACE(::testing::Message() << "number " << lacking.n << (lacking.all_after ? " and all after it" : ""));
  bool has_failed = false;
  usual_course seen;
  auto scene = make();
  const cudaError_t cuda_error = cudaPeekAtLastError();  // not of the call: a machine without a driver always has one
  seen.before = scene.state();
  {
    auto answer = answer_with(lacking, scene, call, has_failed);
    EXPECT_TRUE(answer.has_value()) << "an exception left the call";
    EXPECT_EQ(cudaPeekAtLastError(), cuda_error);
    if (answer && says_failure(*answer)) {
      EXPECT_TRUE(has_failed);
      EXPECT_TRUE(scene.may_do_a_part || scene.state() == seen.before) << scene.state() << "\n" << seen.before;
      answer.emplace(call(scene));
    } else {
      EXPECT_TRUE(!has_failed || what_fails.may_go_unseen()) << (answer ? text_of(*answer) : "");
    }
    seen.answer = answer ? text_of(*answer) : "";
    seen.after = scene.state();
  }
  seen.work = scene.work();
  const usual_course usual = take_usual_course(make, call);
  EXPECT_EQ(seen.before, usual.before);
  EXPECT_EQ(seen.answer, usual.answer);
  EXPECT_EQ(seen.after, usual.after);
  EXPECT_EQ(seen.work, usual.work);
  return has_failed;
}

inline int failures_so_far() {
  return ::testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
}

/// Makes `call(scene)` fail at each thing that it needs. `make` makes the scene: all that the call
/// uses. It has
/// - `state()`: what one sees of its objects, which a call that fails leaves as it is;
/// - `work()`: an ordinary round of work with them, and what comes of it;
/// - `may_do_a_part`: whether the call's contract allows that it has done a part of its work.
template <class Make, class Call>
void fail_each_in_turn(const Make& make, const Call& call) {
  const int before = failures_so_far();
  for (const bool all_after : {false, true}) {
    const auto attempt = [&](std::uint64_t n) {
      return what_fails.run([&] { return fails_well(make, call, {n, all_after}); });
    };
    for (std::uint64_t n = 1; attempt(n); ++n) {
      ASSERT_LT(n, 2000u);
      if (failures_so_far() != before) return;
    }
  }
}

/// Serves as the scene of a call that uses no objects.
struct empty_scene {
  static constexpr bool may_do_a_part = false;
  std::string state() const { return {}; }
  std::string work() const { return {}; }
};

/// Checks a call in scenes of one type.
template <class Scene, class Call>
public_call in(const char* name, const Call& call, int overloads = 1) {
  return {name, [call] { fail_each_in_turn([] { return Scene{}; }, call); }, overloads};
}

/// Checks a call without objects.
template <class Call>
public_call plain(const char* name, const Call& call) {
  return in<empty_scene>(name, [call](empty_scene&) { return call(); });
}

}  // namespace tmap::testing

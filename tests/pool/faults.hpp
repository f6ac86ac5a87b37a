// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "support/fake_streams.hpp"

// Pools with one fault each, made by calls that lie. The tests that find no foreign id in the real
// pool must find some here.

namespace tmap::testing {

struct fault {
  const char* name;
  pool::pool_calls calls;
};

/// Lends a range again without waiting for its events.
inline fault ask_no_event() {
  pool::pool_calls calls = fake_streams::calls();
  calls.query_event = [](cudaEvent_t) { return cudaSuccess; };
  return {"ask_no_event", calls};
}

inline fault wait_for_no_event() {
  pool::pool_calls calls = fake_streams::calls();
  calls.wait_event = [](cudaStream_t, cudaEvent_t) { return cudaSuccess; };
  return {"wait_for_no_event", calls};
}

/// Takes a new stream with the handle of a closed one for the closed one.
inline fault know_streams_by_handle() {
  pool::pool_calls calls = fake_streams::calls();
  calls.stream_id = [](cudaStream_t stream, unsigned long long* id) {
    *id = reinterpret_cast<std::uintptr_t>(stream);
    return cudaSuccess;
  };
  return {"know_streams_by_handle", calls};
}

/// Records no event on every other stream.
inline fault forget_every_other_stream() {
  pool::pool_calls calls = fake_streams::calls();
  calls.record_event = [](cudaEvent_t event, cudaStream_t stream) {
    const bool is_odd = reinterpret_cast<std::uintptr_t>(stream) / 4096 % 2 == 1;
    return is_odd ? cudaSuccess : fake_streams::calls().record_event(event, stream);
  };
  return {"forget_every_other_stream", calls};
}

/// Lends slots again while a graph that holds them exists.
inline fault lend_captured_slots() {
  pool::pool_calls calls = fake_streams::calls();
  calls.retain_in_graph = [](cudaGraph_t, void* object, void (*drop)(void*), cudaUserObject_t* held) {
    *held = static_cast<cudaUserObject_t>(object);
    drop(object);
    return cudaSuccess;
  };
  return {"lend_captured_slots", calls};
}

/// Records an event after the last use in the stream, although that use is in a capture.
inline fault see_no_capture() {
  pool::pool_calls calls = know_streams_by_handle().calls;
  calls.capture_id = [](cudaStream_t, unsigned long long* id) {
    *id = 0;
    return cudaSuccess;
  };
  return {"see_no_capture", calls};
}

inline const fault faults[] = {ask_no_event(), wait_for_no_event(), know_streams_by_handle(),
                               forget_every_other_stream(), lend_captured_slots()};

inline std::string name_of(const ::testing::TestParamInfo<fault>& info) {
  return info.param.name;
}

}  // namespace tmap::testing

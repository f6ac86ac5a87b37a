// SPDX-License-Identifier: Apache-2.0
#include "encode/fake_faults.hpp"

#include <cstring>
#include <utility>

namespace tmap::testing {
namespace {

fake_faults* current{};
fault_record pinned;

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaStream_t) {
  if (const cudaError_t code = current->enter("copy"); code != cudaSuccess) return code;
  if (bytes != sizeof(fault_record)) return cudaErrorInvalidValue;
  ++current->copies;
  for (const std::size_t word : current->word_order) {
    current->between();
    std::memcpy(static_cast<char*>(to) + 8 * word, static_cast<const char*>(from) + 8 * word, 8);
  }
  return cudaSuccess;
}

cudaError_t clear(void* data, std::size_t bytes, cudaStream_t) {
  if (const cudaError_t code = current->enter("clear"); code != cudaSuccess) return code;
  current->between();
  std::memset(data, 0, bytes);
  current->between();
  return cudaSuccess;
}

cudaError_t find_records(fault_record** records) {
  if (const cudaError_t code = current->enter("find_records"); code != cudaSuccess) return code;
  ++current->lookups;
  if (current->context == 0) current->context = 1;
  *records = current->records();
  return cudaSuccess;
}

cudaError_t current_context(std::uint64_t* id) {
  const cudaError_t code = current->enter("current_context", false);
  if (code == cudaSuccess) *id = current->context;
  return code;
}

cudaError_t allocate_host(void** data, std::size_t) {
  *data = &pinned;
  return current->enter("allocate_host");
}

cudaError_t open_stream(cudaStream_t* stream) {
  const cudaError_t code = current->enter("open_stream");
  if (code == cudaSuccess) *stream = reinterpret_cast<cudaStream_t>(&pinned);
  return code;
}

cudaError_t wait(cudaStream_t) {
  ++current->waits;
  return current->enter("wait");
}

cudaError_t exchange_capture_mode(cudaStreamCaptureMode* mode) {
  // If a thread cannot restore its capture mode, it stays relaxed, and no caller learns of it.
  const bool is_entering = *mode == cudaStreamCaptureModeRelaxed;
  const cudaError_t code = is_entering ? current->enter("exchange_capture_mode", false) : cudaSuccess;
  if (code == cudaSuccess) std::swap(*mode, current->mode);
  return code;
}

cudaError_t capture_status(cudaStream_t, cudaStreamCaptureStatus* status) {
  const cudaError_t code = current->enter("capture_status", false);
  if (code == cudaSuccess) *status = current->capture;
  return code;
}

}  // namespace

fake_faults::fake_faults() : before{std::exchange(current, this)} {}

fake_faults::~fake_faults() {
  current = before;
}

cudaError_t fake_faults::enter(const char* call, bool must_be_relaxed) {
  if (must_be_relaxed && mode != cudaStreamCaptureModeRelaxed) strict_calls.insert(call);
  return fails_in > 0 && --fails_in == 0 ? cudaErrorMemoryAllocation : cudaSuccess;
}

void fake_faults::count(const bad_item& item, fault_record* record) {
  fault_record& to = record == nullptr ? *records() : *record;
  ++to.counts[static_cast<std::size_t>(items_of(item.call))];
  if (to.first != fault_record::claim::open) return;
  to.call = numbered(item.call, item.number);
  to.index = item.index;
  to.bits = item.bits;
  to.first = fault_record::claim::written;
}

const fault_calls& fake_fault_calls() {
  static constexpr fault_calls calls{current_context, find_records, allocate_host,         open_stream,   copy,
                                     clear,           wait,         exchange_capture_mode, capture_status};
  return calls;
}

}  // namespace tmap::testing

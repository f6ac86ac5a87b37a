// SPDX-License-Identifier: Apache-2.0
#include "lib/encode/fault_book.hpp"

#include <algorithm>
#include <new>

#include "kernels/launch.hpp"
#include "lib/driver/context_id.hpp"
#include "lib/encode/device.hpp"
#include "lib/support/check.hpp"
#include "lib/support/immortal.hpp"
#include "lib/support/relaxed_capture.hpp"

namespace tmap {

bad_item item_of(const fault_record& record) {
  if (record.first != fault_record::claim::written) return {};
  return {call_of(record.call), number_of(record.call), record.index, record.bits};
}

result<fault_record> fault_page::copy(const fault_record* record) {
  const support::relaxed_capture relaxed{calls_};
  TMAP_TRY_CUDA(relaxed.code());
  if (stream_ == nullptr) TMAP_TRY_CUDA(calls_.open_stream(&stream_));
  if (host_ == nullptr) {
    void* data = nullptr;
    TMAP_TRY_CUDA(calls_.allocate_host(&data, sizeof(fault_record)));
    host_ = static_cast<fault_record*>(data);
  }
  TMAP_TRY_CUDA(calls_.copy(host_, record, sizeof(fault_record), stream_));
  TMAP_TRY_CUDA(calls_.wait(stream_));
  return *host_;
}

result<fault_record> fault_page::read(const fault_record* record) {
  const std::lock_guard lock{mutex_};
  return copy(record);
}

void fault_page::note(const bad_item& item) {
  if (item.call == batch_call::none) return;
  if (first_.call == batch_call::none || item.number < first_.number) first_ = item;
}

void fault_page::add(const fault_record& checked) {
  const std::lock_guard lock{mutex_};
  for (std::uint32_t kind = 0; kind < item_kind_count; ++kind) checked_[kind] += checked.counts[kind];
  note(item_of(checked));
}

result<void> fault_page::open_first() {
  const support::relaxed_capture relaxed{calls_};
  TMAP_TRY_CUDA(relaxed.code());
  TMAP_TRY_CUDA(calls_.clear(&records_->first, sizeof(records_->first), stream_));
  return {};
}

result<fault_report> fault_page::report(bool resets) {
  const std::lock_guard lock{mutex_};
  result<fault_record> now = copy(records_);
  if (now && now->first == fault_record::claim::written) {
    // A kernel may have written the record during the copy. A second copy has all of it.
    now = copy(records_);
    if (now) note(item_of(*now));
    if (now && resets) {
      // Open the record before the counts are read, so that an item counted later finds it open and
      // names itself there.
      if (const result<void> opened = open_first(); !opened) return failure(opened.error());
      now = copy(records_);
    }
  }
  if (!now) return failure(now.error());
  std::array<std::uint64_t, item_kind_count> counts{};
  for (std::uint32_t kind = 0; kind < item_kind_count; ++kind) {
    counts[kind] = now->counts[kind] - discounted_[kind] + checked_[kind];
  }
  const fault_report report{counts[0], counts[1], counts[2], counts[3], first_};
  if (resets) {
    std::copy(std::begin(now->counts), std::end(now->counts), discounted_.begin());
    checked_ = {};
    first_ = {};
  }
  return report;
}

result<fault_page*> fault_book::find(std::uint64_t context) try {
  fault_record* records = nullptr;
  {
    const support::relaxed_capture relaxed{calls_};
    TMAP_TRY_CUDA(relaxed.code());
    TMAP_TRY_CUDA(calls_.find_records(&records));
  }
  if (context == 0) TMAP_TRY_CUDA(calls_.current_context(&context));
  const std::lock_guard lock{mutex_};
  const auto found =
      std::find_if(pages_.begin(), pages_.end(), [&](const auto& page) { return page->context() == context; });
  if (found != pages_.end()) return found->get();
  pages_.push_back(std::make_unique<fault_page>(calls_, context, records));
  return pages_.back().get();
} catch (const std::bad_alloc&) {
  return failure(error{status::out_of_memory});
}

result<fault_page*> fault_book::page() {
  std::uint64_t context = 0;
  // If this fails, `find` returns the reason.
  if (calls_.current_context(&context) != cudaSuccess) context = 0;
  fault_page* const kept = latest_[context % latest_.size()].load(std::memory_order_acquire);
  if (kept != nullptr && kept->context() == context) return kept;
  const result<fault_page*> found = find(context);
  if (found) latest_[(*found)->context() % latest_.size()].store(*found, std::memory_order_release);
  return found;
}

const fault_calls& real_fault_calls() {
  static constexpr fault_calls calls{
      driver::current_context,
      kernels::find_fault_records,
      [](void** data, std::size_t bytes) { return cudaHostAlloc(data, bytes, cudaHostAllocDefault); },
      [](cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking); },
      [](void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
        return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
      },
      [](void* data, std::size_t bytes, cudaStream_t stream) { return cudaMemsetAsync(data, 0, bytes, stream); },
      cudaStreamSynchronize,
      cudaThreadExchangeStreamCaptureMode,
      cudaStreamIsCapturing};
  return calls;
}

fault_book& process_faults() {
  static support::immortal<fault_book> book{real_fault_calls()};
  return *book;
}

namespace {

result<fault_report> report_faults(bool resets) {
  if (const result<void> has_kernels = require_kernels(); !has_kernels) return failure(has_kernels.error());
  const result<fault_page*> page = process_faults().page();
  if (!page) return failure(page.error());
  return (*page)->report(resets);
}

}  // namespace

result<fault_report> faults() {
  return report_faults(false);
}

result<fault_report> reset_faults() {
  return report_faults(true);
}

}  // namespace tmap

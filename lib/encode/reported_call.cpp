// SPDX-License-Identifier: Apache-2.0
#include "lib/encode/reported_call.hpp"

#include <atomic>
#include <bit>
#include <utility>

#include "kernels/launch.hpp"
#include "lib/support/check.hpp"
#include "lib/support/checking.hpp"
#include "lib/support/immortal.hpp"
#include "lib/support/log.hpp"
#include "lib/support/relaxed_capture.hpp"

namespace tmap {
namespace {

static_assert(kernels::call_record_count == 64, "a bit of `call_records` each");

void warn_of_capture() {
  static std::atomic<bool> has_warned{false};
  if (has_warned.exchange(true)) return;
  support::log(log_level::warning,
               "a checked call is captured in a graph and cannot wait; call tmap::faults() after replays");
}

result<bool> is_captured(cudaStream_t stream, const fault_calls& calls) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  TMAP_TRY_CUDA(calls.capture_status(stream, &status));
  return status != cudaStreamCaptureStatusNone;
}

}  // namespace

std::uint32_t call_records::take() {
  std::unique_lock lock{mutex_};
  freed_.wait(lock, [&] { return used_ != ~std::uint64_t{0}; });
  const auto record = static_cast<std::uint32_t>(std::countr_one(used_));
  used_ |= std::uint64_t{1} << record;
  return record;
}

void call_records::give_back(std::uint32_t record) {
  {
    const std::lock_guard lock{mutex_};
    used_ &= ~(std::uint64_t{1} << record);
  }
  freed_.notify_one();
}

result<void> call_report::open(const reported_call& call, fault_book& book, call_records& records,
                               call_report& report) {
  const result<fault_page*> page = book.page();
  if (!page) return failure(page.error());
  report.call_ = call;
  report.calls_ = &book.calls();
  report.page_ = *page;
  report.sink_ = {(*page)->records(), numbered(call.which, support::next_call_number())};
  if (!support::is_checked(call.check)) return {};
  const result<bool> captured = is_captured(call.stream, book.calls());
  if (!captured) return failure(captured.error());
  if (*captured) {
    warn_of_capture();
    return {};
  }
  report.records_ = &records;
  return report.take_record();
}

result<void> call_report::take_record() {
  record_ = records_->take();
  sink_.record = page_->records() + 1 + record_;
  const support::relaxed_capture relaxed{*calls_};
  // Cleared here, because the previous call may have left it unread.
  cudaError_t code = relaxed.code();
  if (code == cudaSuccess) code = calls_->clear(sink_.record, sizeof(fault_record), call_.stream);
  if (code == cudaSuccess) return {};
  give_back();
  return failure(support::runtime_error(code));
}

void call_report::give_back() {
  if (records_ != nullptr) std::exchange(records_, nullptr)->give_back(record_);
}

call_report::~call_report() {
  if (records_ == nullptr) return;
  const support::relaxed_capture relaxed{*calls_};
  support::clear_last_error(calls_->wait(call_.stream));
  give_back();
}

result<void> call_report::close() {
  if (records_ == nullptr) return {};
  {
    const support::relaxed_capture relaxed{*calls_};
    TMAP_TRY_CUDA(relaxed.code());
    TMAP_TRY_CUDA(calls_->wait(call_.stream));
  }
  const result<fault_record> record = page_->read(sink_.record);
  if (!record) return failure(record.error());
  give_back();
  const item_kind kind = items_of(call_.which);
  const std::uint64_t bad = record->counts[static_cast<std::uint32_t>(kind)];
  if (bad == 0) return {};
  page_->add(*record);
  return failure{error{.code = status::bad_items, .found = bad, .allowed = call_.items, .bad = item_of(*record)}};
}

call_records& process_call_records() {
  static support::immortal<call_records> records;
  return *records;
}

}  // namespace tmap

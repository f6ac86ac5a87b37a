// SPDX-License-Identifier: Apache-2.0
// Tests what the host reads from fault records while kernels, imitated by functions, write them.
// One step runs between any two words of any copy.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "encode/fake_faults.hpp"
#include "lib/encode/fault_book.hpp"
#include "lib/encode/reported_call.hpp"
#include "lib/support/checking.hpp"

namespace tmap::testing {
namespace {

const bad_item tensor_3{batch_call::ragged_copy, 17, 3, 2};
const bad_item group_9{batch_call::gemm_rows, 18, 9, 1};

class fault_book_test : public ::testing::Test {
 protected:
  fault_report report(bool resets) {
    const result<fault_page*> page = book_.page();
    EXPECT_TRUE(page.has_value());
    const result<fault_report> told = (*page)->report(resets);
    EXPECT_TRUE(told.has_value()) << to_string(told.error());
    return told ? *told : fault_report{};
  }
  fault_report read() { return report(false); }
  fault_report reset() { return report(true); }

  fake_faults fake_;
  fault_book book_{fake_fault_calls()};
};

TEST_F(fault_book_test, begins_with_nothing) {
  const fault_report told = read();
  EXPECT_EQ(told.all(), 0u);
  EXPECT_EQ(told.first.call, batch_call::none);
  EXPECT_EQ(fake_.copies, 1) << "one copy of 64 bytes where nothing is bad";
}

TEST_F(fault_book_test, counts_by_kind_and_names_the_first) {
  fake_.records()->counts[0] = 5;
  fake_.count(tensor_3);
  fake_.count(group_9);
  fake_.records()->counts[2] = 7;
  const fault_report told = read();
  EXPECT_EQ(told.maps, 5u);
  EXPECT_EQ(told.tensors, 1u);
  EXPECT_EQ(told.rows, 7u);
  EXPECT_EQ(told.groups, 1u);
  EXPECT_EQ(told.first, tensor_3);
  EXPECT_EQ(read().first, tensor_3) << "reading changes nothing";
}

TEST_F(fault_book_test, reset_begins_anew) {
  fake_.count(tensor_3);
  EXPECT_EQ(reset().tensors, 1u);
  EXPECT_EQ(read().all(), 0u);
  EXPECT_EQ(read().first.call, batch_call::none);
  fake_.count(group_9);
  EXPECT_EQ(read().first, group_9);
  EXPECT_EQ(read().all(), 1u);
}

TEST_F(fault_book_test, adds_what_checked_calls_counted) {
  fake_.count(group_9);
  fault_record checked{};
  checked.counts[1] = 4;
  checked.first = fault_record::claim::written;
  checked.call = numbered(tensor_3.call, tensor_3.number);
  checked.index = tensor_3.index;
  checked.bits = tensor_3.bits;
  (*book_.page())->add(checked);
  EXPECT_EQ(read().first, tensor_3) << "the lower number was first";
  EXPECT_EQ(read().tensors, 4u);
  EXPECT_EQ(reset().all(), 5u);
  EXPECT_EQ(reset().all(), 0u);
}

TEST_F(fault_book_test, each_context_has_its_own) {
  fake_.count(tensor_3);
  fake_.context = 2;
  EXPECT_EQ(read().all(), 0u);
  fake_.count(group_9);
  EXPECT_EQ(reset().first, group_9);
  fake_.context = 1;
  EXPECT_EQ(read().first, tensor_3);
  EXPECT_EQ(fake_.lookups, 2) << "the records are looked for once in each";
}

TEST_F(fault_book_test, many_contexts_share_no_page) {
  for (fake_.context = 1; fake_.context < 200; ++fake_.context) fake_.records()->counts[1] = fake_.context;
  for (int round = 0; round < 2; ++round) {
    for (fake_.context = 1; fake_.context < 200; ++fake_.context) EXPECT_EQ(read().tensors, fake_.context);
  }
}

TEST_F(fault_book_test, a_context_that_is_made_by_asking) {
  fake_.context = 0;
  EXPECT_EQ(read().all(), 0u);
  EXPECT_EQ(fake_.context, 1u);
  EXPECT_EQ(*book_.page(), *book_.page());
}

TEST_F(fault_book_test, every_call_is_relaxed) {
  fake_.count(tensor_3);
  reset();
  EXPECT_EQ(fake_.strict_calls, std::set<std::string>{});
  EXPECT_EQ(fake_.mode, cudaStreamCaptureModeGlobal) << "the thread's mode is restored";
}

// If a context cannot be queried at once, it is queried again later. Its first call may fail.
TEST_F(fault_book_test, a_failed_call_loses_nothing) {
  for (int failing = 2;; ++failing) {
    fake_faults fake;
    fault_book book{fake_fault_calls()};
    fake.count(tensor_3);
    fake.fails_in = failing;
    const result<fault_page*> page = book.page();
    const bool is_done = page && (*page)->report(true).has_value();
    if (fake.fails_in > 0) {
      EXPECT_TRUE(is_done);
      EXPECT_GT(failing, 5);
      return;
    }
    EXPECT_FALSE(is_done) << failing;
    const result<fault_report> again = (*book.page())->report(true);
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(again->tensors, 1u) << failing;
    EXPECT_EQ(again->first, tensor_3) << failing;
  }
}

/// Returns the steps of a kernel that counts `item`. Each step is as short as a store.
std::vector<std::function<void(fault_record&)>> steps_of(const bad_item& item) {
  const auto claimed = std::make_shared<bool>(false);
  using claim = fault_record::claim;
  return {
      [item](fault_record& r) { ++r.counts[static_cast<std::size_t>(items_of(item.call))]; },
      [claimed](fault_record& r) {
        *claimed = r.first == claim::open;
        if (*claimed) r.first = claim::taken;
      },
      [=](fault_record& r) {
        if (*claimed) r.bits = item.bits;
      },
      [=](fault_record& r) {
        if (*claimed) r.call = numbered(item.call, item.number);
      },
      [=](fault_record& r) {
        if (*claimed) r.index = item.index;
      },
      [=](fault_record& r) {
        if (*claimed) r.first = claim::written;
      },
  };
}

TEST(fault_records, no_report_is_torn_and_no_item_is_lost) {
  for (std::uint32_t seed = 0; seed < 5000; ++seed) {
    std::mt19937 random{seed};
    fake_faults fake;
    fault_book book{fake_fault_calls()};
    std::vector<bad_item> items;
    std::vector<std::function<void(fault_record&)>> steps;
    for (std::uint64_t i = 1; i <= 3; ++i) {
      items.push_back({batch_call::ragged_copy, i, 10 * i, 100 * i});
      const auto more = steps_of(items.back());
      steps.insert(steps.end(), more.begin(), more.end());
    }
    std::size_t done = 0;
    fake.between = [&] {
      while (done < steps.size() && random() % 4 == 0) steps[done++](*fake.records());
    };
    std::shuffle(fake.word_order.begin(), fake.word_order.end(), random);
    fault_page& page = **book.page();
    std::uint64_t counted = 0;
    bool has_first = false;
    const auto take = [&] {
      const fault_report told = page.report(true).value();
      counted += told.tensors;
      if (told.first.call == batch_call::none) return told;
      has_first = true;
      EXPECT_EQ(std::count(items.begin(), items.end(), told.first), 1) << seed << ": " << to_string(told.first);
      return told;
    };
    for (int read = 0; read < 3; ++read) take();
    const bool was_over = done == steps.size();
    while (done < steps.size()) steps[done++](*fake.records());
    const fault_report last = take();
    EXPECT_EQ(counted, items.size()) << seed;
    EXPECT_TRUE(has_first) << seed;
    EXPECT_TRUE(was_over || last.tensors == 0 || last.first.call != batch_call::none) << seed;
    EXPECT_EQ(page.report(false)->all(), 0u) << seed;
    if (HasFailure()) return;
  }
}

class reported_call : public ::testing::Test {
 protected:
  result<void> open(fault_check check, call_report& report) {
    return call_report::open({batch_call::ragged_copy, 1000, check, nullptr}, book_, records_, report);
  }

  fake_faults fake_;
  fault_book book_{fake_fault_calls()};
  call_records records_;
};

TEST_F(reported_call, numbers_rise_and_go_with_the_call) {
  call_report first;
  call_report second;
  ASSERT_TRUE(open(fault_check::off, first).has_value());
  ASSERT_TRUE(open(fault_check::off, second).has_value());
  EXPECT_EQ(first.sink().record, fake_.records());
  EXPECT_EQ(first.sink().call & 0xff, static_cast<std::uint64_t>(batch_call::ragged_copy));
  EXPECT_EQ(second.sink().call, first.sink().call + 256);
  EXPECT_TRUE(first.close().has_value());
  EXPECT_EQ(fake_.waits, 0) << "an unchecked call waits for nothing";
}

TEST_F(reported_call, a_checked_call_fails_with_its_own_item) {
  fake_.count(group_9);
  call_report report;
  ASSERT_TRUE(open(fault_check::sync, report).has_value());
  EXPECT_NE(report.sink().record, fake_.records());
  const std::uint64_t number = number_of(report.sink().call);
  const bad_item met{batch_call::ragged_copy, number, 3, 2};
  fake_.count(met, report.sink().record);
  fake_.count({batch_call::ragged_copy, number, 4, 1}, report.sink().record);
  const result<void> closed = report.close();
  ASSERT_FALSE(closed.has_value());
  EXPECT_EQ(closed.error().code, status::bad_items);
  EXPECT_EQ(closed.error().found, 2u);
  EXPECT_EQ(closed.error().allowed, 1000u);
  EXPECT_EQ(closed.error().bad, met);
  const fault_report told = (*book_.page())->report(false).value();
  EXPECT_EQ(told.tensors, 2u);
  EXPECT_EQ(told.groups, 1u);
  EXPECT_GT(fake_.waits, 0);
}

TEST_F(reported_call, a_checked_call_without_bad_items_succeeds) {
  fake_.count(tensor_3);
  call_report report;
  ASSERT_TRUE(open(fault_check::sync, report).has_value());
  EXPECT_TRUE(report.close().has_value());
}

TEST_F(reported_call, what_an_earlier_call_left_in_its_record_is_gone) {
  for (int round = 0; round < 2; ++round) {
    call_report report;
    ASSERT_TRUE(open(fault_check::sync, report).has_value());
    EXPECT_EQ(report.sink().record->counts[1], 0u);
    fake_.count(tensor_3, report.sink().record);
    EXPECT_EQ(report.close().error().found, 1u);
  }
}

TEST_F(reported_call, checks_at_once_have_a_record_each) {
  std::vector<std::unique_ptr<call_report>> reports;
  std::set<fault_record*> used;
  for (int i = 0; i < 64; ++i) {
    reports.push_back(std::make_unique<call_report>());
    ASSERT_TRUE(open(fault_check::sync, *reports.back()).has_value());
    used.insert(reports.back()->sink().record);
  }
  EXPECT_EQ(used.size(), 64u);
  for (fault_record* const record : used) {
    EXPECT_GT(record, fake_.records());
    EXPECT_LE(record, fake_.records() + 64);
  }
  // The 65th call waits for one of the others.
  std::atomic<bool> is_open{false};
  std::thread late{[&] {
    call_report report;
    EXPECT_TRUE(open(fault_check::sync, report).has_value());
    is_open = true;
    EXPECT_TRUE(report.close().has_value());
  }};
  std::this_thread::sleep_for(std::chrono::milliseconds{50});  // it is waiting by then, and must be woken
  EXPECT_FALSE(is_open);
  EXPECT_TRUE(reports[7]->close().has_value());
  late.join();
}

TEST_F(reported_call, a_call_that_fails_halfway_waits_before_its_record_is_anothers) {
  {
    call_report report;
    ASSERT_TRUE(open(fault_check::sync, report).has_value());
    fake_.waits = 0;
  }
  EXPECT_EQ(fake_.waits, 1);
  call_report next;
  ASSERT_TRUE(open(fault_check::sync, next).has_value());
  EXPECT_EQ(next.sink().record, fake_.records() + 1);
}

TEST_F(reported_call, a_captured_call_is_counted_instead) {
  fake_.capture = cudaStreamCaptureStatusActive;
  call_report report;
  ASSERT_TRUE(open(fault_check::sync, report).has_value());
  EXPECT_EQ(report.sink().record, fake_.records());
  EXPECT_TRUE(report.close().has_value());
  EXPECT_EQ(fake_.waits, 0);
}

TEST_F(reported_call, every_failure_of_a_checked_call_is_told) {
  for (int failing = 2;; ++failing) {
    fake_faults fake;
    fault_book book{fake_fault_calls()};
    ASSERT_TRUE(book.page().has_value());
    {
      fake.fails_in = failing;
      call_report report;
      result<void> done =
          call_report::open({batch_call::ragged_copy, 1, fault_check::sync, nullptr}, book, records_, report);
      if (done) done = report.close();
      if (fake.fails_in > 0) {
        EXPECT_TRUE(done.has_value());
        EXPECT_GT(failing, 5);
        break;
      }
      fake.fails_in = 0;
      EXPECT_FALSE(done.has_value()) << failing;
    }
    EXPECT_EQ(records_.take(), 0u) << failing << ": the record was not given back";
    records_.give_back(0);
  }
}

TEST_F(reported_call, unknown_options_are_refused) {
  support::arguments given;
  support::check_fault_check(given, static_cast<fault_check>(3), "check");
  ASSERT_FALSE(given);
  EXPECT_EQ(given.complaint().code, status::invalid_argument);
  EXPECT_EQ(fake_.lookups, 0);
}

}  // namespace
}  // namespace tmap::testing

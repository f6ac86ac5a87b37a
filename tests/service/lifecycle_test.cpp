// SPDX-License-Identifier: Apache-2.0
// Tests services and batches after their context, process or stream has ended.
#include <optional>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "lib/service/context_guard.hpp"
#include "service/service_fixture.hpp"

namespace tmap::testing {
namespace {

class lifecycle : public service_fixture {
 protected:
  /// Expects that every call of a service and a batch returns this error.
  void expect_all(map_service& service, map_batch& batch, status code, std::int32_t cuda_code = 0) {
    const auto expect = [&](const auto& outcome) {
      ASSERT_FALSE(outcome.has_value());
      EXPECT_EQ(outcome.error().code, code) << to_string(outcome.error());
      EXPECT_EQ(outcome.error().cuda_code, cuda_code);
    };
    const tensor_list tensors{1};
    const std::uint32_t which[] = {0};
    expect(encode(service, tensors, nullptr));
    expect(service.reserve(1, stream_of(nullptr)));
    expect(service.update(batch, {which, 1}, base, tensors.source(), {stream_of(nullptr)}));
    expect(batch.use_on(stream_of(nullptr)));
    expect(batch.release());
  }
};

TEST_F(lifecycle, a_batch_outlives_its_service) {
  const cudaStream_t stream = machine.streams.open_stream();
  const tensor_list tensors{5};
  map_batch batch;
  {
    map_service service = make();
    batch = encode(service, tensors, nullptr).value();
  }
  EXPECT_FALSE(machine.is_clean());
  EXPECT_EQ(wrong_maps(batch, tensors), 0u);
  EXPECT_TRUE(batch.use_on(stream_of(stream)).has_value());
  EXPECT_TRUE(batch.release().has_value());
  EXPECT_TRUE(machine.is_clean());
}

TEST_F(lifecycle, moved_from_objects_are_empty) {
  map_service service = make();
  map_batch batch = encode(service, tensor_list{5}, nullptr).value();
  map_batch taken = std::move(batch);
  EXPECT_FALSE(batch);
  EXPECT_EQ(batch.ref().slots, nullptr);
  EXPECT_EQ(taken.size(), 5u);
  taken = encode(service, tensor_list{7}, nullptr).value();
  EXPECT_EQ(service.statistics().slots.leased, 7u);
  map_service other = std::move(service);
  expect_refused(encode(service, tensor_list{1}, nullptr), "map_service", "encode");
  expect_refused(service.reserve(1, stream_of(nullptr)), "map_service", "reserve");
  EXPECT_EQ(service.statistics().slots.capacity, 0u);
  EXPECT_EQ(other.statistics().batches, 2u);
}

TEST_F(lifecycle, two_services_keep_apart) {
  map_service one = make(8);
  map_service two = make(8);
  const map_batch first = encode(one, tensor_list{8}, nullptr).value();
  const map_batch second = encode(two, tensor_list{8, std::uint64_t{1} << 40}, nullptr).value();
  EXPECT_EQ(wrong_maps(first, tensor_list{8}), 0u);
  EXPECT_EQ(one.statistics().encoded_maps, 8u);
}

TEST_F(lifecycle, another_context_is_refused_and_harms_nothing) {
  std::optional<map_service> service{make()};
  map_batch batch = encode(*service, tensor_list{5}, nullptr).value();
  const std::uint64_t home = machine.primary;
  const std::uint64_t other = machine.push_context();
  expect_all(*service, batch, status::wrong_context);
  const error e = service->reserve(1, stream_of(nullptr)).error();
  EXPECT_EQ(e.found, other);
  EXPECT_EQ(e.allowed, home);
  EXPECT_EQ(service->statistics().batches, 1u);
  machine.pop_context();
  EXPECT_EQ(wrong_maps(batch, tensor_list{5}), 0u);
  EXPECT_TRUE(batch.release().has_value());
  service.reset();
  EXPECT_TRUE(machine.is_clean());
}

TEST_F(lifecycle, what_ends_in_another_context_is_lost_and_said_so) {
  std::optional<map_service> service{make()};
  {
    const map_batch batch = encode(*service, tensor_list{5}, nullptr).value();
    machine.push_context();
  }
  EXPECT_TRUE(log.has(log_level::warning, "its slots are lost"));
  machine.pop_context();
  EXPECT_EQ(service->statistics().slots.leased, 5u);
  machine.push_context();
  service.reset();
  EXPECT_TRUE(log.has(log_level::warning, "its memory is not freed"));
  EXPECT_EQ(machine.streams.live_allocations(), 1u);
}

TEST_F(lifecycle, a_thread_without_a_context_gets_the_services) {
  map_service service = make();
  std::thread{[&] { EXPECT_TRUE(encode(service, tensor_list{5}, nullptr).has_value()); }}.join();
  machine.unbind_thread();
  EXPECT_TRUE(encode(service, tensor_list{5}, nullptr).has_value());
}

TEST_F(lifecycle, a_thread_of_another_device_does_not_get_them) {
  map_service service = make();
  machine.unbind_thread();
  machine.device = 1;
  EXPECT_EQ(encode(service, tensor_list{5}, nullptr).error().code, status::wrong_context);
  machine.device = 0;
  EXPECT_TRUE(encode(service, tensor_list{5}, nullptr).has_value());
}

TEST_F(lifecycle, a_reset_device_makes_the_service_dead) {
  std::optional<map_service> service{make()};
  map_batch batch = encode(*service, tensor_list{5}, nullptr).value();
  machine.reset_device();
  EXPECT_EQ(encode(*service, tensor_list{1}, nullptr).error().code, status::service_dead);
  EXPECT_EQ(machine.primary, 0u);
  EXPECT_EQ(log.count(log_level::error), 1u);
  const std::uint64_t calls = machine.all_calls();
  expect_all(*service, batch, status::service_dead, cudaErrorContextIsDestroyed);
  service.reset();
  EXPECT_EQ(machine.all_calls(), calls);
  EXPECT_EQ(log.count(log_level::error), 1u);
}

TEST_F(lifecycle, a_context_made_anew_is_not_the_services) {
  map_service service = make();
  map_batch batch = encode(service, tensor_list{5}, nullptr).value();
  machine.reset_device();
  machine.primary = fake_machine::new_context();
  machine.pop_context();
  EXPECT_EQ(service.statistics().slots.capacity, 0u);  // the first query
  expect_all(service, batch, status::service_dead, cudaErrorContextIsDestroyed);
}

TEST_F(lifecycle, of_a_context_that_is_not_primary_nothing_is_asked) {
  machine.push_context();
  map_service service = make();
  map_batch batch = encode(service, tensor_list{5}, nullptr).value();
  machine.pop_context();
  expect_all(service, batch, status::wrong_context);
  machine.unbind_thread();
  expect_all(service, batch, status::wrong_context);
}

TEST_F(lifecycle, an_error_that_breaks_the_context_makes_the_service_dead) {
  std::optional<map_service> service{make()};
  map_batch batch = encode(*service, tensor_list{5}, nullptr).value();
  const service_statistics before = service->statistics();
  machine.fail_call(2, cudaErrorIllegalAddress);
  EXPECT_EQ(encode(*service, tensor_list{1}, nullptr).error().code, status::service_dead);
  const std::uint64_t calls = machine.all_calls();
  expect_all(*service, batch, status::service_dead, cudaErrorIllegalAddress);
  EXPECT_FALSE(batch);
  EXPECT_EQ(service->statistics().slots.leased, before.slots.leased);
  service.reset();
  EXPECT_EQ(machine.all_calls(), calls);
  EXPECT_TRUE(log.has(log_level::error, "700"));
}

TEST_F(lifecycle, slots_that_nobody_can_watch_make_the_service_dead) {
  map_service service = make();
  map_batch batch = encode(service, tensor_list{5}, nullptr).value();
  machine.streams.fail_call(pool_call::record_event, 1, cudaErrorInvalidResourceHandle);
  const auto released = batch.release();
  ASSERT_FALSE(released.has_value());
  EXPECT_EQ(released.error().code, status::service_dead);
  EXPECT_EQ(released.error().cuda_code, cudaErrorInvalidResourceHandle);
  EXPECT_FALSE(batch);
}

TEST_F(lifecycle, once_the_process_exits_destructors_do_nothing) {
  std::optional<map_service> service{make()};
  std::optional<map_batch> batch{encode(*service, tensor_list{5}, nullptr).value()};
  const std::uint64_t calls = machine.all_calls();
  machine.is_exiting = true;
  batch.reset();
  service.reset();
  EXPECT_EQ(machine.all_calls(), calls);
  EXPECT_FALSE(machine.is_clean());
  EXPECT_EQ(log.count(log_level::warning), 0u);
}

TEST_F(lifecycle, a_forked_child_is_told) {
  std::optional<map_service> service{make()};
  map_batch batch = encode(*service, tensor_list{5}, nullptr).value();
  const pid_t child = fork();
  if (child == 0) {
    const std::uint64_t calls = machine.all_calls();
    expect_all(*service, batch, status::forked);
    EXPECT_EQ(service->statistics().batches, 1u);
    service.reset();
    EXPECT_EQ(machine.all_calls(), calls);
    EXPECT_EQ(log.count(log_level::warning), 0u);
    _exit(HasFailure() ? 1 : 0);
  }
  int outcome = -1;
  ASSERT_EQ(waitpid(child, &outcome, 0), child);
  EXPECT_EQ(outcome, 0);
  EXPECT_TRUE(batch.release().has_value());
}

TEST_F(lifecycle, a_forked_child_of_a_dead_service_is_told_of_the_fork) {
  map_service service = make();
  map_batch batch = encode(service, tensor_list{5}, nullptr).value();
  machine.reset_device();
  ASSERT_EQ(encode(service, tensor_list{1}, nullptr).error().code, status::service_dead);
  const pid_t child = fork();
  if (child == 0) {
    expect_all(service, batch, status::forked);
    _exit(HasFailure() ? 1 : 0);
  }
  int outcome = -1;
  ASSERT_EQ(waitpid(child, &outcome, 0), child);
  EXPECT_EQ(outcome, 0);
}

TEST_F(lifecycle, the_first_error_that_breaks_it_is_the_reason_and_logged_alone) {
  service::context_guard guard{fake_machine::calls(), {machine.primary, 0, true}};
  for (const cudaError_t code : {cudaErrorIllegalAddress, cudaErrorLaunchFailure}) {
    const error told = guard.judge({.code = status::earlier_asynchronous_error, .cuda_code = code});
    EXPECT_EQ(told.code, status::service_dead);
    EXPECT_EQ(told.cuda_code, cudaErrorIllegalAddress);
  }
  EXPECT_EQ(guard.check().error().cuda_code, cudaErrorIllegalAddress);
  EXPECT_EQ(log.count(log_level::error), 1u);
}

TEST_F(lifecycle, a_release_of_several_parts_tells_the_first_failure) {
  map_service service = make();
  const cudaStream_t stream = machine.streams.open_stream();
  const tensor_list tensors{100};
  map_batch old = encode(service, tensors, stream).value();
  const std::uint32_t which[] = {3};
  map_batch updated = service.update(old, {which, 1}, base, tensors.source(), {stream_of(stream)}).value();
  ASSERT_TRUE(old.release().has_value());
  machine.streams.fail_call(pool_call::record_event, 1, cudaErrorInvalidResourceHandle);
  machine.streams.fail_call(pool_call::capture_id, 2, cudaErrorInvalidValue);
  const auto released = updated.release();
  ASSERT_FALSE(released.has_value());
  EXPECT_EQ(released.error().cuda_code, cudaErrorInvalidResourceHandle);
}

TEST_F(lifecycle, logs_tell_a_services_life) {
  { map_service service = make(); }
  EXPECT_TRUE(log.has(log_level::debug, "a service made in context"));
  EXPECT_TRUE(log.has(log_level::debug, "a service ends: 256 slots, of which 256 free"));
}

TEST_F(lifecycle, create_says_what_the_machine_lacks) {
  for (const status code : {status::no_driver, status::no_device, status::compute_capability_too_low,
                            status::driver_too_old, status::symbol_missing, status::no_kernel_image}) {
    machine.machine = failure{error{.code = code}};
    const auto refused = try_make({.capacity = 8});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, code);
  }
}

}  // namespace
}  // namespace tmap::testing

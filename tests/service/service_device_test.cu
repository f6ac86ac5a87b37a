// SPDX-License-Identifier: Apache-2.0
// Tests a service on a GPU: the maps of its batches equal the driver's, byte for byte, for every
// source format.
#include <tmap/device/batch_writer.cuh>
#include <tmap/device/patch_source.cuh>
#include <tmap/encode_batch.hpp>

#include "lib/service/create_service.hpp"
#include "lib/service/service_calls.hpp"
#include "lib/support/check.hpp"
#include "pool/device_streams.hpp"
#include "service/device_maps.cuh"

namespace tmap::testing {
namespace {

// [own_kernel]
__device__ device::guard_page safe_page;

/// A user's encoder, which encodes 32 maps per block of one warp.
__global__ void encode_reserved(const __grid_constant__ map_template base, const map_patch* patches,
                                map_batch_writer writer) {
  __shared__ device::warp_stage stage;
  const std::uint32_t first = blockIdx.x * device::warp_lanes;
  const std::uint32_t left = writer.count - first;
  const device::patch_array_reader source({patches}, base.fields);
  const device::map_guard guard{.page = &safe_page, .statuses = writer.statuses};
  device::encode_warp(base, source, writer, first, left < device::warp_lanes ? left : device::warp_lanes, stage, guard);
}
// [own_kernel]

constexpr std::uint64_t sizes[] = {1, 2, 33, 4097};

TEST_F(service_device, arrays_become_the_drivers_maps) {
  map_service service = make(8192);
  const own_stream stream;
  for (const std::uint64_t count : sizes) {
    const std::vector<map_patch> patches = rows_patches(count);
    const device_array<map_patch> source(patches);
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    const auto batch = service.encode(base, patch_array{source.data()}, count, {stream.ref()});
    ASSERT_TRUE(batch.has_value()) << to_string(batch.error());
    EXPECT_EQ(count_wrong(read(*batch, stream.get()), base, patches), 0u) << count;
  }
}

TEST_F(service_device, trusted_batches_become_the_drivers_maps) {
  map_service service = make(256);
  const own_stream stream;
  const std::vector<map_patch> patches = rows_patches(100);
  const device_array<map_patch> source(patches);
  const device_array<std::uint32_t> which(std::vector<std::uint32_t>{7});
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  const encode_run trusted{.where = {stream.ref()}, .choices = {.trusted = true}};
  const auto batch = service.encode(base, patch_array{source.data()}, 100, trusted);
  ASSERT_TRUE(batch.has_value()) << to_string(batch.error());
  EXPECT_EQ(batch->ref().statuses, nullptr);
  EXPECT_EQ(count_wrong(read(*batch, stream.get()), base, patches), 0u);
  const auto updated = service.update(*batch, {which.data(), 1}, base, patch_array{source.data()}, trusted);
  ASSERT_TRUE(updated.has_value()) << to_string(updated.error());
  EXPECT_EQ(count_wrong(read(*updated, stream.get()), base, patches), 0u);
}

TEST_F(service_device, columns_become_the_drivers_maps) {
  map_service service = make(8192);
  const own_stream stream;
  for (const std::uint64_t count : sizes) {
    const std::vector<map_patch> patches = rows_patches(count);
    std::vector<std::uint64_t> columns[4];
    for (const map_patch& patch : patches) {
      columns[0].push_back(patch.global_address);
      columns[1].push_back(patch.global_dim[0]);
      columns[2].push_back(patch.global_dim[1]);
      columns[3].push_back(patch.global_stride_bytes[0]);
    }
    const device_array<std::uint64_t> addresses(columns[0]), dims_0(columns[1]), dims_1(columns[2]), pitch(columns[3]);
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    const patch_columns source{addresses.data(), {dims_0.data(), dims_1.data()}, {pitch.data()}};
    const auto batch = service.encode(base, source, count, {stream.ref()});
    ASSERT_TRUE(batch.has_value()) << to_string(batch.error());
    EXPECT_EQ(count_wrong(read(*batch, stream.get()), base, patches), 0u) << count;
  }
}

/// Checks the maps of `count` tensors of 1 to 5 rows in one buffer, described by offsets.
template <class Offset>
void expect_ragged(map_service& service, std::uint64_t count, offset_format format) {
  const map_template base = make_template(rows_spec(), patch_address | patch_dim(1)).value();
  constexpr std::uint64_t buffer = std::uint64_t{1} << 33;
  std::vector<Offset> offsets;
  std::vector<map_patch> patches(count);
  Offset begin = 0;
  if (format == offset_format::prefix) offsets.push_back(0);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto rows = static_cast<Offset>(1 + i % 5);
    patches[i].global_address = buffer + static_cast<std::uint64_t>(begin) * 256;
    patches[i].global_dim[1] = static_cast<std::uint64_t>(rows);
    begin += rows;
    offsets.push_back(format == offset_format::sizes ? rows : begin);
  }
  const device_array<Offset> on_device(offsets);
  const std::uint64_t bytes = ragged_workspace_bytes(count, sizeof(Offset)).value();
  const device_array<unsigned char> workspace(bytes);
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  const own_stream stream;
  const ragged_rows source{buffer, 256, {on_device.data(), format, sizeof(Offset)}};
  const auto batch = service.encode(base, source, count, {{stream.ref(), {workspace.data(), bytes}}});
  ASSERT_TRUE(batch.has_value()) << to_string(batch.error());
  EXPECT_EQ(count_wrong(read(*batch, stream.get()), base, patches), 0u) << count;
}

TEST_F(service_device, ragged_rows_become_the_drivers_maps) {
  map_service service = make(8192);
  for (const std::uint64_t count : sizes) {
    for (const offset_format format : {offset_format::ends, offset_format::prefix, offset_format::sizes}) {
      expect_ragged<std::int32_t>(service, count, format);
      expect_ragged<std::int64_t>(service, count, format);
    }
  }
}

TEST_F(service_device, bad_and_empty_maps_are_named_and_counted) {
  constexpr std::uint64_t count = 100;
  map_service service = make(1024);
  const own_stream stream;
  // [statuses]
  std::vector<map_patch> patches = rows_patches(count);
  patches[17].global_address = 8;
  patches[40].global_dim[0] = 0;
  patches[90].global_stride_bytes[0] = 24;
  const device_array<map_patch> source(patches);
  const device_array<batch_header> counts(1);
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  const auto batch =
      service.encode(base, patch_array{source.data()}, count, {.where = {stream.ref()}, .header = counts.data()});
  ASSERT_TRUE(batch.has_value()) << to_string(batch.error());
  const seen_maps seen = read(*batch, stream.get());
  for (std::uint64_t i = 0; i < count; ++i) {
    EXPECT_EQ(seen.statuses[i], judge_patched(patched_spec(base, patches[i]), base.fields, nullptr, 0)) << i;
  }
  batch_header header;
  TMAP_ASSERT_CUDA(cudaMemcpy(&header, counts.data(), sizeof header, cudaMemcpyDeviceToHost));
  EXPECT_EQ(header.bad_count, 2u);
  EXPECT_EQ(header.first_bad, 17u);
  EXPECT_EQ(header.empty_count, 1u);
  // [statuses]
  const service_statistics statistics = service.statistics();
  EXPECT_EQ(statistics.bad_maps, 2u);
  EXPECT_EQ(statistics.empty_maps, 1u);
  EXPECT_EQ(statistics.encoded_maps, count);
  EXPECT_EQ(statistics.slots.leased, count);
  EXPECT_EQ(statistics.hazards, 0u);
}

TEST_F(service_device, a_kernel_encodes_into_reserved_slots) {
  map_service service = make(8192);
  const own_stream stream;
  for (const std::uint64_t count : sizes) {
    const std::vector<map_patch> patches = rows_patches(count);
    const device_array<map_patch> source(patches);
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    // [reserve]
    const auto batch = service.reserve(count, stream.ref());
    ASSERT_TRUE(batch.has_value()) << to_string(batch.error());
    const auto blocks = static_cast<std::uint32_t>((count + device::warp_lanes - 1) / device::warp_lanes);
    encode_reserved<<<blocks, device::warp_lanes, 0, stream.get()>>>(base, source.data(), batch->writer());
    // [reserve]
    TMAP_ASSERT_CUDA(cudaGetLastError());
    EXPECT_EQ(count_wrong(read(*batch, stream.get()), base, patches), 0u) << count;
  }
}

TEST_F(service_device, may_be_made_and_end_while_its_thread_captures) {
  const own_stream stream;
  cudaGraph_t graph{};
  TMAP_ASSERT_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal));
  {
    result<map_service> service = map_service::create({.capacity = 100});
    EXPECT_TRUE(service.has_value()) << to_string(service.error());
    if (service) {
      EXPECT_EQ(service->statistics().slots.free, 100u);
    }
  }
  EXPECT_EQ(cudaStreamEndCapture(stream.get(), &graph), cudaSuccess);
  TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
}

__global__ void never_runs() {}

/// Fails before it launches anything.
result<void> idle_encode(const map_template&, const tensor_source&, tensor_map*, std::uint64_t, const encode_run&,
                         kernels::batch_totals*) {
  return failure{error{status::out_of_memory}};
}

/// Makes a launch that CUDA refuses, because no block has so many threads.
result<void> refused_encode(const map_template&, const tensor_source&, tensor_map*, std::uint64_t,
                            const encode_run& run, kernels::batch_totals*) {
  never_runs<<<1, 4096, 0, run.where.stream.get()>>>();
  TMAP_TRY_CUDA(cudaGetLastError());
  return {};
}

TEST_F(service_device, a_captured_call_that_enqueued_nothing_gives_its_slots_back) {
  service::service_calls calls = service::real_service_calls();
  calls.encode = idle_encode;
  const own_stream stream;
  const device_array<map_patch> source(rows_patches(60));
  map_service service = service::create_service({.capacity = 60, .self_test = false}, calls).value();
  cudaGraph_t graph{};
  TMAP_ASSERT_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal));
  EXPECT_FALSE(service.encode(base, patch_array{source.data()}, 60, {stream.ref()}).has_value());
  if (checks_hazards) {  // the node that opens the slots is in the graph, so they stay with it
    EXPECT_EQ(service.statistics().slots.captured, 60u);
  } else {
    EXPECT_TRUE(comes_true([&] { return service.statistics().slots.free == 60; })) << to_json(service.statistics());
    TMAP_ASSERT_OK(service.reserve(60, stream.ref()));
    EXPECT_EQ(service.statistics().slots.captured, 60u);
  }
  EXPECT_EQ(cudaStreamEndCapture(stream.get(), &graph), cudaSuccess) << "the capture is intact";
  TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
  EXPECT_TRUE(comes_true([&] { return service.statistics().slots.free == 60; })) << to_json(service.statistics());
}

// CUDA ends a capture in which a launch fails, so there will be no graph. The next call checks the
// stream again.
TEST_F(service_device, a_captured_call_whose_launch_fails_gives_its_slots_back_when_the_capture_ends) {
  service::service_calls calls = service::real_service_calls();
  calls.encode = refused_encode;
  const own_stream stream;
  const device_array<map_patch> source(rows_patches(60));
  map_service service = service::create_service({.capacity = 60, .self_test = false}, calls).value();
  cudaGraph_t graph{};
  TMAP_ASSERT_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal));
  EXPECT_FALSE(service.encode(base, patch_array{source.data()}, 60, {stream.ref()}).has_value());
  EXPECT_EQ(cudaStreamEndCapture(stream.get(), &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaErrorStreamCaptureInvalidated);
  EXPECT_TRUE(comes_true([&] { return service.statistics().slots.pending == 60; })) << to_json(service.statistics());
  TMAP_ASSERT_OK(service.reserve(60, stream.ref()));
}

TEST_F(service_device, a_last_error_of_the_caller_harms_nothing_and_stays) {
  map_service service = make(100);
  const own_stream one;
  const own_stream two;
  const device_array<map_patch> source(rows_patches(60));
  const device_array<std::uint32_t> changed(std::vector<std::uint32_t>{3});
  const device_array<batch_header> counts(1);
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  const gate closed{one.get()};
  { const auto pending = service.encode(base, patch_array{source.data()}, 60, {one.ref()}).value(); }
  void* nothing = nullptr;
  ASSERT_EQ(cudaMalloc(&nothing, std::size_t{1} << 60), cudaErrorMemoryAllocation);
  {
    const auto batch =
        service.encode(base, patch_array{source.data()}, 60, {two.ref()});  // queries an event, which waits
    ASSERT_TRUE(batch.has_value()) << to_string(batch.error());
    const auto updated = service.update(*batch, {changed.data(), 1}, base, patch_array{source.data()},
                                        {.where = {two.ref()}, .header = counts.data()});
    EXPECT_TRUE(updated.has_value()) << to_string(updated.error());
    TMAP_ASSERT_OK(service.reserve(1, two.ref()));
    EXPECT_EQ(service.statistics().batches, 4u);
    EXPECT_EQ(service.encode(base, patch_array{source.data()}, 101, {two.ref()}).error().code, status::pool_exhausted);
    TMAP_ASSERT_OK(map_service::create({.capacity = 100}));
  }
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
}

TEST_F(service_device, statistics_wait_for_no_kernel) {
  map_service service = make(100);
  const own_stream stream;
  std::vector<map_patch> patches = rows_patches(3);
  patches[1].global_address = 8;
  const device_array<map_patch> source(patches);
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  gate closed{stream.get()};
  const auto batch = service.encode(base, patch_array{source.data()}, 3, {stream.ref()});
  ASSERT_TRUE(batch.has_value()) << to_string(batch.error());
  EXPECT_EQ(service.statistics().bad_maps, 0u);
  EXPECT_EQ(cudaStreamQuery(stream.get()), cudaErrorNotReady) << "the encode has not run yet";
  cudaGetLastError();
  closed.open();
  TMAP_ASSERT_CUDA(cudaStreamSynchronize(stream.get()));
  EXPECT_EQ(service.statistics().bad_maps, 1u);
}

TEST_F(service_device, slots_come_back_when_their_work_is_done) {
  map_service service = make(100);
  const own_stream one;
  const own_stream two;
  const device_array<map_patch> source(rows_patches(60));
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  for (int round = 0; round < 1000; ++round) {
    const own_stream& stream = round % 2 == 0 ? one : two;
    auto batch = service.encode(base, patch_array{source.data()}, 60, {stream.ref()});
    ASSERT_TRUE(batch.has_value()) << to_string(batch.error());
    TMAP_ASSERT_OK(batch->use_on((round % 2 == 0 ? two : one).ref()));
    TMAP_ASSERT_OK(batch->release());
  }
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  EXPECT_EQ(service.statistics().slots.free, 100u);
  EXPECT_EQ(service.statistics().peak_leased, 60u);
}

}  // namespace
}  // namespace tmap::testing

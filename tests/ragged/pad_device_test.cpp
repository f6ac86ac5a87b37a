// SPDX-License-Identifier: Apache-2.0
// Tests the hard cases of padding and cropping: bad tensors among good ones, long runs of empty
// ones, more boxes than the GPU holds at once, graphs, pending errors. Compares every byte of the
// dense batch and around it.
#include <tmap/ragged.hpp>

#include "device/gpu_fixture.hpp"
#include "device/recorded_call.hpp"
#include "ragged/route_settings.hpp"
#include "support/ragged_upload.hpp"

namespace tmap::ragged::testing {
namespace {

using namespace tmap::testing;

const cuda::stream_ref legacy_stream{cudaStream_t{}};
constexpr std::uint32_t element_bytes = 4;

/// Holds a batch of arrays, its dense tensors and a fill, on the host and on the device.
struct pad_job {
  pad_job(random_source& random, const host_batch& source_, const host_dense& dense_)
      : source(source_),
        dense(dense_),
        from(source, source_form::array, array_side::device),
        to(dense.batch.bytes),
        scratch(workspace_for(source.tensors.size(), source.rank)),
        statuses(source.tensors.size()) {
    for (unsigned char& byte : fill.bytes) byte = static_cast<unsigned char>(random.bits());
  }

  pad_job(random_source& random, const host_batch& source_, const extents& shape)
      : pad_job(random, source_, lay_out_dense(random, shape, source_.tensors.size(), source_.rank, element_bytes)) {}

  result<void> pad_on(const tensor_batch& described, const route_setting& setting, cuda::stream_ref stream) const {
    run with = run_of(setting, {stream, all_of(scratch)});
    with.statuses = statuses.data();
    return pad(described, dense.described(to.address()), fill, with);
  }

  void expect_padded(const std::vector<bool>& is_bad = {}) {
    reference::pad(source, dense.batch, fill, is_bad);
    expect_bytes(dense.batch.bytes, to.download());
  }

  bool is_cut(std::uint64_t i) const {
    const extents& shape = dense.batch.tensors[i].shape;
    for (std::uint32_t axis = 0; axis < source.rank; ++axis) {
      if (source.tensors[i].shape.dim[axis] > shape.dim[axis]) return true;
    }
    return false;
  }

  host_batch source;
  host_dense dense;
  fill_value fill;
  device_side from;
  device_array<unsigned char> to;
  device_array<unsigned char> scratch;
  device_array<tensor_status> statuses;
};

std::vector<map_patch> patches_of(const tensor_batch& described) {
  std::vector<map_patch> patches(described.count);
  const map_patch* const given = std::get<patch_array>(described.tensors).patches;
  EXPECT_EQ(cudaMemcpy(patches.data(), given, patches.size() * sizeof(map_patch), cudaMemcpyDeviceToHost), cudaSuccess);
  return patches;
}

/// Places rows and tensors at multiples of 16 bytes, as maps require.
host_batch lay_out_for_maps(random_source& random, const std::vector<extents>& shapes, std::uint32_t rank) {
  constexpr looseness whole_units{16, 0};
  host_batch batch{element_bytes, rank, {}, {}};
  for (const extents& shape : shapes) {
    host_tensor tensor;
    tensor.shape = shape;
    const std::uint64_t span = tmap::testing::detail::set_strides(tensor, batch, whole_units, random);
    tmap::testing::detail::append(batch, tensor, span, whole_units, random);
  }
  for (unsigned char& byte : batch.bytes) byte = static_cast<unsigned char>(random.bits());
  return batch;
}

/// Does the same for dense tensors, whose rows are whole units.
host_dense lay_out_dense_for_maps(random_source& random, const extents& shape, std::uint64_t count,
                                  std::uint32_t rank) {
  host_dense dense{lay_out_for_maps(random, {shape}, rank), shape.elements() * element_bytes};
  for (std::uint64_t i = 1; i < count; ++i) {
    dense.batch.tensors.push_back(dense.batch.tensors.back());
    dense.batch.tensors.back().begin += dense.pitch;
  }
  const std::size_t one = dense.batch.bytes.size();
  dense.batch.bytes.resize(one + (count - 1) * dense.pitch);
  for (std::size_t i = one; i < dense.batch.bytes.size(); ++i) {
    dense.batch.bytes[i] = static_cast<unsigned char>(random.bits());
  }
  return dense;
}

class ragged_pad : public gpu_test, public ::testing::WithParamInterface<route_setting> {};

TEST_P(ragged_pad, bad_tensors_leave_their_places_filled) {
  random_source random(81);
  const std::vector<extents> shapes = random_shapes(random, {3, 400, 2000, false, 0});
  pad_job job(random, lay_out(random, shapes, 3, element_bytes, source_form::array), {{12, 8, 20, 1, 1}});
  std::vector<map_patch> patches = patches_of(job.from.described());
  std::vector<bool> is_bad(shapes.size());
  for (std::uint64_t i = 0; i < patches.size(); i += 3) {
    is_bad[i] = true;
    switch (i % 4) {
      case 0: patches[i].global_address = 0; break;
      case 1: patches[i].global_address += 2; break;
      case 2: patches[i].global_dim[random.below(3)] = ~std::uint64_t{0}; break;
      default: patches[i].global_dim[random.below(3)] = (std::uint64_t{1} << 40) + 1;
    }
  }
  const device_array<map_patch> spoilt(patches);
  tensor_batch described = job.from.described();
  described.tensors = patch_array{spoilt.data()};
  TMAP_ASSERT_OK(job.pad_on(described, GetParam(), legacy_stream));
  job.expect_padded(is_bad);
  const std::vector<tensor_status> found = job.statuses.download();
  for (std::uint64_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].is_bad() && !found[i].has(fault::truncated), is_bad[i]) << "tensor " << i;
    if (!is_bad[i]) {
      ASSERT_EQ(found[i].has(fault::truncated), job.is_cut(i)) << "tensor " << i;
    }
  }
}

TEST_P(ragged_pad, long_runs_of_tensors_without_elements) {
  random_source random(82);
  for (std::uint32_t rank = 1; rank <= max_rank; ++rank) {
    std::vector<extents> shapes = random_shapes(random, {rank, scaled(3000), 300, false, 0});
    for (std::uint64_t i = 0; i < shapes.size(); ++i) {
      if (i % 1024 != 700) shapes[i].dim[random.below(rank)] = 0;
    }
    pad_job job(random, lay_out(random, shapes, rank, element_bytes, source_form::array),
                random_shape(random, {rank, 1, 200, false, 0}));
    TMAP_ASSERT_OK(job.pad_on(job.from.described(), GetParam(), legacy_stream));
    job.expect_padded();
    ASSERT_FALSE(HasFailure()) << "rank " << rank;
  }
}

TEST_P(ragged_pad, more_boxes_than_all_warps_hold_at_once) {
  random_source random(83);
  std::vector<extents> shapes;
  for (const std::uint64_t rows : {2503, 1, 4000, 9001, 3999})
    shapes.push_back({{rows == 1 ? 700u : 332u, rows, 1, 1, 1}});
  pad_job job(random, lay_out_for_maps(random, shapes, 2),
              lay_out_dense_for_maps(random, {{336, 4000, 1, 1, 1}}, shapes.size(), 2));
  TMAP_ASSERT_OK(job.pad_on(job.from.described(), GetParam(), legacy_stream));
  job.expect_padded();
}

/// A captured operation reads its arrays again at each replay.
TEST_P(ragged_pad, a_captured_graph_replays_with_other_shapes_and_addresses) {
  random_source random(84);
  constexpr std::uint64_t count = 64;
  const auto random_sources = [&] {
    return lay_out(random, random_shapes(random, {3, count, 3000, false, 9}), 3, element_bytes, source_form::array);
  };
  pad_job job(random, random_sources(), {{16, 9, 11, 1, 1}});
  const device_array<map_patch> patches(patches_of(job.from.described()));
  tensor_batch described = job.from.described();
  described.tensors = patch_array{patches.data()};
  const recorded_call graph([&](cudaStream_t stream) { return job.pad_on(described, GetParam(), stream); });
  for (int replay = 0; replay < 10; ++replay) {
    job.source = random_sources();
    const device_side from(job.source, source_form::array, array_side::device);
    patches.upload(patches_of(from.described()));
    graph.replay();
    job.expect_padded();
    ASSERT_FALSE(HasFailure()) << "replay " << replay;
  }
}

TEST_P(ragged_pad, an_error_that_was_pending_before_fails_nothing) {
  random_source random(85);
  const std::vector<extents> shapes = random_shapes(random, {2, 10, 2000, false, 0});
  pad_job job(random, lay_out(random, shapes, 2, element_bytes, source_form::array), {{20, 30, 1, 1, 1}});
  EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
  TMAP_ASSERT_OK(job.pad_on(job.from.described(), GetParam(), legacy_stream));
  static_cast<void>(cudaGetLastError());
  job.expect_padded();
}

INSTANTIATE_TEST_SUITE_P(routes, ragged_pad, ::testing::ValuesIn(settings), name_of);

}  // namespace
}  // namespace tmap::ragged::testing

// SPDX-License-Identifier: Apache-2.0
#include "conformance/contents.hpp"
#include "conformance/gpu_tiles.cuh"
#include "conformance/tile_engine.hpp"
#include "device/gpu_fixture.hpp"

#include <tmap/encode.hpp>

#include <algorithm>

namespace tmap::conformance {
namespace {

constexpr std::size_t batch_tiles = 256;

error cuda_error(cudaError_t code) {
  return {.code = status::cuda_failure, .cuda_code = static_cast<std::int32_t>(code)};
}

error timed_out() {
  return {.code = status::cuda_failure, .cuda_code = cudaErrorLaunchTimeout};
}

/// The engine allocates this in its first run, because the engine must exist without a GPU to
/// report that there is none.
struct batch_memory {
  testing::device_array<std::byte> arenas{batch_tiles * arena_bytes};
  testing::device_array<std::byte> images{batch_tiles * shared_bytes};
  testing::device_array<tensor_map> maps{batch_tiles};
  testing::device_array<tile_job> jobs{batch_tiles};
  testing::device_array<std::uint8_t> in_time{batch_tiles};
};

class gpu_engine final : public tile_engine {
 public:
  std::string unavailable() const override {
    int devices = 0;
    const cudaError_t asked = cudaGetDeviceCount(&devices);
    return asked == cudaSuccess && devices > 0 ? "" : "no GPU";
  }

  void run(cuda::std::span<const tile_case> cases,
           const std::function<void(std::size_t, const outcome&)>& report) override {
    if (arena_contents_.empty()) load_contents();
    if (device_ == nullptr) device_ = std::make_unique<batch_memory>();
    const int shared = static_cast<int>(shared_bytes);
    cudaFuncSetAttribute(run_tiles, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    for (std::size_t first = 0; first < cases.size(); first += batch_tiles) {
      const auto batch = cases.subspan(first, std::min(batch_tiles, cases.size() - first));
      run_batch(batch);
      for (std::size_t i = 0; i < batch.size(); ++i) report(first + i, outcome_of(batch[i], i));
    }
  }

 private:
  void load_contents() {
    for (std::uint32_t type = 0; type < hopper_element_type_count; ++type) {
      arena_contents_.push_back(contents(static_cast<element_type>(type), arena_seed, arena_bytes));
      tile_contents_.push_back(contents(static_cast<element_type>(type), tile_seed, shared_bytes));
    }
  }

  void prepare(const tile_case& tile, std::size_t i) {
    const auto type = static_cast<std::uint32_t>(tile.spec.type);
    std::copy(arena_contents_[type].begin(), arena_contents_[type].end(), arenas_.begin() + i * arena_bytes);
    const auto image = images_.begin() + i * shared_bytes;
    if (tile.kind == copy_kind::load) {
      std::fill_n(image, shared_bytes, poison);
    } else {
      std::copy(tile_contents_[type].begin(), tile_contents_[type].end(), image);
    }
    tensor_spec spec = tile.spec;
    spec.global_address += reinterpret_cast<std::uint64_t>(device_->arenas.data() + i * arena_bytes);
    const auto map = encode(spec);
    encoded_[i] = map ? result<void>{} : failure{map.error()};
    maps_[i] = map ? *map : tensor_map{};
    jobs_[i] = {.kind = tile.kind,
                .operation = tile.operation,
                .instruction_rank = spec.rank,
                .shared_offset = tile.shared_offset,
                .expected_bytes = static_cast<std::uint32_t>(tile_bytes(spec))};
    std::copy_n(tile.coordinates, max_rank, jobs_[i].coordinates);
  }

  void run_batch(cuda::std::span<const tile_case> batch) {
    for (std::size_t i = 0; i < batch.size(); ++i) prepare(batch[i], i);
    device_->arenas.upload(arenas_);
    device_->images.upload(images_);
    device_->jobs.upload(jobs_);
    device_->maps.upload(maps_);
    const auto blocks = static_cast<unsigned>(batch.size());
    run_tiles<<<blocks, threads_of_tile_block, shared_bytes>>>(device_->jobs.data(), device_->maps.data(),
                                                               device_->images.data(), device_->in_time.data());
    failed_ = cudaDeviceSynchronize();
    arenas_ = device_->arenas.download();
    images_ = device_->images.download();
    in_time_ = device_->in_time.download();
  }

  outcome outcome_of(const tile_case& tile, std::size_t i) const {
    outcome left;
    left.arena = {arenas_.data() + i * arena_bytes, arena_bytes};
    left.shared = {images_.data() + i * shared_bytes, shared_bytes};
    left.barrier_bytes = tile.kind == copy_kind::load ? jobs_[i].expected_bytes : 0;
    if (!encoded_[i]) {
      left.finished = encoded_[i];
    } else if (failed_ != cudaSuccess) {
      left.finished = failure{cuda_error(failed_)};
    } else if (in_time_[i] == 0) {
      left.finished = failure{timed_out()};
    }
    return left;
  }

  std::vector<std::vector<std::byte>> arena_contents_;
  std::vector<std::vector<std::byte>> tile_contents_;
  std::vector<std::byte> arenas_ = std::vector<std::byte>(batch_tiles * arena_bytes);
  std::vector<std::byte> images_ = std::vector<std::byte>(batch_tiles * shared_bytes);
  std::vector<tensor_map> maps_ = std::vector<tensor_map>(batch_tiles);
  std::vector<tile_job> jobs_ = std::vector<tile_job>(batch_tiles);
  std::vector<result<void>> encoded_ = std::vector<result<void>>(batch_tiles);
  std::vector<std::uint8_t> in_time_ = std::vector<std::uint8_t>(batch_tiles);
  cudaError_t failed_{cudaSuccess};
  std::unique_ptr<batch_memory> device_;
};

}  // namespace

std::unique_ptr<tile_engine> make_gpu_engine() {
  return std::make_unique<gpu_engine>();
}

}  // namespace tmap::conformance

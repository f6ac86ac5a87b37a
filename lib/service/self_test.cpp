// SPDX-License-Identifier: Apache-2.0
#include "lib/service/self_test.hpp"

#include <fmt/format.h>

#include <mutex>
#include <set>

#include "lib/driver/large_mark.hpp"
#include "lib/service/private_stream.hpp"
#include "lib/support/check.hpp"
#include "lib/support/log.hpp"

namespace tmap::service {
namespace {

/// A test case: the kernel must make `expected` from `base` and `patch`.
struct known_answer {
  map_template base;
  map_patch patch;
  tensor_map expected;
};

map_patch patch_of(const tensor_spec& spec) {
  map_patch patch{};
  patch.global_address = spec.global_address;
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    patch.global_dim[axis] = spec.global_dim[axis];
    if (axis + 1 < max_rank) patch.global_stride_bytes[axis] = spec.global_stride_bytes[axis];
    patch.box_dim[axis] = spec.box_dim[axis];
    patch.element_stride[axis] = static_cast<std::uint16_t>(spec.element_stride[axis]);
  }
  return patch;
}

result<known_answer> answer_from_driver(const tensor_spec& spec, const service_calls& calls) {
  const result<map_template> base = calls.driver_template(spec, patch_everything(spec.rank));
  if (!base) return failure{base.error()};
  const result<tensor_map> map = calls.driver_map(spec);
  if (!map) return failure{map.error()};
  return known_answer{*base, patch_of(spec), driver::without_large_mark(*map)};
}

/// A map from a zeroed template lacks L2 promotion and the driver's notes, which words 8 and 9
/// hold.
result<known_answer> answer_from_zeroes(const tensor_spec& spec, const service_calls& calls) {
  const result<map_template> base = make_zeroed_template(spec, patch_everything(spec.rank));
  if (!base) return failure{base.error()};
  tensor_spec without_promotion = spec;
  without_promotion.l2_promotion = l2_promotion::none;
  result<tensor_map> map = calls.driver_map(without_promotion);
  if (!map) return failure{map.error()};
  map->words[8] = 0;
  map->words[9] = 0;
  return known_answer{*base, patch_of(spec), *map};
}

result<std::vector<known_answer>> all_answers(const service_calls& calls) {
  std::vector<known_answer> answers;
  for (const auto make : {answer_from_driver, answer_from_zeroes}) {
    for (const tensor_spec& spec : golden_specs()) {
      const result<known_answer> answer = make(spec, calls);
      if (!answer) return failure{answer.error()};
      answers.push_back(*answer);
    }
  }
  return answers;
}

/// Memory for maps and their patches on host and device. Host memory is pinned, because copies of
/// pageable memory may use the legacy stream, which breaks a capture. Owned.
class test_memory {
 public:
  struct arrays {
    tensor_map* maps;
    map_patch* patches;
  };

  test_memory(const service_calls& calls, std::size_t cases) : calls_{calls}, cases_{cases} {}
  test_memory(const test_memory&) = delete;
  test_memory& operator=(const test_memory&) = delete;
  ~test_memory() {
    if (device_ != nullptr) static_cast<void>(calls_.pool->free(device_));
    if (host_ != nullptr) static_cast<void>(calls_.free_host(host_));
  }

  cudaError_t allocate() {
    const std::size_t bytes = cases_ * (sizeof(tensor_map) + sizeof(map_patch));
    const cudaError_t code = calls_.pool->allocate(&device_, bytes);
    return code == cudaSuccess ? calls_.allocate_host(&host_, bytes) : code;
  }
  arrays device() const { return arrays_in(device_); }
  arrays host() const { return arrays_in(host_); }

 private:
  arrays arrays_in(void* data) const {
    auto* const maps = static_cast<tensor_map*>(data);
    return {maps, reinterpret_cast<map_patch*>(maps + cases_)};
  }

  const service_calls& calls_;
  std::size_t cases_;
  void* device_{};
  void* host_{};
};

/// Whether the GPU takes no zeroed templates; these cases are then left out.
bool cannot_begin(const map_template& base, const error& e) {
  return base.map == tensor_map{} && e.code == status::unsupported;
}

result<std::vector<tensor_map>> encode_by_kernel(const std::vector<known_answer>& answers, const service_calls& calls) {
  private_stream stream{calls};
  test_memory memory{calls, answers.size()};
  TMAP_TRY_CUDA(stream.open());
  TMAP_TRY_CUDA(memory.allocate());
  const std::size_t cases = answers.size();
  const test_memory::arrays host = memory.host();
  const test_memory::arrays device = memory.device();
  std::vector<std::size_t> left_out;
  for (std::size_t i = 0; i < cases; ++i) host.patches[i] = answers[i].patch;
  TMAP_TRY_CUDA(calls.copy(device.patches, host.patches, cases * sizeof(map_patch), stream.get()));
  const encode_run run{{cuda::stream_ref{stream.get()}}};
  for (std::size_t i = 0; i < cases; ++i) {
    const result<void> encoded =
        calls.encode(answers[i].base, patch_array{device.patches + i}, device.maps + i, 1, run, nullptr);
    if (!encoded && !cannot_begin(answers[i].base, encoded.error())) return failure{encoded.error()};
    if (!encoded) left_out.push_back(i);
  }
  TMAP_TRY_CUDA(calls.copy(host.maps, device.maps, cases * sizeof(tensor_map), stream.get()));
  TMAP_TRY_CUDA(calls.wait(stream.get()));
  std::vector<tensor_map> maps(host.maps, host.maps + cases);
  for (const std::size_t i : left_out) maps[i] = answers[i].expected;
  return maps;
}

}  // namespace

result<void> run_self_test(const service_calls& calls) {
  const result<std::vector<known_answer>> answers = all_answers(calls);
  if (!answers) return failure{answers.error()};
  const result<std::vector<tensor_map>> maps = encode_by_kernel(*answers, calls);
  if (!maps) return failure{maps.error()};
  for (std::size_t i = 0; i < maps->size(); ++i) {
    if ((*maps)[i] != (*answers)[i].expected) {
      return failure{error{.code = status::self_test_failed, .found = i + 1, .allowed = maps->size()}};
    }
  }
  return {};
}

result<void> pass_self_test(std::uint64_t context, const service_calls& calls) {
  static std::mutex mutex;
  static std::set<std::uint64_t> passed;
  const std::lock_guard lock{mutex};
  if (passed.contains(context)) return {};
  const result<void> outcome = run_self_test(calls);
  if (outcome) {
    passed.insert(context);
    support::log_made(log_level::info, [&] { return fmt::format("self-test passed in context {}", context); });
  } else if (outcome.error().code == status::self_test_failed) {
    support::log_made(log_level::error, [&] { return to_string(outcome.error()); });
  }
  return outcome;
}

}  // namespace tmap::service

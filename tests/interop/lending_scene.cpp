// SPDX-License-Identifier: Apache-2.0
#include "interop/lending_scene.hpp"

namespace tmap::testing {
namespace {

/// Returns all counts except the peak, which includes slots that a call takes and gives back.
std::string counts_of(const map_service& service) {
  service_statistics statistics = service.statistics();
  statistics.peak_leased = 0;
  return to_json(statistics);
}

}  // namespace

log_listener::log_listener() {
  set_log_callback(
      [](log_level, const char* text, void* user) {
        if (*text == '\0') ++static_cast<log_listener*>(user)->empty_lines_;
      },
      this);
}

log_listener::~log_listener() {
  set_log_callback(nullptr, nullptr);
}

all_sources::all_sources(const tensor_list& tensors) {
  std::int32_t end = 0;
  for (const map_patch& patch : tensors.patches) {
    address.push_back(patch.global_address);
    stride.push_back(patch.global_stride_bytes[0]);
    units.push_back(static_cast<std::uint32_t>(patch.global_address / 16));
    stride_units.push_back(static_cast<std::uint32_t>(patch.global_stride_bytes[0] / 16));
    for (int axis = 0; axis < 2; ++axis) {
      dims[axis].push_back(patch.global_dim[axis]);
      dims_32[axis].push_back(static_cast<std::uint32_t>(patch.global_dim[axis]));
    }
    end += static_cast<std::int32_t>(patch.global_dim[1]);
    ends_32.push_back(end);
    ends_64.push_back(end);
  }
}

lending_scene::lending_scene() = default;

std::uint64_t lending_scene::wrong_maps(const map_batch& of) const {
  std::uint64_t wrong = 0;
  for (std::uint32_t i = 0; i < of.size(); ++i) wrong += *of.ref().slot(i) != map_of(base, tensors.patches[i]) ? 1 : 0;
  return wrong;
}

std::string lending_scene::state() {
  machine.streams.run_all();
  std::string text = service ? counts_of(*service) : "no service";
  text += lent ? std::to_string(batch.size()) + " maps, wrong " + std::to_string(wrong_maps(batch)) : " no batch";
  text += ", empty lines " + std::to_string(log.empty_lines()) + ", violations " +
          std::to_string(machine.streams.violations().size());
  return text;
}

std::string lending_scene::work() {
  if (!service) service = make_service().value();
  if (!lent || !batch) lent.emplace(encode(base, tensors.source()).value());
  std::string text;
  const auto tell = [&](result<map_batch> made) {
    text += made ? std::to_string(wrong_maps(*made)) + " wrong, " : to_string(made.error());
    if (made) text += text_of(made->use_on(cuda::stream_ref{cudaStreamLegacy})) + ", ";
    if (made) text += text_of(made->release()) + '\n';
  };
  for (int round = 0; round < 3; ++round) {
    tell(encode_counted());
    tell(update(few, tensors.source()));
    tell(service->reserve(7, cuda::stream_ref{other}));
    text += state() + '\n';
  }
  lent.reset();
  text += state();
  service.reset();
  machine.streams.run_all();
  return text + (machine.is_clean() ? ", clean" : ", something is left");
}

std::string captured_scene::work() {
  updating = other;
  const cudaGraph_t graph = machine.streams.end_capture(home);
  if (graph == nullptr) return "the capture broke";
  machine.streams.destroy_graph(graph);
  return lending_scene::work();
}

}  // namespace tmap::testing

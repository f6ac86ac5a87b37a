// SPDX-License-Identifier: Apache-2.0
// Tests services and batches of C over the fake machine.
#include <tmap/tmap.h>

#include <cstring>
#include <memory>
#include <utility>

#include "interop/lending_scene.hpp"
#include "interop/sized.hpp"
#include "lib/interop/objects.hpp"

namespace tmap::testing {
namespace {

constexpr std::uint64_t untouched = 9;

/// Removes the peak, which includes slots that a call takes and gives back.
std::string without_peak(std::string counts) {
  const std::size_t begin = counts.find("\"peak_leased\"");
  return begin == std::string::npos ? counts : counts.erase(begin, counts.find(',', begin) - begin);
}

/// Holds the objects of the scene by handles. Outputs are poisoned.
template <class Scene>
struct by_handles : Scene {
  by_handles() {
    using namespace interop;
    EXPECT_TRUE(hand_out(templates(), std::make_shared<const map_template>(this->base), &c_base).is_ok());
    EXPECT_TRUE(hand_out(services(), std::make_shared<map_service>(std::move(*this->service)), &c_service).is_ok());
    EXPECT_TRUE(hand_out(batches(), std::make_shared<held_batch>(std::move(this->batch)), &c_batch).is_ok());
    this->service.reset();
    this->lent.reset();
    source.struct_size = sizeof source;
    source.kind = TMAP_SOURCE_PATCHES;
    source.of.patches = reinterpret_cast<const tmap_map_patch*>(this->tensors.patches.data());
  }
  ~by_handles() { end_all(); }

  std::string state() {
    this->machine.streams.run_all();
    std::string shown = text[0] == 'x' ? "no text" : text;
    shown += made.value == untouched ? ", no batch made, " : ", a batch made, ";
    char counts[1024] = {};
    shown += tmap_status_name(tmap_service_statistics(c_service, counts, sizeof counts, nullptr));
    shown += without_peak(counts);
    tmap_batch_info info{};
    info.struct_size = sizeof info;
    shown += tmap_status_name(tmap_batch_query(c_batch, &info));
    return shown + std::to_string(info.ref.count) + (this->log.empty_lines() == 0 ? "" : ", an empty line");
  }
  std::string work() {
    end_all();
    return Scene::work();
  }
  void end_all() {
    for (tmap_batch* const each : {&made, &c_batch}) {
      if (each->value != untouched) tmap_batch_release(std::exchange(*each, {untouched}));
    }
    tmap_service_destroy(c_service);
    tmap_template_destroy(c_base);
  }

  tmap_template c_base{untouched};
  tmap_service c_service{untouched};
  tmap_batch c_batch{untouched};
  tmap_batch made{untouched};
  tmap_patch_source source{};
  char text[1024] = "x";
  std::size_t length{};
};

template <class Call>
public_call in_both(const char* name, const Call& call) {
  return {name, [call] {
            in<by_handles<lending_scene>>("not captured", call).check();
            in<by_handles<captured_scene>>("captured", call).check();
          }};
}

}  // namespace

std::vector<public_call> service_calls_of_c() {
  return {
      plain("tmap_service_memory_bytes", [] { return std::uint64_t{tmap_service_memory_bytes(10)}; }),
      plain("tmap_service_create",
            [] {
              tmap_service made{untouched};
              const tmap_status created = tmap_service_create(nullptr, &made);
              return created == TMAP_OK ? tmap_service_destroy(made) : created;
            }),
      in_both("tmap_service_destroy", [](auto& s) { return tmap_service_destroy(s.c_service); }),
      in_both("tmap_service_statistics",
              [](auto& s) { return tmap_service_statistics(s.c_service, s.text, sizeof s.text, &s.length); }),
      in_both("tmap_service_encode",
              [](auto& s) {
                const tmap_call call = call_on(s.home);
                return tmap_service_encode(s.c_service, s.c_base, &s.source, s.maps, &s.made, &call);
              }),
      in_both("tmap_service_update",
              [](auto& s) {
                const tmap_call call = call_on(s.updating);
                return tmap_service_update(s.c_service, s.c_batch, s.few.data(), s.few.size(), s.c_base, &s.source,
                                           &s.made, &call);
              }),
      in_both("tmap_service_reserve", [](auto& s) { return tmap_service_reserve(s.c_service, 7, &s.made, s.home); }),
      in_both("tmap_batch_query",
              [](auto& s) {
                tmap_batch_info info{};
                info.struct_size = sizeof info;
                return tmap_batch_query(s.c_batch, &info);
              }),
      in_both("tmap_batch_use_on", [](auto& s) { return tmap_batch_use_on(s.c_batch, s.other); }),
      in_both("tmap_batch_release", [](auto& s) { return tmap_batch_release(s.c_batch); }),
  };
}

}  // namespace tmap::testing

// SPDX-License-Identifier: Apache-2.0
// Runs all that a plain C++ program can do with tmap, with or without a GPU: judge, explain,
// encode, read bits. Without a driver or a GPU, calls that need one return the reason.
#include <tmap/decode.hpp>
#include <tmap/encode.hpp>
#include <tmap/encode_batch.hpp>
#include <tmap/map_service.hpp>
#include <tmap/validate.hpp>

#include <cstdio>

namespace {

int failures = 0;

void expect(bool holds, const char* what) {
  std::printf("%s: %s\n", holds ? "ok" : "FAILED", what);
  if (!holds) ++failures;
}

tmap::tensor_spec matrix() {
  tmap::tensor_spec spec;
  spec.global_address = 4096;
  spec.type = tmap::element_type::f16;
  spec.rank = 2;
  spec.global_dim[0] = 512;
  spec.global_dim[1] = 300;
  spec.global_stride_bytes[0] = 1024;
  spec.box_dim[0] = 64;
  spec.box_dim[1] = 32;
  return spec;
}

/// Returns true for a value, and for an error whose reason is the machine.
template <class T>
bool is_answered(const tmap::result<T>& answer) {
  if (answer) return true;
  std::printf("    %s\n", to_string(answer.error()).c_str());
  switch (answer.error().code) {
    case tmap::status::no_driver:
    case tmap::status::no_device:
    case tmap::status::compute_capability_too_low:
    case tmap::status::driver_too_old:
    case tmap::status::symbol_missing:
    case tmap::status::no_kernel_image: return true;
    default: return false;
  }
}

// [judge]
void judge() {
  expect(tmap::validate(matrix()).empty(), "a good spec breaks no rule");
  tmap::tensor_spec bad = matrix();
  bad.global_stride_bytes[0] = 1032;
  bad.box_dim[1] = 300;
  const tmap::violations broken = tmap::validate(bad);
  std::printf("%s\n", to_string(broken).c_str());
  expect(broken.size() == 2, "a bad spec breaks two");
  const auto refused = tmap::encode(bad);
  expect(!refused && refused.error().code == tmap::status::rule_broken, "it is refused before the driver is asked");
}
// [judge]

// [bits]
void read_bits() {
  const auto map = tmap::encode_bits(matrix());
  expect(map.has_value(), "its bits are made");
  if (!map) return;
  const auto decoded = tmap::decode(*map);
  expect(decoded && decoded->spec.global_dim[1] == 300 && decoded->spec.box_dim[0] == 64, "and read again");
  const auto by_the_driver = tmap::encode(matrix());
  expect(is_answered(by_the_driver), "the driver encodes, or there is a reason why not");
  if (by_the_driver) expect(*by_the_driver == *map, "the driver's bytes are the same");
}
// [bits]

}  // namespace

int main() {
  judge();
  read_bits();
  expect(is_answered(tmap::make_template(matrix(), tmap::patch_extents(2))), "a template, or a reason why not");
  expect(is_answered(tmap::map_service::create()), "a service, or a reason why not");
  return failures == 0 ? 0 : 1;
}

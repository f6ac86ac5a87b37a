// SPDX-License-Identifier: Apache-2.0
#include <tmap/encode.hpp>

#include "lib/driver/map_driver.hpp"

namespace tmap {

driver::map_driver& driver::process_driver() {
  static map_driver driver{real_runtime()};
  return driver;
}

result<tensor_map> encode(const tensor_spec& spec) {
  return driver::process_driver().encode(spec);
}

result<tensor_map> encode(const im2col_spec& spec) {
  return driver::process_driver().encode(spec);
}

result<tensor_map> encode(const im2col_wide_spec& spec) {
  return driver::process_driver().encode(spec);
}

result<tensor_map> replace_address(const tensor_map& map, std::uint64_t global_address) {
  return driver::process_driver().replace_address(map, global_address);
}

result<device_limits> query_device_limits() {
  return driver::process_driver().query_limits();
}

}  // namespace tmap

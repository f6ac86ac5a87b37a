// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "apps/tmap/any_spec.hpp"
#include "apps/tmap/pad/outcome.hpp"

namespace tmap::tool {

// Code that makes the map of a legal spec. The address is an argument of that code.

/// Returns the functions make_spec and make_map, for tmap's C++ interface.
std::string cpp_code(const any_spec& any);

/// Returns a function make_map around the driver's own call. It compiles as C and C++.
std::string driver_code(const any_spec& any);

/// Returns the functions make_spec and make_map, for tmap's Python package, which has tiled specs
/// only.
outcome<std::string> python_code(const any_spec& any);

}  // namespace tmap::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the maps of products are best made: by a launch of its own before each product, or by the kernel that has made
// the groups' sizes.

namespace tmap::bench {

/// Prints two tables. How many shapes gave results that depend on where their maps were made; these are not timed.
int measure_routing();

}  // namespace tmap::bench

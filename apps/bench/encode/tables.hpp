// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tables of encode_bench, one a file. Each measures, then prints.

#include "apps/support/timing.hpp"

namespace tmap::apps::bench {

/// One batch beside an empty kernel and its floor, and whether the goals are met.
void print_goals(const timer& clock);

/// The ways to give patches.
void print_formats(const timer& clock);

/// What one would do without tmap.
void print_peers(const timer& clock);

/// What validation and its reports cost.
void print_judging(const timer& clock);

/// A consumer whose maps were made earlier, just before it, or by itself.
void print_fused(const timer& clock);

/// The service's own time on the host.
void print_service(const timer& clock);

}  // namespace tmap::apps::bench

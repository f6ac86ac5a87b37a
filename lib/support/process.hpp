// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tmap::support {

/// Returns whether the process began to exit. Watches for it from the first call on.
bool is_exiting();

/// Returns the id of this process, in a forked child that of the child.
int process_id();

}  // namespace tmap::support

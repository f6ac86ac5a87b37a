// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tmap::apps {

/// When text has colours: on terminals, always, or never.
enum class colour_choice { automatic, always, never };

/// Decides for the whole program. Before the first call the choice is `automatic`, which also obeys
/// NO_COLOR (https://no-color.org) and TERM=dumb.
void choose_colours(colour_choice choice);

enum class style { good, bad, warning, hint, strong };

/// Returns `text` in the style's colour where standard output shows colours, else as it is.
std::string styled(style s, std::string_view text);

/// Does the same for standard error.
std::string styled_error(style s, std::string_view text);

/// Returns whether standard output shows colours.
bool shows_colours();

}  // namespace tmap::apps

// SPDX-License-Identifier: Apache-2.0
#include "lib/support/arguments.hpp"

#include <charconv>
#include <string_view>

namespace tmap::support {

const char arguments::null[] = "is null; it must be an address that is a multiple of {allowed}";
const char arguments::null_bytes[] = "is null; it must be the address of the bytes to work on";
const char arguments::misaligned[] = "is {found:#x}; it must be an address that is a multiple of {allowed}";
const char arguments::too_small[] = "is {found}; it must be at least {allowed}";
const char arguments::too_large[] = "is {found}; it must be at most {allowed}";
const char arguments::no_multiple[] = "is {found}; it must be a multiple of {allowed}";
const char arguments::no_power_of_two[] = "is {found}; it must be a power of two, at most {allowed}";
const char arguments::no_integer[] = "is {found}; it must be 4 or 8";
const char arguments::no_enumerator[] = "is {found}, which stands for nothing; it must be one of 0 to {allowed}";

void argument::write(argument_name& to) const {
  if (whole_ != nullptr) whole_->write(to);
  if (word_ != nullptr) {
    if (whole_ != nullptr) to.append(".");
    to.append(word_);
    return;
  }
  char digits[10];
  const char* const end = std::to_chars(digits, digits + sizeof digits, index_).ptr;
  to.append("[");
  to.append({digits, static_cast<std::size_t>(end - digits)});
  to.append("]");
}

argument_name argument::name() const {
  argument_name made;
  write(made);
  return made;
}

void arguments::refuse(const argument& name, const char* reason, std::uint64_t found, std::uint64_t allowed) {
  if (outcome_) outcome_ = refused(name, reason, found, allowed);
}

failure refused(const argument& name, const char* reason, std::uint64_t found, std::uint64_t allowed) {
  return failure{error{
      .code = status::invalid_argument, .found = found, .allowed = allowed, .argument = name.name(), .reason = reason}};
}

}  // namespace tmap::support

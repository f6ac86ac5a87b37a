// SPDX-License-Identifier: Apache-2.0
// Tests the handlers of XLA's custom calls with a stand-in for XLA, as far as possible without a
// device.
#include <tmap/c/gemm.h>
#include <tmap/c/xla.h>

#include <gmock/gmock.h>

#include <functional>
#include <string>

#include "interop/sized.hpp"
#include "interop/unread.hpp"
#include "interop/xla_scene.hpp"

namespace tmap::testing {
namespace {

using ::testing::HasSubstr;
using handler = void* (*)(void*);
constexpr handler handlers[] = {&tmap_xla_rows, &tmap_xla_weights, &tmap_xla_pad_rows, &tmap_xla_unpad_rows};
constexpr handler products[] = {&tmap_xla_rows, &tmap_xla_weights};
xla_scene scene_of(handler which) {
  void* data = unread<void>(0x10000);
  if (which == &tmap_xla_pad_rows || which == &tmap_xla_unpad_rows)
    return xla_padding_scene(data, which == &tmap_xla_pad_rows);
  return which == &tmap_xla_rows ? xla_rows_scene(data) : xla_weights_scene(data);
}

/// Returns a message without the quotes of names.
std::string plain(std::string message) {
  std::erase(message, '`');
  return message;
}

/// Returns the message of a call that must be refused as an argument, after a change.
std::string refusal(handler which, const std::function<void(xla_scene&)>& change) {
  xla_scene scene = scene_of(which);
  change(scene);
  scene.connect();
  reported = {};
  EXPECT_EQ(which(&scene.frame), &reported);
  EXPECT_EQ(reported.code, xla::error_code::invalid_argument) << reported.message;
  return plain(reported.message);
}

TEST(xla, metadata_has_xla_s_own_version_and_the_trait) {
  for (const handler each : handlers) {
    xla_scene scene = scene_of(each);
    xla::metadata made{};
    made.struct_size = xla::metadata_size;
    made.version.major = 99;
    xla::metadata_request request{{sizeof(xla::extension), xla::metadata_extension, nullptr}, &made};
    scene.frame.extensions = &request.base;
    EXPECT_EQ(each(&scene.frame), nullptr);
    EXPECT_EQ(made.version.major, 0);
    EXPECT_EQ(made.version.minor, 3);
    EXPECT_EQ(made.traits, 1u);
  }
}

TEST(xla, metadata_for_a_smaller_interface_has_this_library_s_version) {
  xla_scene scene = scene_of(&tmap_xla_rows);
  scene.functions.struct_size = 80;
  xla::metadata made{};
  made.struct_size = xla::metadata_size;
  xla::metadata_request request{{sizeof(xla::extension), xla::metadata_extension, nullptr}, &made};
  scene.frame.extensions = &request.base;
  EXPECT_EQ(tmap_xla_rows(&scene.frame), nullptr);
  EXPECT_EQ(made.version.minor, xla::api_minor);
  made = {};
  made.struct_size = xla::metadata_size - 1;
  EXPECT_EQ(tmap_xla_rows(&scene.frame), nullptr);
  EXPECT_EQ(made.traits, 0u) << "written past the end of a smaller struct";
}

TEST(xla, frames_that_are_too_small_are_refused_and_other_stages_do_nothing) {
  for (const handler each : handlers) {
    xla_scene scene = scene_of(each);
    scene.frame.struct_size = 160;
    reported = {};
    EXPECT_EQ(each(&scene.frame), &reported);
    EXPECT_EQ(reported.code, xla::error_code::unimplemented);
    EXPECT_THAT(reported.message, HasSubstr("jaxlib"));
    scene.connect();
    scene.frame.stage = 2;
    scene.frame.arguments.count = 0;
    EXPECT_EQ(each(&scene.frame), nullptr);
  }
}

TEST(xla, a_stream_that_xla_refuses_is_its_own_error) {
  xla_scene scene = scene_of(&tmap_xla_rows);
  scene.functions.get_stream = [](xla::stream_request* asked) -> void* { return asked; };
  reported = {};
  EXPECT_NE(tmap_xla_rows(&scene.frame), nullptr);
  EXPECT_STREQ(reported.message, "") << "the library made another error of it";
}

TEST(xla, arrays_of_products_are_refused_by_name) {
  using s = xla_scene;
  using enum xla::element;
  for (const handler each : products) {
    EXPECT_THAT(refusal(each, [](s& o) { o.arguments.resize(2); }), HasSubstr("sizes is missing"));
    EXPECT_THAT(refusal(each, [](s& o) { o.results.resize(1); }), HasSubstr("workspace is missing"));
    EXPECT_THAT(refusal(each, [](s& o) { o.arguments[0].dims = {100}; }), HasSubstr("lhs.rank is 1; it must be 2"));
    EXPECT_THAT(refusal(each, [](s& o) { o.arguments[1].dims.push_back(8); }), HasSubstr("rhs.rank"));
    EXPECT_THAT(refusal(each, [](s& o) { o.results[0].dims = {}; }), HasSubstr("out.rank is 0"));
    EXPECT_THAT(refusal(each, [](s& o) { o.arguments[0].type = f32; }), HasSubstr("lhs.dtype"));
    EXPECT_THAT(refusal(each, [](s& o) { o.arguments[1].type = s32; }), HasSubstr("rhs.dtype"));
    EXPECT_THAT(refusal(each, [](s& o) { o.arguments[2].type = u8; }), HasSubstr("sizes.dtype"));
    EXPECT_THAT(refusal(each, [](s& o) { o.results[0].type = u8; }), HasSubstr("out.dtype"));
    EXPECT_THAT(refusal(each, [](s& o) { o.results[1].type = s32; }), HasSubstr("workspace.dtype"));
    EXPECT_THAT(refusal(each, [](s& o) { o.results[0].dims[0] = 9; }), HasSubstr("out.dims[0] is 9"));
    EXPECT_THAT(refusal(each, [](s& o) { o.results[0].dims[1] = 8; }), HasSubstr("out.dims[1] is 8"));
    EXPECT_THAT(refusal(each, [](s& o) { o.arguments.push_back({s32, {9}}); }), HasSubstr("counts.dims[0] is 9"));
    EXPECT_THAT(refusal(each, [](s& o) { o.arguments.push_back({f32, {10}}); }), HasSubstr("counts.dtype"));
  }
  EXPECT_THAT(refusal(&tmap_xla_rows, [](s& o) { o.arguments[1].dims[0] = 9; }), HasSubstr("rhs.dims[0] is 9"));
  EXPECT_THAT(refusal(&tmap_xla_rows, [](s& o) { o.arguments[1].dims[1] = 40; }), HasSubstr("rhs.dims[1] is 40"));
  EXPECT_THAT(refusal(&tmap_xla_rows, [](s& o) { o.number.value = 1; }), HasSubstr("rhs.dims[2] is 64"));
  EXPECT_THAT(refusal(&tmap_xla_rows, [](s& o) { o.number.value = 2; }), HasSubstr("turned"));
  EXPECT_THAT(refusal(&tmap_xla_weights, [](s& o) { o.arguments[1].dims[0] = 99; }), HasSubstr("rhs.dims[0] is 99"));
}

TEST(xla, arrays_of_padding_are_refused_by_name) {
  using enum xla::element;
  for (const bool pads : {true, false}) {
    const handler each = pads ? &tmap_xla_pad_rows : &tmap_xla_unpad_rows;
    const auto values = [pads](xla_scene& o) -> xla_array& { return pads ? o.arguments[0] : o.results[0]; };
    const auto dense = [pads](xla_scene& o) -> xla_array& { return pads ? o.results[0] : o.arguments[0]; };
    using s = xla_scene;
    EXPECT_THAT(refusal(each, [](s& o) { o.arguments.resize(1); }), HasSubstr("ends is missing"));
    EXPECT_THAT(refusal(each, [](s& o) { o.results.clear(); }), HasSubstr(pads ? "dense is" : "values is"));
    EXPECT_THAT(refusal(each, [](s& o) { o.arguments[1].type = u8; }), HasSubstr("ends.dtype"));
    EXPECT_THAT(refusal(each, [](s& o) { o.arguments[1].dims = {}; }), HasSubstr("ends.rank is 0"));
    EXPECT_THAT(refusal(each, [&](s& o) { values(o).type = static_cast<xla::element>(18); }),
                HasSubstr("values.dtype"));
    EXPECT_THAT(refusal(each, [&](s& o) { values(o).type = static_cast<xla::element>(21); }),
                HasSubstr("values.dtype"));
    EXPECT_THAT(refusal(each, [&](s& o) { dense(o).type = f32; }), HasSubstr("dense.dtype"));
    EXPECT_THAT(refusal(each, [&](s& o) { values(o).dims = {100}; }), HasSubstr("values.rank is 1"));
    EXPECT_THAT(refusal(each, [&](s& o) { dense(o).dims.push_back(1); }), HasSubstr("dense.rank is 5; it must be 4"));
    EXPECT_THAT(refusal(each, [&](s& o) { values(o).dims[0] = 4; }), HasSubstr("values.dims[0] is 4"));
    EXPECT_THAT(refusal(each, [&](s& o) { dense(o).dims[0] = 4; }), HasSubstr("dense.dims[0] is 4"));
    EXPECT_THAT(refusal(each, [&](s& o) { dense(o).dims[1] = 9; }), HasSubstr("dense.dims[1] is 9; it must be 10"));
    EXPECT_THAT(refusal(each, [&](s& o) { dense(o).dims[3] = 9; }), HasSubstr("dense.dims[3] is 9; it must be 8"));
  }
  EXPECT_THAT(refusal(&tmap_xla_pad_rows, [](xla_scene& o) { o.number.word = {"file", 4}; }), HasSubstr("fill is"));
  EXPECT_THAT(refusal(&tmap_xla_pad_rows, [](xla_scene& o) { o.number.type = s32; }), HasSubstr("64 bits"));
}

TEST(xla, an_attribute_that_is_missing_or_of_another_kind_is_refused) {
  xla_scene scene = scene_of(&tmap_xla_rows);
  scene.frame.attributes.count = 0;
  EXPECT_EQ(tmap_xla_rows(&scene.frame), &reported);
  EXPECT_THAT(plain(reported.message), HasSubstr("turned is missing"));
  scene.connect();
  const std::uint32_t text_kind = 4;
  scene.frame.attributes.kinds = &text_kind;
  EXPECT_EQ(tmap_xla_rows(&scene.frame), &reported);
  EXPECT_THAT(plain(reported.message), HasSubstr("turned is no scalar"));
}

/// Only weights reach the product without a GPU: rows are cleared first.
TEST(xla, a_good_call_reaches_the_product) {
  for (const bool has_counts : {false, true}) {
    const std::string message = refusal(&tmap_xla_weights, [&](xla_scene& o) {
      if (has_counts) o.arguments.push_back({xla::element::s32, {10}});
      o.results[1].dims[0] = 8;
    });
    EXPECT_THAT(message, HasSubstr("call.workspace_bytes is 8"));
    EXPECT_THAT(message, HasSubstr("tmap_gemm_weights"));
  }
}

}  // namespace
}  // namespace tmap::testing

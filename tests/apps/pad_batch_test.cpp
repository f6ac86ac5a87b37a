// SPDX-License-Identifier: Apache-2.0
// Tests how a batch's bytes are moved and checked, its files, and the contact sheet.
#include "apps/tmap/pad/batch_bytes.hpp"
#include "apps/tmap/pad/contact_sheet.hpp"
#include "apps/tmap/pad/engine.hpp"
#include "apps/tmap/pad/output_file.hpp"
#include "tests/apps/pad_files.hpp"

#include <gmock/gmock.h>

namespace tmap::tool {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace tmap::testing;

tensor filled(const std::string& name, dtype type, shape_t shape) {
  tensor made;
  made.name = name;
  made.type = type;
  made.shape = std::move(shape);
  made.storage = stored(to_bytes(counting_bytes(*dense_bytes(made.shape, type), name.size())));
  made.bytes = *made.storage;
  return made;
}

plan_options plenty() {
  plan_options options;
  options.most_bytes = 1 << 28;
  return options;
}

/// Pads the batch with the simplest possible loop, byte by byte over every index.
bytes_t plain_loop(const batch_plan& plan, const std::vector<tensor>& tensors) {
  const std::uint64_t item = bytes(plan.type);
  bytes_t batch(plan.dense_bytes, std::byte{0});
  const std::uint64_t slice = plan.dense_bytes / plan.members.size();
  for (std::uint64_t i = 0; i < plan.dense_bytes; ++i) {
    const tensor& t = tensors[plan.members[i / slice]];
    std::uint64_t rest = i % slice / item;
    std::uint64_t source = 0;
    std::uint64_t step = 1;
    bool inside = true;
    for (std::size_t axis = plan.shape.size(); axis-- > 0;) {
      const std::uint64_t size = t.shape.empty() ? 1 : t.shape[axis];
      inside = inside && rest % plan.shape[axis] < size;
      source += rest % plan.shape[axis] * step;
      step *= size;
      rest /= plan.shape[axis];
    }
    if (inside) batch[i] = t.bytes[source * item + i % item];
  }
  return batch;
}

outcome<bytes_t> run(const batch_plan& plan, const std::vector<tensor>& tensors) {
  bytes_t batch(plan.dense_bytes);
  const auto done = pad_on_host({plan, pack_sources(plan, tensors), batch});
  if (!done) return refusal{done.error()};
  return batch;
}

struct batch_case {
  const char* name;
  dtype type;
  std::vector<shape_t> shapes;
  plan_options options;
};

std::vector<batch_case> batch_cases() {
  plan_options crop = plenty();
  crop.crop = {3, 5, 2};
  plan_options smallest = plenty();
  smallest.crop_to_smallest = true;
  return {{"pictures", dtype::u8, {{4, 9, 3}, {7, 16, 3}, {1, 1, 3}}, plenty()},
          {"odd_widths", dtype::u8, {{37, 501, 3}, {2, 333, 3}, {64, 7, 3}}, plenty()},
          {"rows_of_one_byte", dtype::u8, {{700, 1}, {3, 1}, {1, 1}}, plenty()},
          {"odd_pitches", dtype::f16, {{5, 7, 11}, {9, 3, 13}, {1, 1, 1}}, plenty()},
          {"whole_rows", dtype::f32, {{5, 12}, {130, 300}, {1, 4}}, plenty()},
          {"rows", dtype::f16, {{5}, {1}, {300}, {77}}, plenty()},
          {"scalars", dtype::f64, {{}, {}, {3}}, plenty()},
          {"alike", dtype::i32, {{3, 4}, {3, 4}}, plenty()},
          {"rank_five", dtype::bf16, {{2, 3, 4, 5, 6}, {3, 4, 1, 6, 7}, {1, 1, 5, 1, 33}}, plenty()},
          {"rank_seven", dtype::c64, {{2, 1, 3, 4, 2, 5, 2}, {2, 1, 3, 6, 2, 8, 2}}, plenty()},
          {"cropped", dtype::i16, {{4, 9, 3}, {2, 30, 1}, {3, 5, 2}}, crop},
          {"smallest", dtype::boolean, {{40, 90}, {70, 31}, {33, 600}}, smallest},
          {"rows_for_maps", dtype::f32, {{130, 40}, {3, 76}, {200, 160}}, plenty()}};
}

class batch_test : public ::testing::TestWithParam<batch_case> {};

TEST_P(batch_test, the_host_equals_the_plain_loop) {
  std::vector<tensor> tensors;
  std::vector<std::size_t> members;
  for (const shape_t& shape : GetParam().shapes) {
    members.push_back(tensors.size());
    tensors.push_back(filled(std::string(tensors.size() + 1, 't'), GetParam().type, shape));
  }
  const auto plan = plan_batch(tensors, members, GetParam().options);
  ASSERT_TRUE(plan) << plan.error();
  auto batch = run(*plan, tensors);
  ASSERT_TRUE(batch) << batch.error();
  EXPECT_EQ(*batch, plain_loop(*plan, tensors));
  EXPECT_TRUE(check_batch(*plan, tensors, *batch)) << check_batch(*plan, tensors, *batch).error();

  for (std::size_t i = 0; i < batch->size(); i += 1 + batch->size() / 97) {
    (*batch)[i] ^= std::byte{0x40};
    EXPECT_FALSE(check_batch(*plan, tensors, *batch)) << "a wrong byte at " << i;
    (*batch)[i] ^= std::byte{0x40};
  }
}

std::string name_of(const ::testing::TestParamInfo<batch_case>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(shapes, batch_test, ::testing::ValuesIn(batch_cases()), name_of);

TEST(check, names_the_element_found_and_expected) {
  const std::vector<tensor> tensors{filled("first", dtype::u16, {2, 3}), filled("second", dtype::u16, {1, 2})};
  const auto plan = plan_batch(tensors, {0, 1}, plenty());
  ASSERT_TRUE(plan);
  bytes_t batch = plain_loop(*plan, tensors);
  batch[12 + 2 * 2 + 1] = std::byte{0xee};
  EXPECT_EQ(check_batch(*plan, tensors, batch).error(),
            "second: element [0, 2] of the batch is 0xee00, the plain loop has 0x0000");
  batch = plain_loop(*plan, tensors);
  batch[2 * 4] = std::byte{0};
  EXPECT_EQ(check_batch(*plan, tensors, batch).error(),
            "first: element [1, 1] of the batch is 0x0f00, the plain loop has 0x0f0e");
}

TEST(output_file, is_whole_or_absent) {
  const temporary_folder folder;
  const bytes_t content = to_bytes("content");
  ASSERT_TRUE(write_file(folder / "a", {content, content}));
  EXPECT_EQ(read_text_file(folder / "a"), "contentcontent");
  EXPECT_THAT(write_file(folder / "none/a", {content}).error(), HasSubstr("none/a: it cannot be made"));
  std::filesystem::create_directory(folder / "taken");
  EXPECT_THAT(write_file(folder / "taken", {content}).error(), HasSubstr("taken: it cannot be written"));
  EXPECT_THAT(folder.names("."), ::testing::UnorderedElementsAre("a", "taken"));
  EXPECT_THAT(prepare_folder(folder / "a").error(), HasSubstr("folder"));
}

TEST(contact_sheet, shows_pixels_and_hatches_padding) {
  std::vector<tensor> tensors{filled("a", dtype::u8, {40, 20, 3}), filled("b", dtype::u8, {10, 60, 3})};
  for (tensor& t : tensors) {
    t.storage = stored(bytes_t(t.bytes.size(), std::byte{200}));
    t.bytes = *t.storage;
    t.picture = true;
  }
  const auto plan = plan_batch(tensors, {0, 1}, plenty());
  ASSERT_TRUE(plan);
  const drawing::picture sheet = draw_contact_sheet(*plan, tensors, plain_loop(*plan, tensors));
  std::size_t bright = 0;
  for (std::uint32_t y = 0; y < sheet.height(); ++y) {
    for (std::uint32_t x = 0; x < sheet.width(); ++x) bright += sheet.at(x, y).red == 200 ? 1 : 0;
  }
  const std::size_t scale = bright / (40 * 20 + 10 * 60);
  EXPECT_GT(scale, 0u);
  EXPECT_EQ(bright, scale * (40 * 20 + 10 * 60)) << "small pictures grow by whole factors";
  EXPECT_EQ(sheet.at(12, 12).red, 200) << "the first picture begins in the corner";
}

}  // namespace
}  // namespace tmap::tool

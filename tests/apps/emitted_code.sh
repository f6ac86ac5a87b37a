#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles and runs the code that `tmap explain --emit` prints for several specs, and compares its
# maps with those of `--out`:
# emitted_code.sh <tmap> <root> <cuda include> <libtmap.so> <python>.
# Stand-ins replace the driver's functions, so no GPU is needed.
set -euo pipefail
tool=$1 root=$2 cuda=$3 shared=$4 python=$5
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
address=0x7f0000001000
includes=(-I"$root/include" -isystem "$cuda/cccl" -isystem "$cuda")

specs=(
  "--type f16 --dims 64,100 --box 64,8 --swizzle 128"
  "--type f32 --dims 4096 --box 64 --fill nan --l2 256"
  "--type bf16 --dims 64,8,4,3,2 --box 32,4,2,1,1 --element-strides 1,2,1,1,1 --swizzle 64"
  "--type u8 --dims 16,8,4 --box 16,4,2 --interleave 32 --swizzle 32 --strides 512,4096"
  "--type f16 --dims 64,28,28,8 --lower=-1,-2 --upper=-1,3 --channels 64 --pixels 128"
)

# Implements the driver's functions that the emitted code calls, with tmap's own encoder.
cat > "$folder/driver.hpp" <<'CODE'
#include <cuda.h>
#include <tmap/decode.hpp>
#include <cstring>

inline CUresult finish(CUtensorMap* map, const tmap::result<tmap::tensor_map>& made) {
  if (!made) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(map, &*made, sizeof *map);
  return CUDA_SUCCESS;
}

inline tmap::tensor_spec spec_of(CUtensorMapDataType type, cuuint32_t rank, void* address, const cuuint64_t* dims,
                                 const cuuint64_t* strides, const cuuint32_t* steps, int interleave, int swizzle,
                                 int promotion, int fill) {
  tmap::tensor_spec spec;
  spec.global_address = reinterpret_cast<std::uint64_t>(address);
  spec.type = static_cast<tmap::element_type>(type);
  spec.rank = rank;
  for (cuuint32_t i = 0; i < rank; ++i) spec.global_dim[i] = dims[i];
  for (cuuint32_t i = 0; i + 1 < rank; ++i) spec.global_stride_bytes[i] = strides[i];
  for (cuuint32_t i = 0; i < rank; ++i) spec.element_stride[i] = steps[i];
  spec.interleave = static_cast<tmap::interleave>(interleave);
  spec.swizzle = static_cast<tmap::swizzle>(swizzle);
  spec.l2_promotion = static_cast<tmap::l2_promotion>(promotion);
  spec.oob_fill = static_cast<tmap::oob_fill>(fill);
  return spec;
}

extern "C" CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                           const cuuint64_t* dims, const cuuint64_t* strides, const cuuint32_t* box,
                                           const cuuint32_t* steps, CUtensorMapInterleave interleave,
                                           CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                           CUtensorMapFloatOOBfill fill) {
  auto spec = spec_of(type, rank, address, dims, strides, steps, interleave, swizzle, promotion, fill);
  for (cuuint32_t i = 0; i < rank; ++i) spec.box_dim[i] = box[i];
  return finish(map, tmap::encode_bits(spec));
}

extern "C" CUresult cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                            const cuuint64_t* dims, const cuuint64_t* strides, const int* lower,
                                            const int* upper, cuuint32_t channels, cuuint32_t pixels,
                                            const cuuint32_t* steps, CUtensorMapInterleave interleave,
                                            CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                            CUtensorMapFloatOOBfill fill) {
  tmap::im2col_spec spec;
  spec.tensor = spec_of(type, rank, address, dims, strides, steps, interleave, swizzle, promotion, fill);
  for (cuuint32_t i = 0; i + 2 < rank; ++i) spec.lower_corner[i] = lower[i];
  for (cuuint32_t i = 0; i + 2 < rank; ++i) spec.upper_corner[i] = upper[i];
  spec.channels_per_pixel = channels;
  spec.pixels_per_column = pixels;
  return finish(map, tmap::encode_bits(spec));
}
CODE

# One program makes all maps. The code of each spec is in a namespace of its own.
{
  echo '#include "driver.hpp"'
  echo '#include <tmap/encode.hpp>'
  echo '#include <cstdio>'
  echo '#include <cstdlib>'
} > "$folder/all.cpp"
calls=""
for i in "${!specs[@]}"; do
  # shellcheck disable=SC2086
  "$tool" explain ${specs[i]} --address $address --out "$folder/$i.expected" > /dev/null
  for language in c++ driver; do
    # shellcheck disable=SC2086
    "$tool" explain ${specs[i]} --address $address --emit $language > "$folder/$i.$language"
  done
  echo "namespace cpp_$i {
#include \"$i.c++\"
}
namespace driver_$i {
#include \"$i.driver\"
}" >> "$folder/all.cpp"
  calls+="  write(\"$i.c++.map\", tmap::encode_bits(cpp_$i::make_spec(${address})));
  if (driver_$i::make_map(&map, reinterpret_cast<void*>(${address})) != CUDA_SUCCESS) return 1;
  write(\"$i.driver.map\", map);
"
  echo "#include \"$i.driver\"" > "$folder/$i.c"
  cc -std=c99 -Wall -Wextra -pedantic -Werror -fsyntax-only -isystem "$cuda" -x c "$folder/$i.c"
done
cat >> "$folder/all.cpp" <<CODE
void write(const char* name, const CUtensorMap& map) {
  std::FILE* file = std::fopen(name, "wb");
  if (file == nullptr || std::fwrite(&map, sizeof map, 1, file) != 1) std::exit(1);
  std::fclose(file);
}
void write(const char* name, const tmap::result<tmap::tensor_map>& map) {
  if (!map) std::exit(1);
  CUtensorMap bytes;
  std::memcpy(&bytes, &*map, sizeof bytes);
  write(name, bytes);
}
int main() {
  CUtensorMap map;
$calls  return 0;
}
CODE
"${CXX:-c++}" -std=c++17 -Wall -Wextra "${includes[@]}" -I"$folder" "$folder/all.cpp" -c -o "$folder/all.o"
"${CXX:-c++}" "$folder/all.o" "$shared" -Wl,-rpath,"$(dirname "$shared")" -o "$folder/all"
(cd "$folder" && ./all)

wrong=0
compare() {
  cmp "$folder/$1" "$folder/$2" || { echo "the emitted code of spec $3 makes another map: ${specs[$3]}" >&2; wrong=1; }
}
for i in "${!specs[@]}"; do
  compare "$i.expected" "$i.c++.map" "$i"
  compare "$i.expected" "$i.driver.map" "$i"
  # shellcheck disable=SC2086
  if ! "$tool" explain ${specs[i]} --address $address --emit python > "$folder/spec_$i.py" 2> "$folder/why"; then
    grep -q 'tiled specs only' "$folder/why" || { cat "$folder/why" >&2; wrong=1; }
    continue
  fi
  (cd "$folder" && TMAP_LIBRARY=$shared PYTHONPATH=$root/python "$python" -c "
import spec_$i, tmap
open('$i.python.map', 'wb').write(tmap.encode_bits(spec_$i.make_spec($address)))")
  compare "$i.expected" "$i.python.map" "$i"
done
exit "$wrong"

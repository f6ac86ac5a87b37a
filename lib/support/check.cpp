// SPDX-License-Identifier: Apache-2.0
#include "lib/support/check.hpp"

namespace tmap::support {

bool is_earlier_asynchronous_error(int code) {
  switch (code) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorExternalDevice: return true;
    default: return false;
  }
}

status status_of(int code) {
  if (is_earlier_asynchronous_error(code)) return status::earlier_asynchronous_error;
  switch (code) {
    case cudaErrorMemoryAllocation: return status::out_of_memory;
    case cudaErrorNoDevice: return status::no_device;
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice: return status::driver_too_old;
    case cudaErrorInitializationError:
    case cudaErrorDeviceUninitialized: return status::no_context;
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion: return status::no_kernel_image;
    default: return status::cuda_failure;
  }
}

void clear_last_error(cudaError_t code) {
  if (cudaPeekAtLastError() == code) static_cast<void>(cudaGetLastError());
}

error runtime_error(cudaError_t code) {
  clear_last_error(code);
  error e{.code = status_of(code), .cuda_code = code};
  if (code == cudaErrorInsufficientDriver) {
    // The runtime gives one code for two cases. Without a driver the version comes out as 0.
    int version = 0;
    const cudaError_t asked = cudaDriverGetVersion(&version);
    e.code = asked == cudaSuccess && version != 0 ? status::driver_too_old : status::no_driver;
  }
  return e;
}

error driver_error(CUresult code) {
  return {.code = status_of(code), .cuda_code = code};
}

}  // namespace tmap::support

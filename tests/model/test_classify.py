"""Names and categories to the one vocabulary (definitions §2)."""

import re

import pytest

from traceanalyze.model.classify import ClassifyOptions, api_class, event_kind, is_data_loading, kernel_class
from traceanalyze.model.vocabulary import ApiClass, DeviceClass, EventKind, SyncKind

PLAIN = ClassifyOptions()


@pytest.mark.parametrize(
    ("category", "kind"),
    [
        ("kernel", EventKind.KERNEL),
        ("Kernel", EventKind.KERNEL),
        ("mtia_ccp_events", EventKind.KERNEL),
        ("Memcpy", EventKind.MEMCPY),
        ("gpu_memset", EventKind.MEMSET),
        ("cuda_sync", EventKind.DEVICE_CONTROL),
        ("gpu_user_annotation", EventKind.DEVICE_ANNOTATION),
        ("Operator", EventKind.HOST_OP),
        ("cuda_driver", EventKind.API),
        ("Runtime", EventKind.API),
        ("xpu_runtime", EventKind.API),
        ("privateuse1_driver", EventKind.API),
        ("python_function", EventKind.PYTHON),
        ("Trace", EventKind.OVERHEAD),
        ("something new", EventKind.UNKNOWN),
    ],
)
def test_categories(category, kind):
    assert event_kind(category, PLAIN) == kind


def test_the_user_can_name_a_category():
    assert event_kind("My_Kernels", ClassifyOptions(categories={"my_kernels": EventKind.KERNEL})) == EventKind.KERNEL


@pytest.mark.parametrize(
    ("name", "klass"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", DeviceClass.COMM),
        ("ncclSymkDevKernel_AllGather", DeviceClass.COMM),
        ("void deep_ep::internode::dispatch<false>(int)", DeviceClass.COMM),
        ("void deep_ep::intranode::combine<bf16>(int)", DeviceClass.COMM),
        ("void deep_ep::intranode::notify_dispatch<8>(int)", DeviceClass.COMM),
        ("void deep_ep::layout::get_dispatch_layout<1>(int)", DeviceClass.COMPUTE),
        ("void vllm::cross_device_reduce_1stage<half, 8>(int)", DeviceClass.COMM),
        ("lamport_allreduce", DeviceClass.COMM),
        ("oneccl_allgatherv_small<bf16>", DeviceClass.COMM),
        ("void c10d::symmetric_memory::multimem_all_reduce_kernel<float>(float*)", DeviceClass.COMM),
        ("nvshmemi_alltoall_on_stream_kernel", DeviceClass.COMM),
        ("mscclKernel_Sum_half_LL_0", DeviceClass.COMM),
        ("two_shot_all_reduce_kernel", DeviceClass.COMM),
        ("triton_poi_fused__to_copy_all_reduce_wait_tensor_nccl_0", DeviceClass.COMPUTE),
        ("AllGatherMatmul_kernel", DeviceClass.COMPUTE),
        ("ampere_sgemm_128x64_nn", DeviceClass.COMPUTE),
        ("reduce_kernel<512, 1>", DeviceClass.COMPUTE),
        ("hipLaunchKernelThing", DeviceClass.COMPUTE),
    ],
)
def test_kernels(name, klass):
    assert kernel_class(name, has_collective_args=False, options=PLAIN)[0] == klass


def test_collective_arguments_make_a_kernel_communication():
    assert kernel_class("opaque", has_collective_args=True, options=PLAIN) == (DeviceClass.COMM, "collective args")


def test_the_users_patterns_come_first():
    options = ClassifyOptions(comm=re.compile("mine"), not_comm=re.compile("nccl"))
    assert kernel_class("mine", has_collective_args=False, options=options)[0] == DeviceClass.COMM
    assert kernel_class("ncclX", has_collective_args=False, options=options)[0] == DeviceClass.COMPUTE


@pytest.mark.parametrize(
    ("name", "klass", "sync"),
    [
        ("cudaLaunchKernel", ApiClass.LAUNCH, SyncKind.NONE),
        ("cudaLaunchKernelExC", ApiClass.LAUNCH, SyncKind.NONE),
        ("cuLaunchKernelEx", ApiClass.LAUNCH, SyncKind.NONE),
        ("hipExtModuleLaunchKernel", ApiClass.LAUNCH, SyncKind.NONE),
        ("hipGraphLaunch", ApiClass.LAUNCH, SyncKind.NONE),
        ("urEnqueueKernelLaunch", ApiClass.LAUNCH, SyncKind.NONE),
        ("urEnqueueKernelLaunchExp", ApiClass.LAUNCH, SyncKind.NONE),
        ("piEnqueueKernelLaunch", ApiClass.LAUNCH, SyncKind.NONE),
        ("zeCommandListAppendLaunchKernelIndirect", ApiClass.LAUNCH, SyncKind.NONE),
        ("urEnqueueUSMMemcpy2D", ApiClass.COPY, SyncKind.NONE),
        ("urEnqueueUSMFill", ApiClass.COPY, SyncKind.NONE),
        ("urEnqueueMemBufferRead", ApiClass.COPY, SyncKind.NONE),
        ("urQueueFinish", ApiClass.SYNC, SyncKind.EXPLICIT),
        ("urEventWait", ApiClass.SYNC, SyncKind.EXPLICIT),
        ("piEventsWait", ApiClass.SYNC, SyncKind.EXPLICIT),
        ("zeEventHostSynchronize", ApiClass.SYNC, SyncKind.EXPLICIT),
        ("zeCommandQueueSynchronize", ApiClass.SYNC, SyncKind.EXPLICIT),
        ("urEnqueueEventsWait", ApiClass.OTHER, SyncKind.NONE),
        ("urUSMDeviceAlloc", ApiClass.ALLOC, SyncKind.NONE),
        ("drvStreamSynchronize", ApiClass.SYNC, SyncKind.EXPLICIT),
        ("cudaMemcpyAsync", ApiClass.COPY, SyncKind.NONE),
        ("cudaMemsetAsync", ApiClass.COPY, SyncKind.NONE),
        ("cudaMemcpy", ApiClass.SYNC, SyncKind.BLOCKING_COPY),
        ("hipMemcpyWithStream", ApiClass.SYNC, SyncKind.BLOCKING_COPY),
        ("cuMemcpyDtoH_v2", ApiClass.SYNC, SyncKind.BLOCKING_COPY),
        ("cudaDeviceSynchronize", ApiClass.SYNC, SyncKind.EXPLICIT),
        ("hipEventSynchronize", ApiClass.SYNC, SyncKind.EXPLICIT),
        ("aclrtSynchronizeStreamWithTimeout", ApiClass.SYNC, SyncKind.EXPLICIT),
        ("cudaFree", ApiClass.ALLOC, SyncKind.IMPLICIT),
        ("cudaFreeAsync", ApiClass.ALLOC, SyncKind.NONE),
        ("cudaMalloc", ApiClass.ALLOC, SyncKind.NONE),
        ("cuMemCreate", ApiClass.ALLOC, SyncKind.NONE),
        ("cudaEventQuery", ApiClass.OTHER, SyncKind.NONE),
        ("cudaStreamWaitEvent", ApiClass.OTHER, SyncKind.NONE),
        ("INVALID", ApiClass.OTHER, SyncKind.NONE),
    ],
)
def test_runtime_calls(name, klass, sync):
    assert api_class(name) == (klass, sync)


def test_loader_ranges():
    assert is_data_loading("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", PLAIN)
    assert is_data_loading("enumerate(DataPipe)#IterableWrapper", PLAIN)
    assert not is_data_loading("enumerate(DataLoader)#shutdown", PLAIN)
    assert is_data_loading("next_batch", ClassifyOptions(data=re.compile("batch")))

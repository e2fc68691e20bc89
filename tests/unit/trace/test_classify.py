import pytest

from tracereplay.trace.classify import (
    WorkClass,
    class_of_kernel,
    class_of_operator,
    class_of_role,
    classes_of_names,
    collective_of,
)
from tracereplay.trace.schema import Role

ATEN = "void at::native::vectorized_elementwise_kernel<4, at::native::{}, at::detail::Array<char*, 3> >(int)"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("volta_sgemm_64x64_nt", WorkClass.GEMM),
        ("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn", WorkClass.GEMM),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_cublas", WorkClass.GEMM),
        ("nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_TNT", WorkClass.GEMM),
        ("Cijk_Ailk_Bljk_SB_MT64x64x16_SE_K1", WorkClass.GEMM),
        ("void splitKreduce_kernel<float, float, float>(cublasSplitKParams<float>)", WorkClass.GEMM),
        ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4>>", WorkClass.ATTENTION),
        ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80", WorkClass.ATTENTION),
        ("implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, 5, 1, false, true, true>", WorkClass.CONV),
        ("void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>", WorkClass.CONV),
        ("void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>", WorkClass.CONV),
        ("void split_embedding_codegen_forward_unweighted_kernel<float, float>", WorkClass.EMBEDDING),
        ("void bounds_check_indices_kernel<long>", WorkClass.EMBEDDING),
        ("void (anonymous namespace)::indexing_backward_kernel<float, 4>", WorkClass.EMBEDDING),
        (ATEN.format("AddFunctor<float>"), WorkClass.ELEMENTWISE),
        ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<2>>", WorkClass.ELEMENTWISE),
        ("triton_poi_fused_relu_0", WorkClass.ELEMENTWISE),
        ("void fbgemm_gpu::permute_2D_lengths_kernel<int>(int, int, int const*)", WorkClass.ELEMENTWISE),
        ("void fbgemm_gpu::_offsets_range_cuda_kernel<long>(long, long)", WorkClass.OTHER),
        ("void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float>>", WorkClass.REDUCTION),
        ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>", WorkClass.REDUCTION),
        ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>", WorkClass.REDUCTION),
        ("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>", WorkClass.COPY),
        ("__amd_rocclr_copyBuffer", WorkClass.COPY),
        ("__amd_rocclr_fillBufferAligned", WorkClass.MEMSET),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", WorkClass.COLLECTIVE),
        ("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", WorkClass.COLLECTIVE),
        ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>", WorkClass.COLLECTIVE),
        ("at::cuda::(anonymous namespace)::spin_kernel(long)", WorkClass.OTHER),
    ],
)
def test_class_of_a_real_kernel(name: str, expected: WorkClass) -> None:
    assert class_of_kernel(name) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aten::mm", WorkClass.GEMM),
        ("aten::addmm", WorkClass.GEMM),
        ("aten::baddbmm", WorkClass.GEMM),
        ("aten::linear", WorkClass.GEMM),
        ("AddmmBackward0", WorkClass.GEMM),
        ("aten::embedding_bag", WorkClass.EMBEDDING),
        ("fbgemm::split_embedding_codegen_lookup_rowwise_adagrad_function", WorkClass.EMBEDDING),
        ("aten::scaled_dot_product_attention", WorkClass.ATTENTION),
        ("aten::cudnn_convolution", WorkClass.CONV),
        ("aten::copy_", WorkClass.COPY),
        ("aten::cat", WorkClass.COPY),
        ("torch.distributed.ddp.reducer::copy_bucket_to_grad", WorkClass.COPY),
        ("aten::zero_", WorkClass.MEMSET),
        ("aten::sum", WorkClass.REDUCTION),
        ("aten::_log_softmax", WorkClass.REDUCTION),
        ("aten::native_layer_norm", WorkClass.REDUCTION),
        ("aten::add_", WorkClass.ELEMENTWISE),
        ("aten::threshold_backward", WorkClass.ELEMENTWISE),
        ("aten::_foreach_addcdiv_", WorkClass.ELEMENTWISE),
        ("c10d::allreduce_", WorkClass.COLLECTIVE),
        ("gloo:all_to_all", WorkClass.COLLECTIVE),
        ("aten::view", WorkClass.OTHER),
        ("aten::empty", WorkClass.OTHER),
        ("## forward ##", WorkClass.OTHER),
    ],
)
def test_class_of_a_real_operator(name: str, expected: WorkClass) -> None:
    assert class_of_operator(name) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "all_reduce"),
        ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_gather"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "reduce_scatter"),
        ("ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)", "broadcast"),
        ("ncclDevKernel_SendRecv(ncclDevComm*, unsigned long, ncclWork*)", "send_recv"),
        ("nccl:recv 1<-0", "send_recv"),
        ("nccl:all_to_all", "all_to_all"),
        ("nccl:_all_gather_base", "all_gather"),
        ("gloo:all_to_all", "all_to_all"),
        ("gloo:all_reduce", "all_reduce"),
        ("gloo:barrier", "barrier"),
        ("ncclDevKernel_Reduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "reduce"),
        ("nccl:reduce", "reduce"),
        ("gloo:gather", "gather"),
        ("c10d::gather_", "gather"),
        ("gloo:scatter", "scatter"),
        ("c10d::scatter_", "scatter"),
        ("c10d::alltoall_base_", "all_to_all"),
        ("c10d::allreduce_", "all_reduce"),
        ("c10d::_reduce_scatter_base_", "reduce_scatter"),
        ("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", "other"),
        ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>", "all_reduce"),
        ("aten::broadcast_to", None),
        ("volta_sgemm_64x64_nt", None),
    ],
)
def test_collective_of_a_real_name(name: str, expected: str | None) -> None:
    assert collective_of(name) == expected


def test_copies_and_memory_sets_have_their_class_by_role() -> None:
    roles = (Role.MEMCPY, Role.MEMSET, Role.KERNEL)

    assert [class_of_role(role) for role in roles] == [WorkClass.COPY, WorkClass.MEMSET, None]


def test_an_operator_and_a_kernel_of_one_name_are_classified_apart() -> None:
    names = ["aten::mm", "volta_sgemm_64x64_nt"]

    assert classes_of_names(names, operators=True).tolist() == [WorkClass.GEMM, WorkClass.OTHER]
    assert classes_of_names(names, operators=False).tolist() == [WorkClass.OTHER, WorkClass.GEMM]

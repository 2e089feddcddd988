"""What a plug-in says of names: after the command line, before the built-in rules; checked when it is loaded."""

from __future__ import annotations

import re

import pytest

from tests.ascend_builder import AscendBuilder, load
from tests.builder import TraceBuilder
from traceanalyze.analyses.analyze import analyze_context
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.idle.host_state import loading_ranges
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.analyses.options import Options
from traceanalyze.comparison.attribution import work_classes
from traceanalyze.comparison.side import side
from traceanalyze.model.classifier import Classifier, names_of
from traceanalyze.model.classify import ClassifyOptions
from traceanalyze.model.kernel_classes import KernelGroup
from traceanalyze.model.vocabulary import DeviceClass


def classified(builder, *classifiers, **options):
    known = tuple(names_of(f"p{at}", each) for at, each in enumerate(classifiers))
    context = Context(builder.trace(), Options(classify=ClassifyOptions(plugins=known, **options)))
    return context, analyze_context(context)


def groups(context):
    text = context.trace.strings.text
    names = [text(int(context.device.name[at])) for at in context.once(device_work).event.tolist()]
    return dict(zip(names, (KernelGroup(each) for each in context.once(device_work).group.tolist()), strict=True))


def classes(context):
    text = context.trace.strings.text
    names = [text(code) for code in context.device.name.tolist()]
    return dict(zip(names, (DeviceClass(each) for each in context.device.klass.tolist()), strict=True))


def kernels(*names):
    b = TraceBuilder()
    for at, name in enumerate(names):
        b.launch(20 * at, 5, 20 * at + 10, 10, name=name)
    return b


NCCL = "ncclDevKernel_AllReduce_Sum"


def test_it_overrules_what_the_tool_knows():
    mine = Classifier(kernels={"^nccl": "layout", "^triton_": "communication", "gemm": "attention"})
    context, _ = classified(kernels(NCCL, "triton_poi_fused_0", "my_gemm", "other_gemv"), mine)
    assert classes(context) == {
        NCCL: DeviceClass.COMPUTE,
        "triton_poi_fused_0": DeviceClass.COMM,
        "my_gemm": DeviceClass.COMPUTE,
        "other_gemv": DeviceClass.COMPUTE,
    }
    assert groups(context) == {
        NCCL: KernelGroup.LAYOUT,
        "triton_poi_fused_0": KernelGroup.COMMUNICATION,
        "my_gemm": KernelGroup.ATTENTION,
        "other_gemv": KernelGroup.MATMUL,
    }


def test_the_command_line_overrules_it():
    mine = Classifier(kernels={"ring": "communication", "sum": "reduction"})
    told = {"comm": re.compile("sum"), "not_comm": re.compile("ring")}
    context, _ = classified(kernels("ring", "sum"), mine, **told)
    assert classes(context) == {"ring": DeviceClass.COMPUTE, "sum": DeviceClass.COMM}
    assert groups(context) == {"ring": KernelGroup.OTHER, "sum": KernelGroup.COMMUNICATION}


def test_the_first_of_two_plugins_decides():
    first, second = Classifier(kernels={"x": "attention"}), Classifier(kernels={"x": "softmax", "y": "softmax"})
    context, analysis = classified(kernels("x", "y"), first, second)
    assert groups(context) == {"x": KernelGroup.ATTENTION, "y": KernelGroup.SOFTMAX}
    told = [check.values for check in analysis.checks if check.message == "plugin_events"]
    assert told == [(("plugin", "p0"), ("count", 1)), (("plugin", "p1"), ("count", 1))]


def test_operators_tell_where_the_kernel_does_not():
    b = TraceBuilder()
    b.op("acme::gate", 0, 100)
    b.launch(10, 5, 20, 10, name="k0")
    b.launch(30, 5, 40, 10, name="my_gemm")
    context, analysis = classified(b, Classifier(operators={"^acme::gate$": "elementwise"}))
    assert groups(context) == {"k0": KernelGroup.ELEMENTWISE, "my_gemm": KernelGroup.MATMUL}
    assert [check.values[1] for check in analysis.checks if check.message == "plugin_events"] == [("count", 1)]


def test_copies_stay_what_they_were_recorded_as():
    b = TraceBuilder()
    b.copy(0, 5, 10, 10, name="Memcpy HtoD")
    context, analysis = classified(b, Classifier(kernels={"Memcpy": "attention"}))
    assert groups(context) == {"Memcpy HtoD": KernelGroup.COPY}
    assert [check for check in analysis.checks if check.message == "plugin_events"] == []


def test_ranges_are_data_loading():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.launch(0, 5, 10, 10)
    b.annotation("acme.next_batch", 30, 60)
    b.launch(100, 5, 110, 10)
    plain, _ = classified(b)
    context, analysis = classified(b, Classifier(data_loading=(r"^acme\.next_batch$",)))
    assert [len(each.once(loading_ranges).rows) for each in (plain, context)] == [0, 1]
    (told,) = (check.values for check in analysis.checks if check.message == "plugin_ranges")
    assert told == (("plugin", "p0"), ("count", 1))


def test_it_overrules_the_kernel_table_of_an_ascend_profile(tmp_path):
    b = AscendBuilder()
    b.kernel("aclnnMix_MatMulV3", 10, 20, op_type="MatMulV3", launch=5)
    b.kernel("aclnnOther_MatMulV3", 40, 20, op_type="MatMulV3", launch=35)
    profile = load(b.write(tmp_path / "x_ascend_pt"))
    known = (names_of("acme", Classifier(kernels={"Mix": "attention"})),)
    context = Context(profile, Options(classify=ClassifyOptions(plugins=known)))
    assert groups(context) == {
        "aclnnMix_MatMulV3": KernelGroup.ATTENTION,
        "aclnnOther_MatMulV3": KernelGroup.MATMUL,
    }


@pytest.mark.parametrize(
    ("named", "path"),
    [
        (None, "compute/convolution/units_unknown"),
        ("layout", "compute/vector_work/layout"),
        ("convolution", "compute/convolution/units_unknown"),
    ],
)
def test_comparisons_keep_what_it_says(named, path):
    """A matrix product inside a convolution is a step of it, unless a plug-in says what it is for."""
    b = TraceBuilder()
    b.op("aten::cudnn_convolution", 0, 8)
    b.launch(1, 1, 10, 10, name="my_gemm")
    known = () if named is None else (names_of("acme", Classifier(kernels={"my_gemm": named})),)
    one = side(b.trace(), Options(classify=ClassifyOptions(plugins=known)))
    keys = {"/".join(key for key, _ in path) for path in work_classes(one, {})}
    assert {key.replace("_forward", "") for key in keys} >= {path}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kernels": {"x": "attention"}}, "dict is no traceanalyze.model.classifier.Classifier"),
        (Classifier(kernels={"x": "Attention"}), "Attention is no kind of work; these are: matmul, attention"),
        (Classifier(kernels={"x": "copy"}), "copy is no kind of work"),
        (Classifier(operators={"x": "communication"}), "communication is no kind of work"),
        (Classifier(kernels={"x(": "attention"}), r"x\( is not a regular expression: missing"),
        (Classifier(data_loading="next"), "data_loading is a tuple of texts"),
    ],
)
def test_what_cannot_be_meant_is_refused(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        names_of("acme", given)

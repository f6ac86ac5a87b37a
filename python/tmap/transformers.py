# SPDX-License-Identifier: Apache-2.0
"""Runs the experts of Hugging Face Transformers by tmap: `experts_implementation="tmap"`.

`register()` puts tmap into Transformers' registry of experts, and changes nothing else. Models that
name it then call tmap. A call that tmap does not take falls through to Transformers' `grouped_mm`,
or to its `batched_mm`. `docs/transformers.md` lists what is taken.
"""
import importlib
import inspect
import threading

import torch

from . import torch_moe  # noqa: F401: registers the operators
from ._calls import CallCounts, Calls
from ._epilogue import GATES
from ._routing import MAX_CHOICES, MAX_EXPERTS, MAX_K
from .torch_gates import GATED_COLUMNS
from .torch_rules import CAPABILITY, HOPPER

__all__ = ["calls", "register", "unregister"]

NAME = "tmap"

DEVICES = "the tensors are not on one GPU"
DISTRIBUTED = "a tensor is a DTensor"
TYPES = "weights and biases are not all of bfloat16 or all of float16"
SHAPES = "tokens are not [tokens, width], choices not [tokens, k], or there are none"
LIMITS = "there are more experts or choices than tmap takes"
UNITS = "the width of tokens or of experts is not a multiple of 8"
LINES = "lines of weights have gaps, or do not begin at multiples of 16 bytes"
PARAMETERS = "the activation has parameters"

_LINE_BYTES = 16
_UNIT = _LINE_BYTES // 2  # elements
_lock = threading.Lock()
_counts = CallCounts()
_registry = _grouped_mm = _batched_mm = _default_gate = None

# PyTorch's grouped product raises an error for these.
_ONLY_BATCHED = (UNITS, LINES)
# Functions of gates, by the names of Transformers' classes in lower case: GELUTanh, SiLUActivation.
_FUNCTIONS = {name.replace("_", ""): name for name in GATES[1:]}
# Gates with limits that models apply themselves, by the module and class that define them: the
# columns, the attributes with alpha and limit, and what is added to values. Transformers' own gate
# is in _gate_of.
_GATES = {
    "gpt_oss.modeling_gpt_oss.GptOssExperts": ("interleaved", "alpha", "limit", 1.0),
    "openai_privacy_filter.modeling_openai_privacy_filter.OpenAIPrivacyFilterExperts":
        ("halves", "alpha", "limit", 1.0),
    "minimax_m3_vl.modeling_minimax_m3_vl.MiniMaxM3VLExperts":
        ("halves", "swiglu_alpha", "swiglu_limit", 1.0),
    "deepseek_v4.modeling_deepseek_v4.DeepseekV4Experts": ("halves", None, "limit", 0.0),
    "hy_v4.modeling_hy_v4.HYV4Experts": ("halves", None, "swiglu_limit", 0.0),
    "glm5_next.modeling_glm5_next.Glm5NextTextExperts": ("halves", None, "swiglu_limit", 0.0),
}
_MODELS, _ACTIVATIONS = "transformers.models.", "transformers.activations"


def register() -> None:
    """Adds "tmap" to Transformers' implementations of experts, and sets the counts of `calls` to
    zero. Does nothing if it is there already. Raises `RuntimeError` if Transformers is older than
    5.17, or if "tmap" names another implementation."""
    global _registry, _grouped_mm, _batched_mm, _default_gate
    moe = _registry_module()
    with _lock:
        functions = moe.ALL_EXPERTS_FUNCTIONS
        present = functions.get(NAME)
        if present is _forward:
            return
        if present is not None:
            raise RuntimeError(f'experts_implementation="{NAME}" is registered already, as '
                               f"{present.__module__}.{present.__qualname__}")
        _registry, _default_gate = functions, moe._default_apply_gate
        _grouped_mm, _batched_mm = functions["grouped_mm"], functions["batched_mm"]
        _counts.clear()
        functions.register(NAME, _forward)


def unregister() -> None:
    """Takes "tmap" out of the registry again. Does nothing if it is not there. Set models to
    another implementation first: one that names "tmap" raises KeyError at its next call."""
    with _lock:
        if _registry is not None and _registry.get(NAME) is _forward:
            del _registry._global_mapping[NAME]


def calls() -> Calls:
    """Counts the calls since the latest `register`: those that tmap took, and those that fell
    through, by the reason. A call in a compiled program counts once, when it is compiled, and one
    in a graph when it is captured."""
    return _counts.of(NAME)[NAME]


def _registry_module():
    """Returns Transformers' module of experts, if it has what is used here."""
    transformers = importlib.import_module("transformers")
    try:
        moe = importlib.import_module("transformers.integrations.moe")
        options = inspect.signature(moe.use_experts_implementation).parameters
        is_new = {"is_transposed", "has_bias", "has_gate"} <= set(options)
        fits = (is_new and hasattr(moe, "_default_apply_gate")
                and {"grouped_mm", "batched_mm"} <= set(moe.ALL_EXPERTS_FUNCTIONS))
    except (ImportError, AttributeError):
        fits = False
    if not fits:
        raise RuntimeError("tmap.transformers.register needs Transformers 5.17 or newer, with "
                           "ALL_EXPERTS_FUNCTIONS in transformers.integrations.moe, not "
                           f"{transformers.__version__}")
    return moe


# torch.compile runs this while it compiles.
@torch.compiler.assume_constant_result
def _count(reason):
    _counts.add(NAME, reason)


def _forward(self, hidden_states, top_k_index, top_k_weights):
    """Computes the experts of a module of Transformers."""
    up, up_bias, down_bias = _parameters_of(self)
    down = self.down_proj
    reason = _refuse(self, hidden_states, top_k_index, top_k_weights, up, down, up_bias, down_bias)
    _count(reason)
    if reason is not None:
        theirs = _batched_mm if reason in _ONLY_BATCHED else _grouped_mm
        return theirs(self, hidden_states, top_k_index, top_k_weights)
    x, weights = hidden_states.to(up.dtype), top_k_weights.float()
    if not self.is_transposed:
        up, down = up.transpose(-2, -1), down.transpose(-2, -1)
    # With expert parallelism, choices of other ranks have numbers past the last expert.
    ids = torch.where(top_k_index < up.shape[0], top_k_index, -1)
    gate = _gate_of(self)
    operands = x, up, down, up_bias, down_bias, weights
    if gate is None or _wants_gradients(operands):
        out = _in_steps(self, gate, ids, *operands)
    else:
        out = torch.ops.tmap.moe_layer(x, up, down, ids, weights, up_bias, down_bias, **gate)
    return out.to(hidden_states.dtype)


def _in_steps(self, gate, ids, x, up, down, up_bias, down_bias, weights):
    ops = torch.ops.tmap
    _, ends, row_of_choice, token_of_row, _ = ops.moe_sort(ids, up.shape[0])
    rows = ops.moe_gather(x, token_of_row, row_of_choice)
    if gate is not None:
        made = ops.grouped_mlp(rows, up, down, ends, up_bias, down_bias, **gate)[0]
    else:
        # The module's own function also sees rows of no expert, so they must be numbers.
        sums = ops.grouped_mm(rows, up, ends, up_bias, zero_rest=True)
        hidden = self._apply_gate(sums) if self.has_gate else self.act_fn(sums)
        made = ops.grouped_mm(hidden.to(up.dtype), down, ends, down_bias)
    return ops.moe_combine(made, row_of_choice, weights)


def _wants_gradients(tensors):
    return torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad
                                           for tensor in tensors)


def _parameters_of(self):
    """Returns the weights of the first product, and both biases or None."""
    up = self.gate_up_proj if self.has_gate else self.up_proj
    if not self.has_bias:
        return up, None, None
    return up, self.gate_up_proj_bias if self.has_gate else self.up_proj_bias, self.down_proj_bias


def _gate_of(self):
    """Returns the options of the gate that a module applies, or None if tmap has no such gate, or
    has none for as many columns."""
    if not self.has_gate or self.gate_up_proj.shape[2 if self.is_transposed else 1] % GATED_COLUMNS:
        return None
    if type(self)._apply_gate is _default_gate:
        function = _function_of(type(self.act_fn))
        return None if function is None else {"function": function}
    known = _known_gate(type(self))
    if known is None:
        return None
    columns, alpha, limit, value_shift = known
    if hasattr(self, "act_fn") and _function_of(type(self.act_fn)) != "silu":
        return None
    return {"columns": columns, "limit": getattr(self, limit), "value_shift": value_shift,
            "alpha": 1.0 if alpha is None else getattr(self, alpha)}


@torch.compiler.assume_constant_result
def _function_of(activation):
    """Returns the function of a class of activations, or None if tmap has none. A class from
    elsewhere may have the same name."""
    if activation is not torch.nn.SiLU and activation.__module__ != _ACTIVATIONS:
        return None
    return _FUNCTIONS.get(activation.__name__.removesuffix("Activation").lower())


@torch.compiler.assume_constant_result
def _known_gate(experts_class):
    """Returns what _GATES has of the class from which this one has its gate."""
    applied = experts_class._apply_gate
    owner = applied.__qualname__.removesuffix("._apply_gate")
    name = f"{applied.__module__}.{owner}"
    return _GATES.get(name.removeprefix(_MODELS)) if name.startswith(_MODELS) else None


def _capability_of(device):
    return torch.cuda.get_device_capability(device) if device.type == "cuda" else None


def _refuse(self, x, ids, weights, up, down, up_bias, down_bias):
    """Returns why tmap does not take a call, or None."""
    parameters = [tensor for tensor in (up, down, up_bias, down_bias) if tensor is not None]
    if any(_is_distributed(tensor) for tensor in (x, ids, weights, *parameters)):
        return DISTRIBUTED
    capability = _capability_of(x.device)
    if capability is None or any(tensor.device != x.device for tensor in (ids, weights, *parameters)):
        return DEVICES
    if capability != HOPPER:
        return CAPABILITY
    if up.dtype not in (torch.bfloat16, torch.float16) or any(
            tensor.dtype != up.dtype for tensor in parameters):
        return TYPES
    if (x.dim(), ids.dim(), weights.dim()) != (2, 2, 2) or x.shape[0] == 0 or ids.shape[1] == 0:
        return SHAPES
    if up.shape[0] > MAX_EXPERTS or ids.shape[1] > MAX_K or ids.numel() > MAX_CHOICES:
        return LIMITS
    if any(extent % _UNIT for tensor in (up, down) for extent in tensor.shape[1:]):
        return UNITS
    if not (_has_lines(up) and _has_lines(down)):
        return LINES
    if not self.has_gate or _gate_of(self) is None:
        activation = getattr(self, "act_fn", None)
        if isinstance(activation, torch.nn.Module) and any(True for _ in activation.parameters()):
            return PARAMETERS
    return None


def _is_distributed(tensor):
    return hasattr(tensor, "placements")


def _has_lines(weights):
    """Returns whether lines of the last dim can be read by tensor maps. A compiler has no
    addresses, so operators check those of compiled programs."""
    group, line, step = weights.stride()
    return (step == 1 and line >= weights.shape[2] and line % _UNIT == 0 and group % _UNIT == 0
            and (torch.compiler.is_compiling() or weights.data_ptr() % _LINE_BYTES == 0))

"""The statements that programs are drawn from: views, writes in place, indexing, promotion, sizes, reductions, layers."""

from __future__ import annotations

from collections.abc import Callable

import torch
from drawing import Unfit
from program_draw import NUMBERS, Draw

Statement = Callable[[Draw], str]


def is_float(t: torch.Tensor) -> bool:
    return t.is_floating_point()


def is_whole(t: torch.Tensor) -> bool:
    return t.dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def has_dims(t: torch.Tensor) -> bool:
    return t.dim() > 0


def is_flag(t: torch.Tensor) -> bool:
    return t.dtype is torch.bool


def is_small(t: torch.Tensor) -> bool:
    """Finite, and far from the borders of every type."""
    return t.dtype is not torch.bool and t.numel() > 0 and bool((t.double().abs() < 100).all())


def is_number(t: torch.Tensor) -> bool:
    """No NaN: which of several is the largest is another question in ONNX."""
    return t.numel() > 0 and not bool(torch.isnan(t).any())


# sizes and numbers


def size_of(d: Draw) -> str:
    x = d.tensor(has_dims)
    return f"{d.new_name('s')} = {x}.{d.pick('shape', 'size()')}[{d.dim(x)}]"


def number_of_sizes(d: Draw) -> str:
    a, b = d.size(), d.size()
    how = d.pick(
        "{a} + {b}", "{a} * {b}", "{a} - {b}", "{a} // {b}", "max({a}, {b})", "min({a}, {b})", "({a} + {b} - 1) // {b}"
    )
    return f"{d.new_name('s')} = {how.format(a=a, b=b)}"


def scaled_by_size(d: Draw) -> str:
    x = d.tensor(is_float)
    return f"{d.new_name('v')} = {x} {d.pick('*', '/', '+', '-')} {d.pick('float({})', '{}', '({} ** 0.5)').format(d.size())}"


def numel_of(d: Draw) -> str:
    return f"{d.new_name('s')} = {d.tensor()}.{d.pick('numel()', 'dim()')}"


# views


def view(d: Draw) -> str:
    x = d.tensor(has_dims)
    i, j = d.dim(x), d.dim(x)
    how = d.pick(
        f"transpose({i}, {j})", f"movedim({i}, {j})", f"unsqueeze({i})", *([f"squeeze({i})"] if has_size_one(d, x, i) else []), f"select({i}, {d.pick(0, -1, 1)})",
        f"flatten({i})", f"narrow({i}, {d.pick(0, 1)}, {d.size()})", f"unfold({i}, {d.pick(1, 2)}, {d.pick(1, 2, 3)})",
        "t()", "mT", f"diagonal({d.pick(0, 1, -1)}, {i}, {j})", f"swapaxes({i}, {j})", "detach()", "contiguous()",
        f"chunk(2, {i})[{d.pick(0, -1)}]", f"split({d.pick(1, 2)}, {i})[0]", f"unbind({i})[{d.pick(0, -1)}]",
        f"tensor_split(2, {i})[1]", f"flatten(0, {j})", "view(-1)", "reshape(-1)", f"view_as({x})", "adjoint()",
    )  # fmt: skip
    return f"{d.new_name('v')} = {x}.{how}"


def has_size_one(d: Draw, x: str, dim: int) -> bool:
    """A script's squeeze of an open size asks for the size 1 in ONNX, whose ranks are fixed."""
    return all(space[x].shape[dim] == 1 for space in d.spaces)


def permuted(d: Draw) -> str:
    x = d.tensor(lambda t: t.dim() > 1)
    order = list(range(d.rank(x)))
    d.rng.shuffle(order)
    return f"{d.new_name('v')} = {x}.permute({', '.join(map(str, order))})"


def reshaped(d: Draw) -> str:
    x = d.tensor(has_dims)
    rank = d.rank(x)
    sizes = [f"{x}.shape[{i}]" for i in range(rank)]
    at = d.rng.randrange(rank)
    form = d.pick("join", "split", "turn", "first", "last", "one")
    if form == "join" and rank > 1:
        at = d.rng.randrange(rank - 1)
        sizes[at : at + 2] = [f"{sizes[at]} * {sizes[at + 1]}"]
    elif form == "split":
        k = d.pick(2, 3)
        sizes[at : at + 1] = d.pick([f"{sizes[at]} // {k}", str(k)], [str(k), "-1"], [str(k), f"{sizes[at]} // {k}"])
    elif form == "turn":
        sizes = sizes[::-1]
    elif form == "first":
        sizes = [sizes[0], "-1"]
    elif form == "last":
        sizes = ["-1", sizes[-1]]
    else:
        sizes.insert(at, "1")
    return f"{d.new_name('v')} = {x}.{d.pick('view', 'reshape')}({', '.join(sizes)})"


def expanded(d: Draw) -> str:
    x = d.tensor()
    sizes = [d.pick("-1", "-1", d.size()) if i else d.pick("-1", d.size()) for i in range(d.rank(x))]
    if d.chance(0.5) or not sizes:
        sizes = [d.size()] + ["-1"] * len(sizes)
    return f"{d.new_name('v')} = {x}.expand({', '.join(sizes)})"


def sliced(d: Draw) -> str:
    return f"{d.new_name('v')} = {part(d, d.tensor(has_dims))}"


def bound(d: Draw) -> str:
    return d.pick("", "", "0", "1", "-1", "2", "-2", "100", d.size())


def part(d: Draw, x: str) -> str:
    """Basic indexing: slices, numbers, None and dots."""
    items = []
    for _ in range(d.rng.randint(1, max(1, d.rank(x)))):
        kind = d.rng.random()
        if kind < 0.6:
            items.append(f"{bound(d)}:{bound(d)}" + (f":{d.pick(1, 2, 3)}" if d.chance(0.3) else ""))
        elif kind < 0.8:
            items.append(d.pick("0", "-1", "1"))
        elif kind < 0.9:
            items.append("None")
        elif "..." not in items:
            items.append("...")
    return f"{x}[{', '.join(items) or ':'}]"


# writes in place


def place(d: Draw, x: str) -> str:
    """A tensor, or a view of it that is written through."""
    if d.rank(x) == 0 or d.chance(0.3):
        return x
    i = d.dim(x)
    return d.pick(
        part(d, x), part(d, x), f"{x}.transpose({i}, {d.dim(x)})", f"{x}.select({i}, 0)", f"{x}.narrow({i}, 0, 1)",
        f"{x}.diagonal()", f"{x}.view(-1)", f"{x}.unsqueeze({i})", f"{x}.unfold({i}, 2, 2)", f"{x}.chunk(2, {i})[0]",
        f"{x}.flatten(0, 1)", f"{x}.unbind({i})[-1]",
    )  # fmt: skip


def written(d: Draw) -> str:
    x = d.tensor()
    where = place(d, x)
    dtype = d.at(x).dtype
    number = d.pick("2", "3", "-1", "0", "1", "0.5") if dtype.is_floating_point else d.pick("2", "3", "1", "0")
    if dtype is torch.bool:
        return f"{where}.{d.pick('logical_not_()', 'fill_(True)', 'zero_()')}"
    other = d.tensor(lambda t: t.dtype == dtype)
    how = d.pick(
        f"add_({number})", f"mul_({number})", f"sub_({number})", f"fill_({number})", "zero_()", f"copy_({other})", f"add_({other})",
        f"mul_({other})", "neg_()", "abs_()", f"clamp_(min={number})", f"add_({other}, alpha=2)", f"copy_({d.tensor()})",
    )  # fmt: skip
    return f"{where}.{how}"


def assigned(d: Draw) -> str:
    x = d.tensor(has_dims)
    number = d.pick("1", "0", "5") if d.at(x).dtype is not torch.bool else "True"
    dtype = d.at(x).dtype
    value = d.pick(number, number, d.tensor(lambda t: t.dtype == dtype))
    where = d.pick(part(d, x), part(d, x), indexed_by_tensor(d, x), f"{x}[{flags_of(d, x)}]")
    return f"{where} {d.pick('=', '=', '+=', '*=')} {value}" if dtype is not torch.bool else f"{where} = {value}"


def flags_of(d: Draw, x: str) -> str:
    return f"{x} {d.pick('>', '<', '==', '>=')} {d.pick('0', '1', '-1')}" if d.at(x).dtype is not torch.bool else x


def indexed_by_tensor(d: Draw, x: str) -> str:
    i = d.tensor(lambda t: t.dtype is torch.int64 and t.dim() < 3)
    items = [d.pick(":", "0", "-1", "...", "None", "1:") for _ in range(d.rng.randint(0, max(0, d.rank(x) - 1)))]
    items = [item for at, item in enumerate(items) if item != "..." or "..." not in items[:at]]
    for _ in range(d.pick(1, 1, 2)):
        items.insert(d.rng.randint(0, len(items)), i)
    return f"{x}[{', '.join(items)}]"


def scattered(d: Draw) -> str:
    x = d.tensor(has_dims)
    dim = d.dim(x)
    i = places_of(d, x, dim)
    dtype = d.at(x).dtype
    src = d.tensor(lambda t: t.dtype == dtype)
    inplace = d.chance(0.4)
    how = d.pick(
        f"scatter{{}}({dim}, {i}, {src})", f"scatter_add{{}}({dim}, {i}, {src})", f"index_add{{}}({dim}, {i}, {src})",
        f"index_fill{{}}({dim}, {i}, 1)", f"masked_fill{{}}({flags_of(d, x)}, 0)", f"index_copy{{}}({dim}, {i}, {src})",
        f"scatter{{}}({dim}, {i}, 1)", f"index_put{{}}(({i},), {src})", f"masked_fill{{}}({d.tensor(is_flag)}, 1)",
    )  # fmt: skip
    if inplace:
        return f"{x}.{how.format('_')}"
    return f"{d.new_name('v')} = {x}.{how.format('')}"


# indexing


def places_of(d: Draw, x: str, dim: int) -> str:
    """Indices into a dimension: PyTorch does not find all that lie outside of it."""
    i = d.tensor(lambda t: t.dtype is torch.int64 and t.dim() > 0)
    for space in d.spaces:
        if space[i].numel() and not (int(space[i].min()) >= 0 and int(space[i].max()) < space[x].shape[dim]):
            raise Unfit
    return i


def indexed(d: Draw) -> str:
    return f"{d.new_name('v')} = {indexed_by_tensor(d, d.tensor(has_dims))}"


def gathered(d: Draw) -> str:
    x = d.tensor(has_dims)
    dim = d.dim(x)
    i = places_of(d, x, dim)
    how = d.pick(f"gather({dim}, {i})", f"index_select({dim}, {i})", f"take({i})", f"take_along_dim({i}, {dim})")
    return f"{d.new_name('v')} = {x}.{how}"


def places(d: Draw) -> str:
    """Indices that fit somewhere."""
    x = d.tensor(lambda t: t.dim() > 0 and is_number(t))
    return f"{d.new_name('v')} = " + d.pick(
        f"torch.arange({x}.shape[{d.dim(x)}])", f"torch.zeros({d.size()}, dtype=torch.int64)",
        f"torch.arange({d.size()} - 1, -1, -1)", f"{x}.argsort({d.dim(x)}, stable=True)", f"{x}.argmax({d.dim(x)})",
        f"{x}.argmin({d.dim(x)}, keepdim=True)", f"torch.tensor([0, {d.pick(0, 1, -1)}])",
    )  # fmt: skip


def chosen(d: Draw) -> str:
    a, b = d.tensor(), d.tensor()
    c = d.tensor(is_flag) if d.chance(0.5) and d.tensors(is_flag) else f"{d.tensor()} > 0"
    b = d.pick(b, d.pick(*NUMBERS))
    return f"{d.new_name('v')} = torch.where({c}, {a}, {b})"


# arithmetic and promotion


def operand(d: Draw) -> str:
    return d.pick(d.tensor(), d.tensor(), d.pick(*NUMBERS), d.size())


def arithmetic(d: Draw) -> str:
    x, y = d.tensor(), operand(d)
    if d.chance(0.2):
        x, y = y, x
    op = d.rng.choices(
        ["+", "-", "*", "/", "//", "%", ">", "<", "==", "!=", ">=", "&", "|", "^"],
        [6, 6, 6, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1],
    )[0]
    return f"{d.new_name('v')} = {x} {op} {y}"


def signed(d: Draw) -> str:
    """A number with a sign, which NaN has at random."""
    return d.pick(d.tensor(is_number), d.pick("-1", "-0.0", "2"))


def arithmetic_by_name(d: Draw) -> str:
    x, y = d.tensor(), operand(d)
    how = d.pick(
        f"torch.div({x}, {y}, rounding_mode={d.pick(repr('floor'), repr('trunc'), None)})", f"torch.remainder({x}, {y})",
        f"torch.fmod({x}, {y})", f"torch.floor_divide({x}, {y})", f"{x}.add({y}, alpha={d.pick(2, 3)})",
        f"{x}.sub({y}, alpha=2)", f"torch.maximum({x}, {d.tensor()})", f"torch.minimum({x}, {d.tensor()})",
        f"torch.rsub({x}, {y})", f"torch.true_divide({x}, {y})", f"torch.pow({x}, {d.pick('2', '3', '0.5', '0', '1')})",
        f"torch.fmax({x}, {d.tensor()})", f"torch.logical_and({x}, {d.tensor()})", f"torch.logical_xor({x}, {d.tensor()})",
        f"torch.addcmul({x}, {d.tensor()}, {d.tensor()}, value=2)", f"torch.lerp({x}, {d.tensor()}, 0.5)",
        f"torch.copysign({x}, {signed(d)})", f"torch.heaviside({x}, {d.tensor()})", f"torch.hypot({x}, {d.tensor()})",
        f"torch.clamp({x}, {d.pick('-1', '0', '-0.5')}, {d.pick('1', '2', '1.5')})", f"torch.clamp({x}, max={y})",
        f"torch.addcdiv({x}, {d.tensor()}, {d.tensor()})", f"torch.xlogy({x}, {y})", f"torch.atan2({x}, {d.tensor()})",
    )  # fmt: skip
    return f"{d.new_name('v')} = {how}"


def cast(d: Draw) -> str:
    x = d.tensor(is_small)
    how = d.pick(
        "float()", "double()", "long()", "int()", "to(torch.int16)", "to(torch.int8)", "bool()", f"type_as({d.tensor()})",
        f"to({d.tensor()}.dtype)",
    )  # fmt: skip
    if "uint8" in how and not bool((d.at(x) >= 0).all()):
        raise Unfit
    return f"{d.new_name('v')} = {x}.{how}"


def unary(d: Draw) -> str:
    x = d.tensor()
    if d.chance(0.03):
        return f"{d.new_name('v')} = {d.tensor(is_number)}.signbit()"  # NaN has either sign
    how = d.pick(
        "neg()", "abs()", "sign()", "exp()", "log()", "sqrt()", "tanh()", "sigmoid()", "floor()", "ceil()", "round()", "trunc()",
        "relu()", "isnan()", "isinf()", "nan_to_num()", "logical_not()", "square()", "reciprocal()", "rsqrt()", "frac()",
        "log1p()", "expm1()", "erf()", "sin()", "cos()", "isfinite()", "sgn()", "bitwise_not()", "sinh()", "atan()",
        "log2()", "exp2()", "softmax(-1)", "log_softmax(0)", "nan_to_num(1.0, 2.0, -2.0)", "positive()", "round(decimals=1)",
    )  # fmt: skip
    return f"{d.new_name('v')} = {x}.{how}"


# reductions


def reduced(d: Draw) -> str:
    x = d.tensor(is_number)
    dims = d.pick("", str(d.dim(x)) if d.rank(x) else "", f"({d.dim(x)},)" if d.rank(x) else "")
    keep = f", keepdim={d.pick(True, False)}" if dims else ""
    how = d.pick(
        "sum", "sum", "mean", "amax", "amin", "any", "all", "logsumexp", "var", "std", "nansum", "count_nonzero"
    )
    if how == "count_nonzero":
        keep = ""
    return f"{d.new_name('v')} = {x}.{how}({dims}{keep})"


def repeats(t: torch.Tensor) -> bool:
    """What expand gives: PyTorch orders it in place on the way to its median, which is wrong then."""
    return any(step == 0 and size > 1 for step, size in zip(t.stride(), t.shape, strict=True))


def has_small_product(d: Draw, x: str) -> bool:
    """ONNX Runtime multiplies integers as floats, and cuts products off that do not fit; those of PyTorch wrap."""
    values = [space[x] for space in d.spaces]
    return all(t.is_floating_point() or float(t.double().abs().clamp(min=1).prod()) < 2**53 for t in values)


def reduced_with_place(d: Draw) -> str:
    x = d.tensor(lambda t: t.dim() > 0 and is_number(t))
    i = d.dim(x)
    how = d.pick(
        f"max({i})[0]", f"min({i}, keepdim=True)[0]", f"cumsum({i})", f"cumprod({i})", f"prod({i})", f"sort({i})[0]",
        f"topk(1, {i})[0]", f"median({i})[0]", f"cummax({i})[0]", f"argmax({i})", "argmax()", f"sort({i}, descending=True)[0]",
        f"max({i})[1]", f"norm(dim={i})", f"kthvalue(1, {i})[0]", f"logcumsumexp({i})", f"aminmax(dim={i})[0]", "max()", "min()",
        f"cumsum({i}, dtype=torch.float32)", f"sum({i}, dtype=torch.float64)", f"diff(dim={i})", "prod()", "std(unbiased=False)",
    )  # fmt: skip
    if (how.startswith("prod") and not has_small_product(d, x)) or ("median" in how and repeats(d.at(x))):
        raise Unfit
    return f"{d.new_name('v')} = {x}.{how}"


# new tensors, joins


def new(d: Draw) -> str:
    x, n = d.tensor(), d.size()
    how = d.pick(
        f"torch.arange({n})", f"torch.zeros({n}, {d.size()})", f"torch.full(({n}, 2), {d.pick('1.5', '3', 'True')})",
        f"torch.ones_like({x})", f"{x}.new_zeros({n})", f"{x}.new_ones(({n}, {d.size()}))", f"torch.eye({n})",
        f"torch.linspace(0, 1, {n})", f"torch.zeros_like({x}, dtype=torch.int64)", f"torch.full_like({x}, 2)",
        f"torch.arange({n}, dtype=torch.float32)", f"torch.arange(0, {n}, 2)", f"{x}.new_full(({n},), 1)", f"torch.tensor({n})",
        f"torch.arange(1, {n} + 1) * 0.5", f"torch.ones({n}).bool()", f"torch.arange({n}, 0, -1)", f"torch.scalar_tensor({n})",
    )  # fmt: skip
    return f"{d.new_name('v')} = {how}"


def joined(d: Draw) -> str:
    x = d.tensor(has_dims)
    y = d.tensor(has_dims)
    i = d.dim(x)
    how = d.pick(
        f"torch.cat([{x}, {y}], {i})", f"torch.cat([{x}, {x}], {i})", f"torch.stack([{x}, {y}], {i})", f"torch.hstack([{x}, {y}])",
        f"{x}.repeat({', '.join([d.size() for _ in range(d.rank(x))])})", f"torch.tile({x}, ({d.size()},))",
        f"{x}.repeat_interleave({d.pick('2', d.size())}, {i})", f"torch.roll({x}, {d.pick('1', '-1', d.size())}, {i})",
        f"torch.flip({x}, [{i}])", f"F.pad({x}, ({d.pick(0, 1, 2)}, {d.pick(0, 1, -1)}), value={d.pick('0.0', '1.0')})",
        f"torch.tril({x})", f"torch.triu({x}, 1)", f"torch.vstack([{x}, {y}])", f"torch.rot90({x})", f"torch.broadcast_to({x}, {y}.shape)",
        f"torch.cat([{x}, {y}.to({x}.dtype)], {i})", f"torch.meshgrid([{x}, {y}], indexing='ij')[0]", f"torch.outer({x}, {y})",
        f"torch.column_stack([{x}, {y}])", f"torch.cartesian_prod({x}, {y})", f"torch.block_diag({x}, {y})",
    )  # fmt: skip
    return f"{d.new_name('v')} = {how}"


# layers


def product(d: Draw) -> str:
    x = d.tensor(lambda t: t.dim() > 0 and t.is_floating_point())
    y = d.tensor(lambda t: t.dim() > 0 and t.is_floating_point())
    how = d.pick(
        f"{x} @ {y}", f"{x} @ {x}.mT", f"torch.matmul({x}, {y}.transpose(-1, -2))", f"torch.einsum('...i,...i->...', {x}, {y})",
        f"torch.bmm({x}, {y})", f"F.linear({x}, {y})", f"torch.einsum('ij,jk->ik', {x}, {y})", f"torch.tensordot({x}, {y}, 1)",
        f"torch.cdist({x}, {y})", f"F.cosine_similarity({x}, {y}, dim=-1)", f"torch.dot({x}, {y})", f"torch.kron({x}, {y})",
    )  # fmt: skip
    return f"{d.new_name('v')} = {how}"


def layer(d: Draw) -> str:
    x = d.tensor(lambda t: t.dim() > 0 and t.dtype is torch.float32 and bool(torch.isfinite(t).all()))
    how = d.pick(
        f"F.softmax({x}, dim={d.dim(x)})", f"F.layer_norm({x}, {x}.shape[-1:])", f"F.gelu({x})", f"F.silu({x})", f"F.elu({x})",
        f"F.max_pool1d({x}, {d.pick(1, 2)}, {d.pick(1, 2)})", f"F.avg_pool1d({x}, 2, 1, padding=1)", f"F.hardtanh({x})",
        f"F.leaky_relu({x}, 0.1)", f"F.interpolate({x}, scale_factor=2.0)", f"F.interpolate({x}, size={d.size()}, mode='linear')",
        f"F.adaptive_avg_pool1d({x}, {d.pick(1, 2, 3)})", f"F.normalize({x}, dim={d.dim(x)})", f"F.softplus({x})",
        f"F.max_pool2d({x}, 2, 1, 1)", f"F.avg_pool2d({x}, 2)", f"F.pad({x}, (1, 1), mode='{d.pick('replicate', 'reflect', 'circular')}')",
        f"F.hardswish({x})", f"F.glu({x}, {d.dim(x)})", f"F.mish({x})", f"F.interpolate({x}, scale_factor=1.5, mode='bilinear')",
        f"F.instance_norm({x})", f"F.conv1d({x}, torch.ones(2, {x}.shape[1], 1))", f"F.scaled_dot_product_attention({x}, {x}, {x})",
        f"F.pixel_shuffle({x}, 2)", f"F.unfold({x}, 2)", f"F.hardsigmoid({x})", f"F.threshold({x}, 0.5, 1.0)", f"F.celu({x})",
    )  # fmt: skip
    return f"{d.new_name('v')} = {how}"


def by_place(d: Draw) -> str:
    i = d.tensor(lambda t: t.dtype is torch.int64 and t.dim() > 0)
    w = d.tensor(lambda t: t.dim() == 2 and t.is_floating_point()) if d.chance(0.6) else ""
    return f"{d.new_name('v')} = " + (f"F.embedding({i}, {w})" if w else f"F.one_hot({i}, {d.pick(7, 8)})")

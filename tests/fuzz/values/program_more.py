"""More statements that programs are drawn from: control flow over sizes, chains of views, integers at their borders, layers."""

from __future__ import annotations

import torch
from drawing import Unfit
from program_draw import Draw
from program_statements import flags_of, has_dims, has_size_one, is_flag, is_number, is_whole, part, places_of, repeats

ORDERS = ("1", "2", "3", "float('inf')")  # of norms
DTYPES = ("float32", "float64", "int64", "int32", "int16", "int8", "uint8", "bool")


def finite(t: torch.Tensor) -> bool:
    return t.is_floating_point() and t.dim() > 0 and t.numel() > 0 and bool(torch.isfinite(t).all())


def bounded(t: torch.Tensor) -> bool:
    """What sums of products keep exact enough."""
    return finite(t) and bool((t.abs() < 1e3).all())


# writes through chains of views, and over themselves


def written_chain(d: Draw) -> str:
    """A write through several views, one behind the other."""
    x = d.tensor(has_dims)
    dtype = d.at(x).dtype
    where = x
    for _ in range(d.pick(2, 2, 3)):
        i, j = d.rng.randrange(d.rank(x)), d.rng.randrange(d.rank(x))
        where += d.pick(
            f".transpose({i}, {j})", "[1:]", "[:-1]", "[::2]", "[..., 0]", f".unsqueeze({i})", "[0]", f".narrow({i}, 0, 1)",
            ".view(-1)", f".diagonal(0, {i}, {j})", "[None]", ".t()", f".flatten({i})", f".unfold({i}, 1, 1)", f".select({i}, -1)",
            f".split(1, {i})[0]", f".chunk(2, {i})[0]", f".unbind({i})[0]", f".movedim({i}, {j})", ".detach()", f".swapaxes({i}, {j})",
            f".view_as({x})", ".mT", f".expand_as({x})",
        )  # fmt: skip
    number = "1" if dtype is not torch.bool else "True"
    other = d.tensor(lambda t: t.dtype == dtype)
    if dtype is torch.bool:
        return f"{where}.{d.pick('fill_(True)', 'logical_not_()', f'copy_({other})')}"
    return f"{where}.{d.pick(f'add_({number})', 'mul_(2)', 'zero_()', f'copy_({other})', f'sub_({other})', 'neg_()', 'fill_(3)')}"


def overlapping(d: Draw) -> str:
    """A part of a tensor is written with another part of the same one."""
    x = d.tensor(has_dims)
    pairs = [
        ("[1:]", "[:-1]"), ("[:-1]", "[1:]"), ("[..., 1:]", "[..., :-1]"), ("[0]", "[-1]"), ("[::2]", "[1::2]"), ("[:1]", "[-1:]"),
        ("[...]", f".flip({d.dim(x)})"), ("[:]", f".roll(1, {d.dim(x)})"), ("[1:]", "[:-1] * 2"), ("[..., :1]", "[..., -1:]"),
    ]  # fmt: skip
    to, of = d.rng.choice(pairs)
    if d.at(x).dtype is torch.bool:
        of = of.removesuffix(" * 2")
        return f"{x}{to} = {x}{of}"
    return f"{x}{to} {d.pick('=', '=', '+=', '-=', '*=')} {x}{of}"


def masked_both(d: Draw) -> str:
    x = d.tensor(has_dims)
    flags = flags_of(d, x)
    other = d.pick(f"{x}[{flags}]", f"{x}[{flags}] * 2") if d.at(x).dtype is not torch.bool else f"{x}[{flags}]"
    return f"{x}[{flags}] = {other}"


def augmented(d: Draw) -> str:
    """A name that is bound anew, or written in place, by an augmented assignment."""
    x = d.tensor()
    if d.at(x).dtype is torch.bool:
        return f"{x} {d.pick('&=', '|=', '^=')} {d.tensor(is_flag)}"
    return f"{x} {d.pick('+=', '-=', '*=')} {d.pick('1', '2', d.tensor(lambda t: t.dtype == d.at(x).dtype))}"


# loops and branches


def loop(d: Draw) -> str:
    """A loop over a size, or over parts of a tensor."""
    x = d.tensor(has_dims)
    if d.at(x).dtype is torch.bool:
        raise Unfit
    over = d.pick(f"{x}.shape[{d.dim(x)}]", d.size(), "2", "3")
    name = d.new_name("v")
    return d.pick(
        f"{name} = {x} * 1\nfor k in range({over}): {name} = {name} + k",
        f"{name} = {x} * 1\nfor k in range({over}): {name}[k] += 1",
        f"{name} = {x}.sum(0) * 0\nfor k in range({x}.shape[0]): {name} = {name} + {x}[k] * (k + 1)",
        f"{name} = {x} + 0\nfor k in range({over}):\n    if k % 2 == 0: {name} = {name} * 2\n    else: {name} = {name} - k",
        f"{name} = torch.zeros_like({x})\nfor k in range({x}.shape[0]): {name}[k] = {x}[{x}.shape[0] - 1 - k]",
    )


def branch(d: Draw) -> str:
    """A branch on a size or a type."""
    x = d.tensor()
    y = d.tensor(lambda t: t.dtype == d.at(x).dtype and t.dim() == d.rank(x))
    test = d.pick(
        f"{d.size()} > {d.pick(1, 2, 3)}", f"{x}.dim() == {d.pick(1, 2)}", f"{d.size()} == {d.size()}", f"{d.size()} % 2 == 0",
        f"{x}.numel() > {d.pick(4, 10)}", f"{x}.is_floating_point()",
    )  # fmt: skip
    name = d.new_name("v")
    return f"if {test}: {name} = {x} * 1\nelse: {name} = {y} * 2"


# indexing


def index_mix(d: Draw) -> str:
    """Several index tensors, slices, None and dots together."""
    x = d.tensor(lambda t: t.dim() > 1)
    items = []
    for at in range(d.rank(x)):
        size = min(space[x].shape[at] for space in d.spaces)
        if size == 0:
            raise Unfit
        numbers = [d.rng.randrange(-size, size) for _ in range(2)]
        items.append(
            d.pick(
                ":", ":", f"torch.tensor({numbers})", f"torch.tensor([[{numbers[0]}], [{numbers[1]}]])", str(numbers[0]), "1:",
                f"torch.tensor({numbers[0]})", "::2", f"{numbers}",
            )
        )  # fmt: skip
    if d.chance(0.2):
        items.insert(d.rng.randint(0, len(items)), "None")
    if d.chance(0.2):
        items[d.rng.randrange(len(items))] = "..."
    what = f"{x}[{', '.join(items)}]"
    if d.chance(0.3):
        number = "True" if d.at(x).dtype is torch.bool else "7"
        return f"{what} = {number}"
    return f"{d.new_name('v')} = {what}"


def put(d: Draw) -> str:
    x = d.tensor(has_dims)
    dtype = d.at(x).dtype
    i, dim = places_of(d, x, 0), d.dim(x)
    source = d.tensor(lambda t: t.dtype == dtype)
    how = d.pick(
        f"index_put(({i},), {source}, accumulate=True)", f"put({i}, {source})", f"put({i}, {source}, accumulate=True)",
        f"masked_scatter({flags_of(d, x)}, {source}.reshape(-1).repeat(40))", f"index_reduce({dim}, {i}, {source}, 'amax')",
        f"scatter_reduce({dim}, {i}, {source}, '{d.pick('sum', 'amax', 'prod', 'mean', 'amin')}', include_self={d.pick(True, False)})",
        f"select_scatter({source}, {dim}, 0)", f"slice_scatter({source}, {dim}, 1)", f"diagonal_scatter({source})",
        f"index_add({dim}, {i}, {source}, alpha=2)", f"index_fill({dim}, {i}, {d.pick('1', '0')})",
        f"scatter({dim}, {i}, {d.pick('1', '0')}, reduce='{d.pick('add', 'multiply')}')",
    )  # fmt: skip
    return f"{d.new_name('v')} = {x}.{how}"


def strided(d: Draw) -> str:
    x = d.tensor(has_dims)
    n = d.at(x).numel()
    how = d.pick(
f"as_strided(({d.pick(1, 2)}, {max(1, n // 2)}), ({max(1, n // 2)}, 1))",
        f"as_strided((2, {max(1, n // 3)}), (1, {d.pick(1, 2)})).clone()",
        f"as_strided(({max(1, n // 2)},), (2,), {d.pick(0, 1)})",
        f"unfold({d.dim(x)}, {d.pick(1, 2, 3)}, {d.pick(1, 2, 3)})", f"flip({d.dim(x)})[1:]", f"unflatten({d.dim(x)}, (-1, {d.pick(1, 2)}))",
        f"tensor_split(({d.pick(1, 2)},), {d.dim(x)})[-1]", "hsplit(2)[0]", "vsplit((1,))[1]", "view(torch.int32)",
        f"split([1, {x}.shape[0] - 1])[1]", f"split_with_sizes([1, {x}.shape[0] - 1])[0]", f"narrow_copy({d.dim(x)}, 0, 1)",
    )  # fmt: skip
    return f"{d.new_name('v')} = {x}.{how}"


# integers


def whole(d: Draw) -> str:
    """Arithmetic of integers: shifts, bits, and results that do not fit."""
    x, y = d.tensor(is_whole), d.tensor(is_whole)
    how = d.pick(
        f"{x} << {d.pick(1, 2)}", f"{x} >> {d.pick(1, 2)}", f"{x} & {y}", f"{x} | {y}", f"{x} ^ 3", f"~{x}", f"torch.gcd({x}, {y})",
        f"torch.bitwise_and({x}, {y})", f"torch.bitwise_left_shift({x}, 1)", f"torch.bitwise_right_shift({x}, 1)", f"{x} * 37",
        f"({x} * 40 * 40).to(torch.{d.pick('int8', 'int16', 'uint8', 'int32')})", f"{x} - 100", f"-{x}", f"{x}.abs()", f"{x} ** 2",
        f"torch.remainder({x}, {d.pick(3, -3)})", f"torch.fmod({x}, {d.pick(3, -3)})", f"{x} // {d.pick(2, -2)}", f"{x} % {d.pick(3, -4)}",
        f"torch.div({x}, {d.pick(2, -3)}, rounding_mode='{d.pick('floor', 'trunc')}')", f"torch.lcm({x}, {y})", f"{x}.sum(dtype=torch.int32)",
        f"torch.clamp({x}, {d.pick('-1', '0')}, {d.pick('1', '2.5')})", f"{x}.sign()", f"{x} / {d.pick(2, 3)}", f"torch.floor_divide({x}, 2.5)",
        f"{x}.to(torch.int8) * {y}.to(torch.int8) * 30", f"({x} + 120).to(torch.int8) + 7", f"({x}.abs() + 250).to(torch.uint8) + 3",
        f"torch.bitwise_not({x})", f"{x}.float() // {d.pick('2', '-1.5')}", f"torch.tensor({d.pick(2, -3)}) ** {x}.abs().float()",
    )  # fmt: skip
    return f"{d.new_name('v')} = {how}"


def clamped(d: Draw) -> str:
    x = d.tensor()
    low, high = d.tensor(), d.tensor()
    how = d.pick(
        f"torch.clamp({x}, {low}, {high})", f"torch.clamp({x}, min={low})", f"torch.clamp_max({x}, {d.pick('1', '0.5')})",
        f"torch.clamp_min({x}, {low})", f"torch.where({x} > {low}, {x}, {high})", f"torch.where({x} > 0, 1, {d.pick('0', '0.5', 'True')})",
        f"{x}.where({x} == {low}, {high})", f"torch.where({x} > 0, {d.pick('1.5', '2')}, {x})", f"torch.maximum({x}, torch.tensor({d.pick('1', '0.5')}))",
        f"torch.add({x}, torch.tensor({d.pick('1', '0.5', 'True')}))", f"{x} * torch.tensor({d.pick('2', '1.5')}, dtype=torch.float64)",
        f"torch.result_type({x}, {low}) == torch.float32", f"torch.add({x}, {low}, alpha={d.pick('2', '-1')})",
    )  # fmt: skip
    return f"{d.new_name('v')} = {how}"


def order(d: Draw) -> str:
    x = d.tensor(lambda t: t.dim() > 0 and is_number(t))
    i = d.dim(x)
    how = d.pick(
        f"sort({i}, stable=True)[1]", f"topk({d.pick(1, 2)}, {i}, largest=False)[0]", "unique()", "unique(return_counts=True)[1]",
        "unique(return_inverse=True)[1]", f"argsort({i}, descending=True, stable=True)", "msort()", f"quantile(0.5, {i})", f"nanmedian({i})[0]",
        f"cummin({i})[0]", f"cumsum({i}).flip({i})", f"mode({i})[0]", "nonzero()", "nonzero(as_tuple=True)[0]", f"renorm(2, {i}, 1.0)",
        "unique_consecutive()", "histc(4, -2, 2)", "bincount(minlength=3)", f"searchsorted({x})", f"min({i})[1]", f"nanmean({i})", f"var({i}, correction=0)",
        f"std_mean({i})[1]", f"amax(({i},), keepdim=True)", "aminmax()[1]", f"all({i})", f"any({i}, keepdim=True)", f"std({i})", f"vdot({x})",
    )  # fmt: skip
    if "median" in how and repeats(d.at(x)):
        raise Unfit
    return f"{d.new_name('v')} = {x}.{how}"


# layers


def wide(d: Draw, rank: int) -> str:
    return d.tensor(lambda t: t.dtype is torch.float32 and t.dim() == rank and bounded(t))


def starts_outside(d: Draw, x: str, kernel: int, stride: int, padding: int) -> bool:
    """Where a window that is rounded up starts behind the end, up to opset 21 the checker of ONNX counts it."""
    sizes = [size for space in d.spaces for size in space[x].shape[2:]]
    return any(-((kernel - size - 2 * padding) // stride) * stride >= size + padding for size in sizes)


def convolved(d: Draw) -> str:
    rank = d.pick(3, 4)
    x = wide(d, rank)
    k, s, p = d.pick(1, 2, 3), d.pick(1, 2), d.pick(0, 1)
    ones = ", ".join([str(k)] * (rank - 2))
    n = rank - 2
    channels = d.at(x).shape[1]
    how = d.pick(
        f"F.conv{n}d({x}, torch.ones(3, {channels}, {ones}) * 0.5, torch.arange(3.0), stride={s}, padding={p})",
        f"F.conv{n}d({x}, torch.arange({2 * channels * k ** n}.0).view(2, {channels}, {ones}), padding={d.pick(1, 2)}, dilation={d.pick(1, 2)})",
        f"F.conv{n}d({x}, torch.ones({channels}, 1, {ones}), padding='{d.pick('same', 'valid')}', groups={channels})",
        f"F.conv_transpose{n}d({x}, torch.ones({channels}, 2, {ones}), stride={s}, padding={p if k > 1 else 0})",
        f"F.conv_transpose{n}d({x}, torch.ones({channels}, 1, {ones}), stride=2, output_padding=1, groups=1)",
        f"F.max_pool{n}d({x}, {k}, {s}, {min(p, k // 2)}, ceil_mode={d.pick(True, False)})",
        f"F.max_pool{n}d({x}, 2, {s}, dilation={d.pick(1, 2)})",
        f"F.avg_pool{n}d({x}, {k}, {s}, {min(p, k // 2)}, ceil_mode={d.pick(True, False)}, count_include_pad={d.pick(True, False)})",
        f"F.adaptive_max_pool{n}d({x}, {d.pick(1, 2)})", f"F.adaptive_avg_pool{n}d({x}, {d.pick(1, 2, 3)})", f"F.lp_pool{n}d({x}.abs(), 2, {k})",
        f"F.interpolate({x}, scale_factor={d.pick('2.0', '1.5', '0.5')}, mode='{'linear' if n == 1 else 'bilinear'}', align_corners={d.pick(True, False)})",
        f"F.interpolate({x}, size={d.pick(2, 5)}, mode='{d.pick('nearest', 'nearest-exact')}')",
        f"F.interpolate({x}, size=({x}.shape[2] * 2,{f' {x}.shape[3] + 1,' if n == 2 else ''}))",
        f"F.pad({x}, ({', '.join(str(d.pick(0, 1, 2)) for _ in range(2 * n))}), mode='{d.pick('reflect', 'replicate', 'circular', 'constant')}')",
        f"F.pad({x}, ({', '.join(str(d.pick(0, 1, -1)) for _ in range(2 * n))}))", f"F.group_norm({x}, 1)", f"F.instance_norm({x})",
        f"F.batch_norm({x}, torch.zeros({channels}), torch.ones({channels}) * 2)", f"F.local_response_norm({x}, 2)", f"F.avg_pool{n}d({x}, 2)",
    )  # fmt: skip
    if d.open and "ceil_mode=True" in how and starts_outside(d, x, k, s, min(p, k // 2)):
        raise Unfit
    return f"{d.new_name('v')} = {how}"


def multiplied(d: Draw) -> str:
    x, y, z = d.tensor(bounded), d.tensor(bounded), d.tensor(bounded)
    if len({d.at(t).dtype for t in (x, y, z)}) > 1:
        raise Unfit
    how = d.pick(
        f"torch.addmm({z}, {x}, {y}, beta={d.pick('2', '0', '0.5')}, alpha={d.pick('1', '3')})", f"torch.baddbmm({z}, {x}, {y}, beta=0.5, alpha=2)",
        f"torch.bmm({x}, {x}.mT)", f"torch.addmv({z}, {x}, {y})", f"torch.addbmm({z}, {x}, {y}, alpha=2)", f"torch.addr({z}, {x}, {y}, alpha=0.5)",
        f"torch.einsum('bij,bjk->bik', {x}, {y})", f"torch.einsum('ij->ji', {x})", f"torch.einsum('ii->i', {x})", f"torch.einsum('...ij->...', {x})",
        f"torch.einsum('i,j->ij', {x}, {y})", f"torch.einsum('bi,bi->b', {x}, {y})", f"torch.tensordot({x}, {y}, ([0], [0]))", f"torch.inner({x}, {y})",
        f"torch.chain_matmul({x}, {x}.t())", f"torch.mv({x}, {y})", f"torch.matmul({x}.unsqueeze(0), {y})", f"F.bilinear({x}, {y}, torch.ones(2, {x}.shape[-1], {y}.shape[-1]))",
        f"torch.cross({x}, {y}, dim={d.dim(x)})", f"torch.trapezoid({x}, dim={d.dim(x)})", f"torch.linalg.vector_norm({x}, {d.pick(*ORDERS)}, {d.dim(x)})",
        f"torch.linalg.matrix_norm({x})", f"torch.cov({x})", f"torch.vander({x}, 3)", f"torch.linalg.det({x})", f"F.pairwise_distance({x}, {y})",
    )  # fmt: skip
    return f"{d.new_name('v')} = {how}"


def normed(d: Draw) -> str:
    x = d.tensor(bounded)
    i = d.dim(x)
    how = d.pick(
        f"F.layer_norm({x}, {x}.shape[{d.pick(-1, -2)}:])", f"F.rms_norm({x}, {x}.shape[-1:])", f"F.softmax({x}, {i}, dtype=torch.float64)", f"F.softmin({x}, {i})",
        f"F.log_softmax({x}, {i})", f"F.normalize({x}, p={d.pick('1.0', '2.0')}, dim={i})", f"F.prelu({x}, torch.tensor([0.25]))", f"F.rrelu({x})",
        f"F.hardshrink({x})", f"F.softshrink({x}, 0.25)", f"F.tanhshrink({x})", f"F.logsigmoid({x})", f"F.selu({x})", f"F.relu6({x})", f"F.softsign({x})",
        f"F.mse_loss({x}, {d.tensor(finite)})", f"F.smooth_l1_loss({x}, {d.tensor(finite)}, reduction='none')", f"F.l1_loss({x}, {x} * 2, reduction='sum')",
        f"F.huber_loss({x}, {x} + 1)", f"F.binary_cross_entropy_with_logits({x}, {x}.sigmoid())", f"F.dropout({x}, 0.5, False)", f"F.gumbel_softmax({x}) * 0",
        f"torch.logsumexp({x}, ({i},), keepdim=True)", f"torch.cumulative_trapezoid({x}, dim={i})", f"F.gelu({x}, approximate='tanh')", f"torch.nanmean({x}, {i})",
        f"F.threshold({x}, 0.1, -1.0)", f"torch.special.entr({x}.abs())", f"torch.sinc({x})", f"torch.logit({x}.sigmoid(), 0.1)", f"torch.erfc({x})", f"torch.lgamma({x}.abs() + 1)",
    )  # fmt: skip
    return f"{d.new_name('v')} = {how}"


def arranged(d: Draw) -> str:
    x = d.tensor(has_dims)
    y = d.tensor(has_dims)
    i = d.dim(x)
    how = d.pick(
        f"torch.tril({x}, {d.pick(-1, 1)})", f"torch.triu({x}, {d.pick(-1, 2)})", f"torch.rot90({x}, {d.pick(1, 2, 3, -1)}, [0, {d.pick(1, -1)}])", f"torch.diag({x})",
        f"torch.diag_embed({x}, {d.pick(0, 1)})", f"torch.diagflat({x})", f"torch.roll({x}, (1, 2), (0, -1))", f"torch.roll({x}, {d.pick(2, -1)})", f"torch.fliplr({x})",
        f"torch.repeat_interleave({x}, torch.tensor({d.pick('[1]', '[2]')}), {i})", f"{x}.tile(({d.pick(1, 2)}, 2))", f"torch.cat([{x}, {x}[:0]], 0)", f"torch.stack([{x}, {x} * 2], {i})[..., 0]",
        f"torch.cat([{x}, torch.zeros(0)], 0)", f"torch.combinations({x})", f"torch.tril_indices({x}.shape[0], 3)", f"torch.bucketize({x}, torch.tensor([-1.0, 0.0, 1.0]))",
        f"torch.isin({x}, {y})", f"torch.isclose({x}, {y})", f"torch.allclose({x}, {x})", f"torch.equal({x}, {y})", f"torch.nn.utils.rnn.pad_sequence([{x}, {y}])", f"torch.broadcast_tensors({x}, {y})[1]",
        f"torch.atleast_3d({x})", f"torch.dstack([{x}, {y}])", f"F.channel_shuffle({x}, 2)", f"torch.movedim({x}, (0, 1), (1, 0))", f"torch.swapdims({x}, 0, {i})", f"torch.squeeze({x}, (0, {i}))",
        f"torch.unravel_index({x}, (3, 4))[0]", f"torch.logspace(0, 1, {d.size()})", f"torch.linspace({d.pick('0', '-1.5')}, 2, {x}.shape[{i}])", f"torch.arange(0, 1, 0.25).to({x}.dtype)",
        f"torch.full_like({x}, {d.pick('2', '0')}, dtype=torch.{d.pick(*DTYPES)})", f"{x}.new_tensor([1, 2])", f"torch.empty_like({x}).fill_(1)", f"{x}.to(torch.{d.pick('float32', 'float64')}).long()",
    )  # fmt: skip
    if "squeeze" in how and d.open and not (has_size_one(d, x, 0) and has_size_one(d, x, i)):
        raise Unfit
    return f"{d.new_name('v')} = {how}"


def several(d: Draw) -> str:
    """Numbers of all kinds that a program may return."""
    x = d.tensor(has_dims)
    i = d.dim(x)
    return f"{d.new_name('s')} = " + d.pick(
        f"{x}.shape[{i}] / 2", f"{x}.shape[{i}] > 2", f"float({x}.shape[{i}])", f"{x}.is_floating_point()", f"{x}.shape[{i}] ** 0.5",
        f"-{x}.shape[{i}]", f"abs({x}.shape[{i}] - 4)", f"{x}.shape[{i}] % 3", f"({x}.shape[{i}] - 4) // 3", f"({x}.shape[{i}] - 5) % 3", f"bool({x}.shape[{i}] == 3)",
        f"int({x}.shape[{i}] * 0.5)", f"{x}.stride({i})", f"{x}.element_size()", f"{x}.storage_offset()", f"max({x}.shape[{i}], 3) - min({x}.shape[0], 2)", f"2 ** {x}.shape[{i}]",
    )  # fmt: skip


def part_of_all(d: Draw) -> str:
    """A part of a tensor as a value of its own."""
    x = d.tensor(has_dims)
    return f"{d.new_name('v')} = {part(d, x)}.clone()"


MORE = {
    written_chain: 5, overlapping: 3, masked_both: 1, augmented: 3, loop: 2, branch: 2, index_mix: 4, put: 3, strided: 3, whole: 5, clamped: 4,
    order: 4, convolved: 4, multiplied: 4, normed: 4, arranged: 5, several: 3, part_of_all: 1,
}  # fmt: skip

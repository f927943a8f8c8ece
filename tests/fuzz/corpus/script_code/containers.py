class Containers(Module):
    __parameters__ = []
    __buffers__ = []
    training: bool
    _is_full_backward_hook: Optional[bool]
    mode: str
    scales: Dict[str, float]

    def forward(
        self: __torch__.test_torchscript_reader.Containers, x: Tensor, bias: Optional[Tensor] = None
    ) -> __torch__.test_torchscript_reader.Pair:
        table = annotate(Dict[str, Tensor], {})
        _0 = torch.chunk(x, 2, -1)
        _1 = [9223372036854775807, torch.len(_0)]
        for i in range(ops.prim.min(_1)):
            part = _0[i]
            scales = self.scales
            _2 = torch.mul(part, scales["large"])
            torch._set_item(table, str(i), _2)
        if torch.__isnot__(bias, None):
            bias0 = unchecked_cast(Tensor, bias)
            x0 = torch.add(x, bias0)
        else:
            x0 = x
        mode = self.mode
        if torch.eq(mode, "sum"):
            y = torch.sum(x0, [0])
        else:
            y = torch.mean(x0, [0])
        if torch.ne(torch.dim(x0), 2):
            ops.prim.RaiseException("two dimensions", "builtins.ValueError")
        else:
            pass
        _3 = __torch__.test_torchscript_reader.Pair(y, torch.list(torch.values(table)))
        return _3


class Pair(NamedTuple):
    first: Tensor
    rest: List[Tensor]

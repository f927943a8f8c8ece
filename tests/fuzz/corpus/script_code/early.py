class Early(Module):
    __parameters__ = []
    __buffers__ = []
    training: bool
    _is_full_backward_hook: Optional[bool]

    def forward(self: __torch__.test_torchscript_reader.Early, x: Tensor) -> Tensor:
        _0 = uninitialized(Tensor)
        _1 = False
        _2 = _0
        x0 = x
        _3 = 0
        _4 = True
        while _4:
            x1 = torch.add(torch.mul(x0, 0.5), _3)
            if bool(torch.gt(torch.max(x1), 2)):
                _5, _6, _7 = False, True, torch.mul(x1, 10)
            else:
                _5, _6, _7 = True, False, _0
            _8 = torch.add(_3, 1)
            _9 = torch.__and__(torch.lt(_8, 5), _5)
            _4, _1, _2, x0, _3 = _9, _6, _7, x1, _8
        if _1:
            _10 = _2
        else:
            _10 = torch.neg(x0)
        return _10

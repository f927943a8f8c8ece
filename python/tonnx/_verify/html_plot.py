"""The plot of the errors of all layers in order of execution, for the page of verify."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from tonnx._verify.report import LayerComparison, OutputComparison

_HEIGHT = 120.0  # pixels, as in the style of the page
_EDGE = 6.0  # so that points at the edge are not cut
_LOWEST, _HIGHEST = -10, 1  # powers of ten; smaller values and 0 are drawn at the bottom


def badness(layer: OutputComparison) -> float:
    """The largest error relative to the largest element."""
    if layer.atol > 0 and layer.rtol > 0:
        scale = layer.atol / layer.rtol
        return layer.max_abs / scale if scale > 0 else layer.max_rel
    return layer.max_rel


def _height(share: float) -> float:
    """The y coordinate of a relative error, in pixels."""
    power = _HIGHEST if not math.isfinite(share) else math.log10(max(share, 10.0**_LOWEST))
    place = (min(max(power, _LOWEST), _HIGHEST) - _LOWEST) / (_HIGHEST - _LOWEST)
    return _EDGE + (1 - place) * (_HEIGHT - 2 * _EDGE)


def plot(layers: Sequence[LayerComparison]) -> str:
    """The plot as SVG. Widths are in percent, so that it is as wide as the page; each point links to its layer."""
    if not layers:
        return ""
    heights = {power: f"{_height(10.0**power):.1f}" for power in range(_LOWEST, _HIGHEST + 1, 3)}
    labels = "".join(f'<span style="top:{y}px">1e{power}</span>' for power, y in heights.items())
    parts = [f'<line class="grid" x1="0" x2="100%" y1="{y}" y2="{y}"/>' for y in heights.values()]
    step = 100 / len(layers)
    for i, layer in enumerate(layers):
        if layer.rtol > 0:
            y = f"{_height(layer.rtol):.1f}"
            parts.append(f'<line class="tolerance" x1="{i * step:.3f}%" x2="{(i + 1) * step:.3f}%" y1="{y}" y2="{y}"/>')
    for i, layer in enumerate(layers):
        title = escape(f"{layer.layer or layer.name}: {badness(layer):.3g}")
        kind = "" if layer.ok else ' class="wrong"'
        place = f'cx="{(i + 0.5) * step:.3f}%" cy="{_height(badness(layer)):.1f}" r="4"'
        parts.append(f'<a href="#layer-{layer.index}"><circle{kind} {place}><title>{title}</title></circle></a>')
    picture = f'<svg role="img" aria-label="errors of the layers in order of execution">{"".join(parts)}</svg>'
    return f'<div class="plot"><div class="scale">{labels}</div>{picture}</div>'

"""The report of verify as one page that needs no other file and no network."""

from __future__ import annotations

import math
from html import escape

from tonnx._verify.report import LayerComparison, OutputComparison, VerifyReport

_STYLE = """
:root { --ok: #2a9d5c; --bad: #d1372c; --line: #ddd; --text: #222; --faint: #777; --back: #fff }
@media (prefers-color-scheme: dark) { :root { --line: #444; --text: #ddd; --faint: #999; --back: #181818 } }
body { font: 14px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); margin: 2em auto;
  max-width: 84em; padding: 0 1em }
h1 { font-size: 1.4em } h2 { font-size: 1.1em; margin-top: 2em }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .2em .6em; border-bottom: 1px solid var(--line); vertical-align: top }
th { position: sticky; top: 0; background: var(--back) }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
td.name { overflow-wrap: anywhere }
.ok { color: var(--ok) } .bad { color: var(--bad); font-weight: 600 } .faint { color: var(--faint) }
.verdict { font-size: 1.2em } .first { border-left: 4px solid var(--bad); padding: .3em 1em; margin: 1em 0 }
.bar { width: 14em; height: .8em; margin-top: .35em; background: var(--line); position: relative }
.bar i { display: block; height: 100% } .bar b { position: absolute; top: -2px; bottom: -2px; width: 2px;
  background: var(--text) }
tr.first-row td { border-top: 2px solid var(--bad); border-bottom: 2px solid var(--bad) }
button { font: inherit; padding: .1em .8em; margin-right: .4em } button[aria-pressed=true] { font-weight: 600 }
"""

_SCRIPT = """
const body = document.querySelector('#layers tbody');
const rows = body ? [...body.rows] : [];
function show(order) {
  const key = order === 'worst' ? row => -row.dataset.badness : row => +row.dataset.index;
  rows.sort((x, y) => key(x) - key(y) || x.dataset.index - y.dataset.index);
  body.append(...rows);
  for (const button of document.querySelectorAll('button[data-order]'))
    button.setAttribute('aria-pressed', button.dataset.order === order);
}
for (const button of document.querySelectorAll('button[data-order]'))
  button.addEventListener('click', () => show(button.dataset.order));
const only = document.querySelector('#only');
if (only) only.addEventListener('change', () => {
  for (const row of rows) row.hidden = only.checked && row.dataset.ok === '1';
});
"""

_DECADES = 10  # a bar goes from 1e-9 to 10 times what the tensor holds


def _number(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else "∞" if value > 0 else "?"


def _share(relative: float) -> float:
    """How long a bar is, of 1."""
    if not math.isfinite(relative):
        return 1.0
    return min(max((math.log10(max(relative, 1e-30)) + _DECADES - 1) / _DECADES, 0.0), 1.0)


def badness(layer: OutputComparison) -> float:
    """The largest error as a share of the largest element, which tensors of all scales have in common."""
    if layer.atol > 0 and layer.rtol > 0:
        scale = layer.atol / layer.rtol
        return layer.max_abs / scale if scale > 0 else layer.max_rel
    return layer.max_rel


def _bar(layer: OutputComparison) -> str:
    colour = "ok" if layer.ok else "bad"
    mark = f'<b style="left:{100 * _share(layer.rtol):.1f}%"></b>' if layer.rtol > 0 else ""
    style = f"width:{100 * _share(badness(layer)):.1f}%;background:var(--{colour})"
    return f'<div class="bar"><i style="{style}"></i>{mark}</div>'


def _verdict(ok: bool, same: str = "same", differs: str = "differs") -> str:
    return f'<span class="{"ok" if ok else "bad"}">{same if ok else differs}</span>'


def _numbers(value: OutputComparison) -> str:
    if value.why:
        return f'<td colspan="3">{escape(value.why)}</td>'
    shown = (_number(value.max_abs), _number(value.max_rel), f"{value.cosine:.8f}")
    return "".join(f'<td class="number">{text}</td>' for text in shown)


def _output_row(output: OutputComparison) -> str:
    share = "" if output.ok or output.why else f" in {output.wrong} of {output.elements}"
    return (
        f'<tr><td class="name">{escape(output.name)}</td><td>{escape(output.dtype)}{list(output.shape)}</td>'
        f"{_numbers(output)}<td>{_bar(output)}</td><td>{_verdict(output.ok)}{share}"
        f'<div class="faint">rtol {_number(output.rtol)}, atol {_number(output.atol)}</div></td></tr>'
    )


def _layer_row(layer: LayerComparison, is_first: bool) -> str:
    worst = badness(layer)
    notes = [f"value {layer.name}"] if layer.layer and layer.layer != layer.name else []
    notes += [f"in {layer.module}"] if layer.module else []
    notes += [f"with {', '.join(layer.covers)} before it"] if layer.covers else []
    notes += [f"weights {', '.join(layer.weights)}"] if layer.weights else []
    other = layer.counterpart_layer or layer.counterpart
    found = f"{layer.counterpart_op}, by {layer.how}"
    return (
        f'<tr data-index="{layer.index}" data-badness="{worst if math.isfinite(worst) else 1e30:.6g}" '
        f'data-ok="{int(layer.ok)}"{" class=first-row" if is_first else ""}>'
        f'<td class="number">{layer.index}</td>'
        f'<td class="name">{escape(layer.layer or layer.name)} <span class="faint">{escape(layer.op)}</span>'
        f'<div class="faint">{escape("; ".join(notes))}</div></td>'
        f'<td class="name">{escape(other)} <span class="faint">{escape(found)}</span></td>'
        f"<td>{escape(layer.dtype)}{list(layer.shape)}</td>{_numbers(layer)}<td>{_bar(layer)}</td>"
        f"<td>{_verdict(layer.ok)}</td></tr>"
    )


def _layers(report: VerifyReport) -> str:
    if report.steps is None:
        return ""
    first = report.first_difference
    rows = "\n".join(_layer_row(layer, layer is first) for layer in report.layers)
    return f"""<h2>Layers</h2>
<p><button data-order="run" aria-pressed="true">In order of execution</button>
<button data-order="worst" aria-pressed="false">Worst first</button>
<label><input type="checkbox" id="only"> only those that differ</label></p>
<p class="faint">{len(report.layers)} values have a counterpart, of {report.steps[0]} in the first model and
{report.steps[1]} in the second. A bar is the largest error as a share of the largest element, from 1e-9 to 10 in
powers of ten; the mark on it is the tolerance.</p>
<table id="layers"><thead><tr><th></th><th>{escape(report.a)}</th><th>{escape(report.b)}</th><th>type</th>
<th>max abs</th><th>max rel</th><th>cosine</th><th>error</th><th></th></tr></thead>
<tbody>
{rows}
</tbody></table>"""


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def page(report: VerifyReport) -> str:
    """The whole page."""
    wrong = sum(not layer.ok for layer in report.layers)
    summary = _verdict(report.is_same_outside, "The outputs are the same.", "The outputs differ.")
    if report.is_hidden_difference:
        summary += " " + _verdict(False, differs="The models differ inside, where the outputs do not show it.")
    if report.steps is not None:
        summary += f" {len(report.layers)} layers were compared, {wrong} differ." if report.layers else ""
    first = ""
    if report.first_difference is not None:
        first = f'<div class="first">First layer that differs: {escape(report.first_difference.title())}</div>'
    elif report.inside and report.steps is None:
        summary += f" {report.inside} values inside were compared, and are the same."
    coverage = f"<p>{escape(_sentence(str(report.coverage)))}</p>" if report.coverage is not None else ""
    inputs = ", ".join(f"{name} {kind}" for name, kind in report.inputs.items())
    data = escape(inputs) + (
        f", random ({'; '.join(report.draws)}) with seed {report.seed}" if report.seed is not None else ""
    )
    missing = "".join(f'<p class="bad">Output {escape(text)}</p>' for text in report.missing)
    rows = "\n".join(map(_output_row, report.outputs))
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(report.a)} against {escape(report.b)}</title><style>{_STYLE}</style></head>
<body><h1>{escape(report.a)} against {escape(report.b)}</h1>
<p class="verdict">{summary}</p>
{first}{missing}{coverage}<p class="faint">Inputs: {data}. Took {report.seconds:.1f} s.</p>
<h2>Outputs</h2>
<table><thead><tr><th>output</th><th>type</th><th>max abs</th><th>max rel</th><th>cosine</th><th>error</th><th></th>
</tr></thead><tbody>
{rows}
</tbody></table>
{_layers(report)}
<script>{_SCRIPT}</script></body></html>
"""

"""The report of verify as a self-contained HTML page."""

from __future__ import annotations

import math
from html import escape
from pathlib import Path

from tonnx._verify.html_plot import badness, plot
from tonnx._verify.report import LayerComparison, OutputComparison, VerifyReport

_STYLE = """
:root { --ok: #2a9d5c; --bad: #d1372c; --line: #ddd; --text: #222; --faint: #777; --back: #fff }
@media (prefers-color-scheme: dark) { :root { --line: #444; --text: #ddd; --faint: #999; --back: #181818 } }
body { font: 14px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); margin: 2em auto;
  max-width: 84em; padding: 0 1em }
h1 { font-size: 1.4em; overflow-wrap: anywhere } h2 { font-size: 1.1em; margin-top: 2em }
.ok { color: var(--ok) } .bad { color: var(--bad); font-weight: 600 } .faint { color: var(--faint) }
.verdict { font-size: 1.2em }
.first { border-left: 4px solid var(--bad); padding: .3em 1em; margin: 1em 0; overflow-wrap: anywhere }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 0 1em } .pair > * { min-width: 0; overflow-wrap: anywhere }
.pair.head { font-weight: 600; border-bottom: 2px solid var(--line) }
.value { border-bottom: 1px solid var(--line); padding: .3em 0; scroll-margin-top: 11em; overflow-wrap: anywhere }
.value:target { background: color-mix(in srgb, var(--text) 8%, transparent) }
.value.first-row { border: 2px solid var(--bad); padding: .3em .5em }
.numbers { display: flex; flex-wrap: wrap; gap: 0 1.2em; align-items: center; font-variant-numeric: tabular-nums }
.bar { width: 10em; height: .8em; background: var(--line); position: relative }
.bar i { display: block; height: 100% }
.bar b { position: absolute; top: -2px; bottom: -2px; width: 2px; background: var(--text) }
.plot { position: sticky; top: 0; background: var(--back); padding: .5em 0; z-index: 1; display: flex; gap: .5em }
.plot .scale { position: relative; width: 3em; font-size: 11px; color: var(--faint) }
.plot .scale span { position: absolute; right: 0; transform: translateY(-50%) }
.plot svg { flex: 1; height: 120px; overflow: visible; min-width: 0 } .plot line.grid { stroke: var(--line) }
.plot line.tolerance { stroke: var(--text); stroke-width: 1.5 }
.plot circle { fill: var(--ok) } .plot circle.wrong { fill: var(--bad) } .plot a:focus circle { stroke: var(--text) }
button { font: inherit; padding: .1em .8em; margin-right: .4em } button[aria-pressed=true] { font-weight: 600 }
"""

_SCRIPT = """
const body = document.querySelector('#layers');
const rows = body ? [...body.querySelectorAll('.value')] : [];
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
const first = document.querySelector('.first-row');
if (first && !location.hash) first.scrollIntoView();
"""

_DECADES = 10  # a bar ranges from 1e-9 to 10 times the largest element


def _number(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else "∞" if value > 0 else "?"


def _share(relative: float) -> float:
    """The length of a bar, as a fraction."""
    if not math.isfinite(relative):
        return 1.0
    return min(max((math.log10(max(relative, 1e-30)) + _DECADES - 1) / _DECADES, 0.0), 1.0)


def _bar(layer: OutputComparison) -> str:
    colour = "ok" if layer.ok else "bad"
    mark = f'<b style="left:{100 * _share(layer.rtol):.1f}%"></b>' if layer.rtol > 0 else ""
    style = f"width:{100 * _share(badness(layer)):.1f}%;background:var(--{colour})"
    return f'<div class="bar"><i style="{style}"></i>{mark}</div>'


def _verdict(ok: bool, same: str = "same", differs: str = "differs") -> str:
    return f'<span class="{"ok" if ok else "bad"}">{same if ok else differs}</span>'


def _numbers(value: OutputComparison) -> str:
    texts = [f"{value.dtype}{list(value.shape)}"]
    if value.why:
        texts.append(value.why)
    else:
        texts += [f"max abs {_number(value.max_abs)}", f"mse {_number(value.mse)}"]
        texts += [f"max rel {_number(value.max_rel)}", f"cosine {value.cosine:.8f}"]
    shown = "".join(f"<span>{escape(text)}</span>" for text in texts)
    share = "" if value.ok or value.why else f" in {value.wrong} of {value.elements}"
    tolerance = f'<span class="faint">rtol {_number(value.rtol)}, atol {_number(value.atol)}</span>'
    return f'<div class="numbers">{shown}{_bar(value)}<span>{_verdict(value.ok)}{share}</span>{tolerance}</div>'


def _name(text: str) -> str:
    """A name that may be broken after dots and slashes."""
    return escape(text).replace("/", "/<wbr>").replace(".", ".<wbr>")


def _output(output: OutputComparison) -> str:
    return f'<div class="value"><div>{_name(output.name)}</div>{_numbers(output)}</div>'


def _layer(layer: LayerComparison, is_first: bool) -> str:
    worst = badness(layer)
    notes = [f"value {layer.name}"] if layer.layer and layer.layer != layer.name else []
    notes += [f"in {layer.module}"] if layer.module not in ("", layer.layer) else []
    notes += [f"with {', '.join(layer.covers)} before it"] if layer.covers else []
    notes += [f"weights {', '.join(layer.weights)}"] if layer.weights else []
    other = layer.counterpart_layer or layer.counterpart
    found = f"{layer.counterpart_op}, by {layer.how}"
    return (
        f'<div class="value{" first-row" if is_first else ""}" id="layer-{layer.index}" data-index="{layer.index}" '
        f'data-badness="{worst if math.isfinite(worst) else 1e30:.6g}" data-ok="{int(layer.ok)}">'
        f'<div class="pair"><div><span class="faint">{layer.index}</span> {_name(layer.layer or layer.name)} '
        f'<span class="faint">{escape(layer.op)}</span><div class="faint">{_name("; ".join(notes))}</div></div>'
        f'<div>{_name(other)} <span class="faint">{escape(found)}</span></div></div>{_numbers(layer)}</div>'
    )


def _layers(report: VerifyReport, a: str, b: str) -> str:
    if report.steps is None:
        return ""
    first = report.first_difference
    rows = "\n".join(_layer(layer, layer is first) for layer in report.layers)
    return f"""<h2>Layers</h2>
<p><button data-order="run" aria-pressed="true">In order of execution</button>
<button data-order="worst" aria-pressed="false">Worst first</button>
<label><input type="checkbox" id="only"> only those that differ</label></p>
<p class="faint">{len(report.layers)} values have a counterpart, of {report.steps[0]} in the first model and
{report.steps[1]} in the second. Errors are the largest as a share of the largest element, in powers of ten: points
over the order of execution, and bars from 1e-9 to 10. The line, and the mark on a bar, is the tolerance. A click on a
point goes to its layer.</p>
{plot(report.layers)}
<div class="pair head"><div>{_name(a)}</div><div>{_name(b)}</div></div>
<div id="layers">
{rows}
</div>"""


def _short(a: str, b: str) -> tuple[str, str]:
    """The names of the files, with the folders where they differ if the names are equal."""
    left, right = Path(a).parts, Path(b).parts
    if left[-1] != right[-1] or left == right:
        return left[-1], right[-1]
    same = next(i for i, (x, y) in enumerate(zip(left, right)) if x != y)
    return str(Path(*left[same:])), str(Path(*right[same:]))


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
        first = f'<div class="first">First layer that differs: {_name(report.first_difference.title())}</div>'
    elif report.inside and report.steps is None:
        summary += f" {report.inside} values inside were compared, and are the same."
    coverage = f"<p>{escape(_sentence(str(report.coverage)))}</p>" if report.coverage is not None else ""
    inputs = ", ".join(f"{name} {kind}" for name, kind in report.inputs.items())
    data = escape(inputs) + (
        f", random ({'; '.join(report.draws)}) with seed {report.seed}" if report.seed is not None else ""
    )
    missing = "".join(f'<p class="bad">Output {escape(text)}</p>' for text in report.missing)
    rows = "\n".join(map(_output, report.outputs))
    a, b = _short(report.a, report.b)
    head = " against ".join(
        f'<span title="{escape(path)}">{_name(name)}</span>' for path, name in ((report.a, a), (report.b, b))
    )
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(a)} against {escape(b)}</title><style>{_STYLE}</style></head>
<body><h1>{head}</h1>
<p class="verdict">{summary}</p>
{first}{missing}{coverage}<p class="faint">Inputs: {data}. Took {report.seconds:.1f} s.</p>
<h2>Outputs</h2>
{rows}
{_layers(report, a, b)}
<script>{_SCRIPT}</script></body></html>
"""

"""The page of verify in a browser: where it opens, what it is wide, where its points lead; and modules in memory."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import TIMEOUT
from torch import nn
from verify_models import residual_network, variant

import tonnx
from tonnx import _progress
from tonnx._verify.cli import main
from tonnx._verify.html import page
from tonnx._verify.report import LayerComparison, VerifyReport

CHROMIUM = shutil.which("chromium")


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("one").mkdir()
    source, changed = residual_network("one/network.onnx"), residual_network("one/changed.onnx", changed=25)
    assert main([changed, variant("simplified", source), "--layers", "--html", "r.html", "-q"]) == 3
    return tmp_path / "r.html"


MEASURE = """<script>addEventListener('load', () => {
const box = e => e.getBoundingClientRect(), all = s => [...document.querySelectorAll(s)];
const first = document.querySelector('.first-row'), plot = document.querySelector('.plot');
const opened = {first: box(first).top, plot: box(plot).bottom, height: innerHeight};
const pairs = all('.value .pair').map(e => [...e.children].map(c => box(c).width));
const points = all('.plot a').map(a => document.querySelector(a.getAttribute('href')) !== null);
document.querySelectorAll('.plot a')[3].dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}));
document.body.innerHTML = '';
document.title = JSON.stringify({opened, pairs, points, hash: location.hash, page: document.documentElement.scrollWidth,
  width: innerWidth});
});</script></body>"""


@pytest.mark.skipif(CHROMIUM is None, reason="looking at the page needs Debian's chromium")
@pytest.mark.parametrize("width", [1200, 600])
def test_in_a_browser(written: Path, width: int) -> None:
    assert CHROMIUM is not None
    text = written.read_text()
    wide = text.replace("</body>", MEASURE.replace("document.body.innerHTML = '';", ""))
    (written.parent / "measured.html").write_text(wide)
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            f"--window-size={width},900",
            f"--user-data-dir={written.parent}/profile",
            "--dump-dom",
            f"file://{written.parent}/measured.html",
        ],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    found = json.loads(re.search(r"<title>(.*?)</title>", done.stdout)[1].replace("&quot;", '"'))  # type: ignore[index]
    assert found["page"] <= found["width"]  # nothing sticks out
    assert all(abs(a - b) <= 1 and a > 0.4 * found["width"] for a, b in found["pairs"]) and len(found["pairs"]) > 90
    opened = found["opened"]
    assert opened["plot"] - 1 <= opened["first"] < opened["height"]  # below the picture, and in sight
    assert all(found["points"]) and re.fullmatch(r"#layer-\d+", found["hash"])


def test_names_are_short_and_break_at_dots_and_slashes(written: Path) -> None:
    text = written.read_text()
    assert "<title>changed.onnx against simplified.onnx</title>" in text or "<title>changed.onnx against" in text
    assert "net/<wbr>layer25" in text
    same = page(VerifyReport("/a/b/x.onnx", "/a/c/x.onnx", {}, 0))
    assert "<title>b/x.onnx against c/x.onnx</title>" in same and 'title="/a/b/x.onnx"' in same
    assert "<title>x.onnx against x.onnx</title>" in page(VerifyReport("x.onnx", "x.onnx", {}, 0))


def test_the_picture_has_a_point_and_a_tolerance_for_each_layer() -> None:
    def layer(index: int, max_abs: float) -> LayerComparison:
        ok = max_abs < 1e-5
        return LayerComparison(f"v{index}", "", (1,), "float32", max_abs, 0, 1, 1e-5, 1e-5, 0, 1, ok, index=index)

    layers = [layer(0, 0.0), layer(4, 1e-7), layer(9, 1e-2), layer(12, float("inf"))]
    text = page(VerifyReport("a", "b", {}, 0, layers=layers, steps=(4, 4), first_difference=layers[2]))
    heights = [float(y) for y in re.findall(r'cy="([\d.]+)"', text)]
    tolerance = float(re.search(r'class="tolerance".*?y1="([\d.]+)"', text)[1])  # type: ignore[index]
    assert heights == sorted(heights, reverse=True) and heights[1] > tolerance > heights[2]
    assert text.count('class="wrong"') == 2 and text.count('class="tolerance"') == 4
    assert (heights[1] - heights[2]) / 5 == pytest.approx((tolerance - heights[2]) / 3, abs=0.1)  # decades are equal


def test_the_mean_squared_error_is_that_of_numpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    a, b = nn.Linear(4, 3), nn.Linear(4, 3)
    tonnx.export(a, torch.rand(2, 4), "a.onnx")
    tonnx.export(b, torch.rand(2, 4), "b.onnx")
    x = np.random.default_rng(0).random((2, 4), np.float32)
    report = tonnx.verify("a.onnx", "b.onnx", [x], outputs_only=True)
    with torch.no_grad():
        expected = torch.mean((a(torch.tensor(x)).double() - b(torch.tensor(x)).double()) ** 2).item()
    assert report.outputs[0].mse == pytest.approx(expected, rel=1e-4)
    assert f"mse {expected:.2g}" in str(report)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.drop = nn.Dropout(0.5)
        self.second = nn.Linear(6, 3)

    def forward(self, x: torch.Tensor, shift: torch.Tensor | None = None, scale: float = 1.0) -> torch.Tensor:
        y = self.second(self.drop(torch.tanh(self.first(x)))) * scale
        return y if shift is None else y + shift


def test_a_module_in_memory_is_compared(tmp_path: Path) -> None:
    model, path = Net(), tmp_path / "m.onnx"
    tonnx.export(model, torch.rand(2, 4), path, dynamic_axes={"x": {0: "batch"}})
    report = tonnx.verify(model, path, layers=True)
    assert report and report.a == "Net in memory" and report.coverage.is_complete and model.training
    assert tonnx.verify(path, model)
    with torch.no_grad():
        model.second.weight *= 1.1
    report = tonnx.verify(model, path, layers=True)
    assert not report and "second" in report.first_difference.title()


def test_arguments_that_may_be_left_out_are_inputs_where_the_file_has_them(tmp_path: Path) -> None:
    model, path = Net(), tmp_path / "m.onnx"
    tonnx.export(model, (torch.rand(2, 4), torch.rand(3)), path)
    assert tonnx.verify(model, path)


def test_what_is_no_model_is_said() -> None:
    with pytest.raises(TypeError, match="a model is the path of a file or an nn.Module, not int"):
        tonnx.verify(3, 4)  # type: ignore[arg-type]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_long_work_has_a_bar_on_a_terminal() -> None:
    stream = Terminal()
    with _progress.bar_on_terminal(stream=stream, wait=0):
        _progress.tell("layers compared", 1, 3)
    assert stream.getvalue() == f"\r\033[K[{'#' * 10}{' ' * 20}] 1/3 layers compared\r\033[K"


@pytest.mark.parametrize(
    ("stream", "is_quiet", "wait"), [(io.StringIO(), False, 0), (Terminal(), True, 0), (Terminal(), False, 9e9)]
)
def test_short_work_pipes_and_the_quiet_have_none(stream: io.StringIO, is_quiet: bool, wait: float) -> None:
    with _progress.bar_on_terminal(is_quiet, stream, wait):
        _progress.tell("layers compared", 1, 3)
    assert stream.getvalue() == ""


def test_verify_tells_how_far_it_is(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    monkeypatch.setattr("tonnx._verify.tell", lambda *what: told.append(what))
    tonnx.verify("one/network.onnx", "one/changed.onnx", layers=True)
    assert len({total for _, _, total in told}) >= 1 and all(done <= total for _, done, total in told)

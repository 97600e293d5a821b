"""Pictures of a simulation: what is drawn, and that each kind of file shows the same."""

from io import BytesIO
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from PIL import Image

from headrace.cli.main import main
from headrace.simulate import png
from headrace.simulate.chart import Line, Panel, draw, nice_ticks, thinned
from headrace.simulate.drawing import Area, Drawing, Stroke, Words
from headrace.simulate.png import SCALE, dashes, png_bytes
from headrace.simulate.svg import svg_text

WHITE = (255, 255, 255)


def a_trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "load.csv"
    path.write_text("seconds,rows\n0,1000\n600,9000\n900,1000\n")
    return path


def colors(picture: bytes) -> dict[tuple[int, ...], int]:
    image = Image.open(BytesIO(picture)).convert("RGB")
    return {color: count for count, color in image.getcolors(1 << 24) or []}


def test_a_png_shows_lines_areas_and_words():
    red = Stroke(points=[(10, 10), (90, 10)], color="#ff0000", width=4)
    grey = Area(points=[(10, 20), (90, 20), (90, 40), (10, 40)], color="#000000", opacity=0.2)
    words = Words(x=50, y=60, text="objective", size=12, anchor="middle", color="#0000ff")
    picture = png_bytes(Drawing(width=100, height=70, shapes=[red, grey, words]))
    image = Image.open(BytesIO(picture))
    assert image.format == "PNG" and image.size == (100 * SCALE, 70 * SCALE)
    seen = colors(picture)
    assert seen[255, 0, 0] == pytest.approx(80 * 4 * SCALE**2, rel=0.2)
    assert seen[204, 204, 204] == pytest.approx(80 * 20 * SCALE**2, rel=0.05)
    assert any(blue == 255 and red == green < 128 for red, green, blue in seen), "no word in blue"
    # The words are in the middle, and stand on their line.
    box = image.convert("RGB").crop((0, 45 * SCALE, 100 * SCALE, 70 * SCALE)).convert("L")
    left, _, right, bottom = box.point(lambda value: 255 if value < 200 else 0).getbbox() or (0, 0, 0, 0)
    assert (left + right) / 2 == pytest.approx(50 * SCALE, abs=3)
    assert 15 * SCALE <= bottom <= 19 * SCALE


def test_both_kinds_of_file_have_the_same_size_and_colours():
    line = Line(label="headrace", color="#0b5fa5", points=[(0, 1), (600, 5)], steps=True, filled=True)
    drawing = draw("A title", [Panel(title="Executors", lines=[line], level=(4, "objective"))], subtitle="x")
    root = ElementTree.fromstring(svg_text(drawing))
    image = Image.open(BytesIO(png_bytes(drawing)))
    assert image.size == (SCALE * int(root.attrib["width"]), SCALE * int(root.attrib["height"]))
    seen = colors(png_bytes(drawing))
    for color in ((0x0B, 0x5F, 0xA5), (0xB0, 0x00, 0x20), WHITE):
        assert seen[color] > 50


@pytest.mark.parametrize(
    ("points", "then"),
    [
        ([(0, 0), (10, 0)], [[(0, 0), (4, 0)], [(6, 0), (10, 0)]]),
        ([(0, 0), (3, 0), (3, 3)], [[(0, 0), (3, 0), (3, 1)]]),
        ([(0, 0), (2, 0)], [[(0, 0), (2, 0)]]),
    ],
    ids=["straight", "around a corner", "shorter than a dash"],
)
def test_dashes(points, then):
    assert dashes(points, 4, 2) == then


def test_a_step_is_written_short_in_svg():
    stroke = Stroke(points=[(0, 0), (5, 0), (5, 9), (7, 3)], color="#000000")
    assert 'd="M0.0 0.0H5.0V9.0L7.0 3.0"' in svg_text(Drawing(width=9, height=9, shapes=[stroke]))


def test_words_are_escaped_in_svg():
    words = Words(x=0, y=0, text="<a & b>", size=9)
    assert "&lt;a &amp; b&gt;" in svg_text(Drawing(width=9, height=9, shapes=[words]))


def test_headrace_simulate_writes_a_png(tmp_path):
    target = tmp_path / "out.PNG"
    shown = CliRunner().invoke(main, ["simulate", str(a_trace_file(tmp_path)), "--plot", str(target)])
    assert shown.exit_code == 0, shown.output
    assert f"wrote {target}" in shown.output
    assert Image.open(target).format == "PNG"


@pytest.mark.parametrize(
    ("plot", "problem"),
    [
        ("out.jpg", "pictures are .svg or .png: write out.svg or out.png"),
        ("out", "pictures are .svg or .png: write out.svg or out.png"),
        ("missing/out.svg", "there is no directory"),
    ],
)
def test_a_picture_that_cannot_be_is_refused_before_anything_is_computed(tmp_path, plot, problem):
    path = a_trace_file(tmp_path)
    refused = CliRunner().invoke(main, ["simulate", str(path), "--plot", str(tmp_path / plot)])
    assert refused.exit_code == 2
    assert problem in refused.output
    assert "executor hours" not in refused.output
    assert list(tmp_path.iterdir()) == [path]


def test_without_pillow_a_png_is_refused_with_the_way_out_and_svg_works(tmp_path, monkeypatch):
    monkeypatch.setattr(png.importlib.util, "find_spec", lambda name: None)
    path = a_trace_file(tmp_path)
    refused = CliRunner().invoke(main, ["simulate", str(path), "--plot", str(tmp_path / "out.png")])
    assert refused.exit_code == 2
    assert "pip install 'headrace[plot]'" in refused.output and "out.svg" in refused.output
    assert list(tmp_path.iterdir()) == [path]
    assert CliRunner().invoke(main, ["simulate", str(path)]).exit_code == 0
    assert path.with_suffix(".svg").exists()


def test_the_extra_that_the_message_names_brings_pillow():
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    assert 'plot = ["pillow' in text


def test_a_place_where_nothing_can_be_written_is_named(tmp_path):
    path = a_trace_file(tmp_path)
    path.with_suffix(".svg").mkdir()
    refused = CliRunner().invoke(main, ["simulate", str(path)])
    assert refused.exit_code == 2
    assert "load.svg: Is a directory: say another place with --plot" in refused.output


def test_a_chart_keeps_the_peaks_of_what_it_thins():
    points = [(float(at), 100.0 if at == 7777 else 1.0) for at in range(20_000)]
    kept = thinned(points)
    assert len(kept) <= 1700
    assert (7777.0, 100.0) in kept


@pytest.mark.parametrize(("highest", "then"), [(9.7, [0, 2.5, 5, 7.5]), (100, [0, 25, 50, 75, 100])])
def test_ticks_are_round_numbers(highest, then):
    assert nice_ticks(highest) == then

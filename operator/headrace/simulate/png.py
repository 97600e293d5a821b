"""A drawing as PNG, by Pillow, which brings a font of its own: the picture has its words also on a machine
without fonts, as most containers are. Pillow is optional: `has_pillow` tells before anything is computed.
"""

from __future__ import annotations

import importlib.util
import math
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING

from headrace.simulate.drawing import Area, Drawing, Points, Stroke, Words

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

# Pixels of a unit: sharp on screens of today. Lines are drawn larger by a factor, so their edges are smooth.
SCALE, SMOOTH = 2, 2


def has_pillow() -> bool:
    return importlib.util.find_spec("PIL") is not None


def png_bytes(drawing: Drawing) -> bytes:
    from PIL import Image, ImageDraw  # noqa: PLC0415 - optional

    large = SCALE * SMOOTH
    image = Image.new("RGB", (drawing.width * large, drawing.height * large), "#ffffff")
    pen = ImageDraw.Draw(image, "RGBA")
    for shape in drawing.shapes:
        if isinstance(shape, Stroke):
            _stroke(pen, shape, large)
        elif isinstance(shape, Area):
            alpha = f"{round(255 * shape.opacity):02x}"
            pen.polygon(_scaled(shape.points, large), fill=f"{shape.color}{alpha}")
    image = image.resize((drawing.width * SCALE, drawing.height * SCALE), Image.Resampling.BOX)
    pen = ImageDraw.Draw(image)
    for shape in drawing.shapes:
        if isinstance(shape, Words):
            _words(pen, shape)
    out = BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()


def _stroke(pen: ImageDraw, shape: Stroke, scale: int) -> None:
    width = max(1, round(shape.width * scale))
    parts = [shape.points] if shape.dash is None else dashes(shape.points, *shape.dash)
    for part in parts:
        pen.line(_scaled(part, scale), fill=shape.color, width=width, joint="curve")


def _words(pen: ImageDraw, shape: Words) -> None:
    from PIL import ImageFont  # noqa: PLC0415 - optional

    font = ImageFont.load_default(size=shape.size * SCALE)
    place, anchor = (shape.x * SCALE, shape.y * SCALE), {"start": "ls", "middle": "ms", "end": "rs"}
    # The font has one weight.
    for shift in (0, 1) if shape.bold else (0,):
        pen.text((place[0] + shift, place[1]), shape.text, shape.color, font, anchor=anchor[shape.anchor])


def _scaled(points: Points, scale: int) -> list[tuple[float, float]]:
    return [(x * scale, y * scale) for x, y in points]


def dashes(points: Points, drawn: float, left_out: float) -> list[list[tuple[float, float]]]:
    """The parts of a line that its dashes cover; corners stay corners."""
    parts, part = list[list[tuple[float, float]]](), [points[0]]
    pen_down, left = True, drawn
    for (x, y), (next_x, next_y) in pairwise(points):
        length, gone = math.hypot(next_x - x, next_y - y), 0.0
        while length - gone > left:
            gone += left
            corner = (x + (next_x - x) * gone / length, y + (next_y - y) * gone / length)
            if pen_down:
                parts.append([*part, corner])
            pen_down = not pen_down
            part, left = [corner], drawn if pen_down else left_out
        left -= length - gone
        if pen_down:
            part.append((next_x, next_y))
    return [*parts, part] if pen_down and len(part) > 1 else parts

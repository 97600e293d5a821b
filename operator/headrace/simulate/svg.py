"""A drawing as SVG: text that every browser shows."""

from __future__ import annotations

from html import escape

from headrace.simulate.drawing import Area, Drawing, Points, Shape, Stroke, Words

_FONT = 'font-family="Helvetica, Arial, sans-serif"'


def svg_text(drawing: Drawing) -> str:
    size = f'width="{drawing.width}" height="{drawing.height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {drawing.width} {drawing.height}">',
            f'<rect {size} fill="#ffffff"/>',
            *(_element(shape) for shape in drawing.shapes),
            "</svg>\n",
        ]
    )


def _element(shape: Shape) -> str:
    match shape:
        case Stroke():
            dash = "" if shape.dash is None else f' stroke-dasharray="{shape.dash[0]:g} {shape.dash[1]:g}"'
            stroke = f'stroke="{shape.color}" stroke-width="{shape.width:g}"'
            return f'<path d="{_path(shape.points)}" fill="none" {stroke}{dash}/>'
        case Area():
            return f'<path d="{_path(shape.points)}Z" fill="{shape.color}" fill-opacity="{shape.opacity:g}"/>'
        case Words():
            bold = ' font-weight="bold"' if shape.bold else ""
            return (
                f'<text x="{shape.x:.1f}" y="{shape.y:.1f}" {_FONT} font-size="{shape.size}" '
                f'text-anchor="{shape.anchor}" fill="{shape.color}"{bold}>{escape(shape.text)}</text>'
            )


def _path(points: Points) -> str:
    """Steps, of which there are many, are written short."""
    rounded = [(f"{x:.1f}", f"{y:.1f}") for x, y in points]
    (x, y), path = rounded[0], f"M{rounded[0][0]} {rounded[0][1]}"
    for next_x, next_y in rounded[1:]:
        if next_y == y:
            path += f"H{next_x}"
        elif next_x == x:
            path += f"V{next_y}"
        else:
            path += f"L{next_x} {next_y}"
        x, y = next_x, next_y
    return path

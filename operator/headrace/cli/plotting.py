"""Where the picture of a simulation goes, and in which format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from headrace.simulate.drawing import Drawing

_F = TypeVar("_F", bound=Callable[..., Any])


class PictureRefused(Exception):
    """The picture cannot be written; says where and why."""


def plot_option(*, default: str) -> Callable[[_F], _F]:
    return click.option(
        "--plot",
        type=click.Path(dir_okay=False, path_type=Path),
        callback=_that_can_be_written,
        help="Where the picture goes: a file that ends in .svg, or in .png "
        f"(needs pip install 'headrace[plot]'). Default: {default}.",
    )


def _that_can_be_written(_context: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    """Told before the simulation, which takes a while, not after it."""
    if path is None:
        return None
    kind = path.suffix.lower()
    if kind not in (".svg", ".png"):
        raise click.BadParameter(
            f"{path.name}: pictures are .svg or .png: write {path.with_suffix('.svg').name} "
            f"or {path.with_suffix('.png').name}"
        )
    if not path.parent.is_dir():
        raise click.BadParameter(f"{path}: there is no directory {path.parent}: make it first")
    if kind == ".png":
        from headrace.simulate.png import has_pillow  # noqa: PLC0415 - `headrace --help` stays fast

        if not has_pillow():
            raise click.BadParameter(
                f"{path.name}: PNG is drawn by the Python package pillow, which is not installed: "
                f"pip install 'headrace[plot]', or write {path.with_suffix('.svg').name}, which needs nothing"
            )
    return path


def write_picture(drawing: Drawing, path: Path) -> None:
    from headrace.simulate.png import png_bytes  # noqa: PLC0415
    from headrace.simulate.svg import svg_text  # noqa: PLC0415

    content = png_bytes(drawing) if path.suffix.lower() == ".png" else svg_text(drawing).encode()
    try:
        path.write_bytes(content)
    except OSError as error:
        raise PictureRefused(f"{path}: {error.strerror or error}: say another place with --plot") from None

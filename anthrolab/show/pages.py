"""The HTML templates in `assets/`; everything put into them is escaped unless it is marked as HTML."""

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def environment() -> "Environment":
    """The jinja2 environment: escapes by itself, and an unknown variable is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("anthrolab.show", "assets"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip


def asset(name: str) -> str:
    """The text of a file in `assets/`."""
    return (files("anthrolab.show") / "assets" / name).read_text(encoding="utf-8")

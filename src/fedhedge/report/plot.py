"""A figure together with what it says, and its forms: SVG for a page, SVG and PNG as files."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from fedhedge import files
from fedhedge.report import style

_DPI = 200


@dataclass(frozen=True)
class Plot:
    """name: of its files. alt: the main numbers in words, for those who cannot see it. caption: how to read it."""

    name: str
    alt: str
    caption: str
    figure: Figure

    def png(self) -> bytes:
        """The figure as a PNG image on white."""
        buffer = io.BytesIO()
        with style.settings():
            FigureCanvasAgg(self.figure).print_figure(
                buffer, format="png", dpi=_DPI, metadata={"Software": None, "Description": self.alt}
            )
        return buffer.getvalue()

    def svg(self) -> str:
        """The figure as an SVG document; the same figure gives the same text."""
        buffer = io.StringIO()
        with style.settings():
            FigureCanvasSVG(self.figure).print_figure(
                buffer, format="svg", metadata={"Title": self.alt, "Date": None, "Creator": None}
            )
        return buffer.getvalue()

    def write(self, folder: Path) -> list[Path]:
        """Write NAME.png and NAME.svg to the folder, each atomically; returns their paths."""
        written = []
        for suffix, content in (("png", self.png()), ("svg", self.svg().encode())):
            path = folder / f"{self.name}.{suffix}"
            files.write_bytes(path, content)
            written.append(path)
        return written

    def inline(self, name: str | None = None) -> str:
        """The SVG element for an HTML page: the page's fonts, and colours that the page can set.

        name: what its ids start with, so that figures do not share any; None takes the figure's own name.
        A colour becomes `var(--ink)`, `var(--series-0)` and so on, with the figure's own colour as the fallback.
        """
        text = self.svg()
        text = text[text.index("<svg") :]
        for part in ("metadata", "title", "style"):
            text = re.sub(rf"<{part}\b.*?</{part}>", "", text, flags=re.DOTALL)
        text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
        text = re.sub(r"<svg [^>]*?(viewBox=\"[^\"]*\")[^>]*>", r"<svg \1>", text, count=1)
        text = re.sub(r"font-family: [^;\"]*;? ?", "", text)
        text = text.replace("xlink:href", "href")
        text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name or self.name}-", text)
        for colour, variable in _variables().items():
            text = text.replace(colour, f"var({variable}, {colour})")
        return re.sub(r"\s*\n\s*", "\n", text).strip()


def _variables() -> dict[str, str]:
    named = {style.INK: "--ink", style.MUTED: "--muted", style.GRID: "--grid", style.PAPER: "--paper"}
    return named | {colour: f"--series-{i}" for i, colour in enumerate(style.SERIES)}

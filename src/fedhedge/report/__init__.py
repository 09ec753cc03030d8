"""Report: figures, and one HTML page about a set of runs."""

from fedhedge.report.figures import write_plots
from fedhedge.report.page import write_report

__all__ = ["write_plots", "write_report"]

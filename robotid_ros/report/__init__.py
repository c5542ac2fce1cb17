"""Reports that people read: figures, tables and a verdict in one self-contained page."""

from robotid_ros.report.content import Column, Fact, Figure, Report, Section, Table, Verdict
from robotid_ros.report.drawing import save_figure, save_figures
from robotid_ros.report.render import render_report, write_report

__all__ = [
    'Column',
    'Fact',
    'Figure',
    'Report',
    'Section',
    'Table',
    'Verdict',
    'render_report',
    'save_figure',
    'save_figures',
    'write_report',
]

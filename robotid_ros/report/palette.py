# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Colours that stay apart for every kind of colour vision, on white and in print.

M. Okabe, K. Ito, "Color Universal Design" (2008); text colours reach a contrast of 4.5 on white.
"""

from dataclasses import dataclass

from robotid_ros.report.chart import Role

__all__ = ['GRID', 'INK', 'STYLES', 'Style']

INK = '#39424e'
GRID = '#e3e6ea'


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How a role is drawn; marker and dash differ too, so that colour is never the only sign."""

    colour: str
    width: float = 1.1
    dash: str = '-'
    marker: str = 'o'
    hollow: bool = False
    order: int = 2


STYLES: dict[Role, Style] = {
    'measured': Style(colour='#848e9a', width=1.0, order=2),
    'predicted': Style(colour='#0072b2', width=1.2, order=4),
    'residual': Style(colour='#d55e00', width=0.9, order=3),
    'prior': Style(colour='#5b6573', width=1.0, dash='--', marker='D', hollow=True, order=3),
    'truth': Style(colour='#007d5d', width=1.2, dash='-.', marker='x', order=5),
    'limit': Style(colour='#8b5a83', width=0.9, dash=':', order=1),
    'accent': Style(colour='#b07a00', width=1.2, marker='s', order=4),
}

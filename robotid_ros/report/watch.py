# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The terminal view of a run: what each node says, how far it is, how well each joint fits.

The caller reads the topics; nothing here imports ROS.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.messages import FAULTS

StatusLevel: TypeAlias = Literal['ok', 'warn', 'error', 'silent']

_SIGNS: dict[StatusLevel, tuple[str, str]] = {
    'ok': ('●', '32'),
    'warn': ('▲', '33'),
    'error': ('■', '31'),
    'silent': ('○', '2'),
}
_BAR = 24
_STANDSTILL = 0.02
"""Joint speed below which the friction is not known [rad/s or m/s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """The last status of a node, with the values of its ``DiagnosticStatus``; silent where nothing came for long."""

    name: str
    level: StatusLevel
    message: str
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class JointFit:
    """Running root mean squares of measured and unexplained torque.

    After ``memory`` seconds an old sample counts a third.
    """

    joint_names: tuple[str, ...]
    memory: float = 10.0
    _time: float | None = None
    _power: Array = field(init=False)

    def __post_init__(self) -> None:
        self._power = np.zeros((2, len(self.joint_names)))

    def update(self, time: float, predicted: Array, external: Array, velocity: Array | None = None) -> None:
        """Take one sample of predicted and unexplained torque, each of shape (n,) [N m], at a stamp [s].

        Joints that stand, by their ``velocity`` [rad/s], are left as they were: at standstill friction is
        anything between two bounds, and no model explains it.
        """
        squares = np.square([predicted + external, external])
        moving = np.ones(len(external), bool) if velocity is None else np.abs(velocity) > _STANDSTILL
        if self._time is None or time <= self._time:
            self._power = np.where(moving, squares, 0.0)
        else:
            share = 1.0 - np.exp((self._time - time) / self.memory)
            self._power += np.where(moving, share * (squares - self._power), 0.0)
        self._time = time

    @property
    def torque_rms(self) -> Array:
        """Measured torque, shape (n,) [N m]."""
        return np.asarray(np.sqrt(self._power[0]))

    @property
    def error_rms(self) -> Array:
        """What the model leaves of it, shape (n,) [N m]."""
        return np.asarray(np.sqrt(self._power[1]))


def render_watch(
    nodes: Sequence[NodeStatus], fit: JointFit | None = None, *, width: int = 80, colour: bool = False
) -> str:
    """Return the view as lines of text: the nodes from top to bottom, and the fit once a model has been identified.

    Lines are cut at ``width`` columns; with ``colour``, levels are marked by ANSI colours too.
    """
    lines: list[str] = []
    for node in nodes:
        sign, code = _SIGNS[node.level]
        mark = f'\033[{code}m{sign}\033[0m' if colour else sign
        head = f' {node.name:<15}{node.message or "no status yet"}'
        lines.append(mark + _cut(head, width - 1))
        lines += [_cut(f'{"":17}{line}', width) for line in status_details(node.values)]
    if fit is not None:
        lines += ['', *(_cut(line, width) for line in _fit_lines(fit))]
    return '\n'.join(lines)


def status_details(values: Mapping[str, str]) -> list[str]:
    """Return the values of a status in words, a line each."""
    lines = []
    share = progress_share(values)
    if share is not None:
        elapsed, duration = float(values['elapsed']), float(values['duration'])
        lines.append(f'{values.get("phase", "")}  {_bar(share)} {max(elapsed, 0.0):.0f} of {duration:.0f} s'.lstrip())
        error = values.get('tracking_error')
        if error is not None:
            lines.append(f'tracking error {error} rad')
    if 'rate' in values:
        faults = ', '.join(f'{values[name]} {name.replace("_", " ")}' for name in FAULTS if name in values)
        lines.append(f'{values["rate"]} Hz, {values.get("messages", "0")} messages, {faults or "no gaps"}')
    if 'periods_averaged' in values:
        lines.append(f'{values["periods_averaged"]} periods averaged, {values["periods_left_out"]} left out')
    if 'relative_error' in values:
        lines.append(
            f'{values["relative_error"]} % of the torque unexplained, condition number '
            f'{values.get("condition_number", "?")}{_change(values)}'
        )
    if 'worst_parameter' in values:
        name = values['worst_parameter']
        asked = _number(values, 'deviation_asked')
        wanted = f', asked {values["deviation_asked"]} %' if asked else ''
        known = f'{name} {values.get(f"parameter/{name}", "")}'
        lines.append(f'least known: {known}, deviation {values["worst_deviation"]} %{wanted}')
    return lines


def progress_share(values: Mapping[str, str]) -> float | None:
    """Return how much of a run is done, 0 to 1, or None while nothing runs."""
    elapsed, duration = _number(values, 'elapsed'), _number(values, 'duration')
    if elapsed is None or duration is None or not duration > 0.0:
        return None
    return min(max(elapsed / duration, 0.0), 1.0)


def _change(values: Mapping[str, str]) -> str:
    """Return how far the last recording moved the estimate; nothing where it is the first."""
    change = _number(values, 'change')
    return '' if change is None or not np.isfinite(change) else f', last change {values["change"]}'


def _fit_lines(fit: JointFit) -> list[str]:
    longest = max(len(name) for name in fit.joint_names)
    lines = [f'{"joint":<{longest}}  {"torque":>8}  {"left":>8}  explained']
    for name, torque, error in zip(fit.joint_names, fit.torque_rms, fit.error_rms, strict=True):
        if torque == 0.0:
            lines.append(f'{name:<{longest}}  {"has not moved yet":>18}')
            continue
        share = max(0.0, 1.0 - float(error) / float(torque))
        lines.append(f'{name:<{longest}}  {torque:8.3g}  {error:8.3g}  {_bar(share)} {100.0 * share:3.0f} %')
    return lines


def _bar(share: float) -> str:
    filled = round(_BAR * share)
    return '█' * filled + '·' * (_BAR - filled)


def _number(values: Mapping[str, str], name: str) -> float | None:
    try:
        return float(values[name])
    except (KeyError, ValueError):
        return None


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 1] + '…'

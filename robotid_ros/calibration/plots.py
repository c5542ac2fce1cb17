# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Pictures of a calibration and of a workspace; matplotlib is imported when one is drawn."""

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.calibration.result import CalibrationResult
from robotid_ros.calibration.workspace import Workspace
from robotid_ros.errors import MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ['calibration_figure', 'png', 'workspace_figure']

_BEFORE, _AFTER = '#c2571a', '#1f6f8b'


def calibration_figure(result: CalibrationResult) -> 'Figure':
    """Return before and after: distance by measurement, distribution, by axis, by parameter.

    Raises
    ------
    MissingDependencyError
        If matplotlib is absent.
    """
    figure = _figure(11.0, 7.5)
    axes = figure.subplots(2, 2)
    before, after = (1e3 * np.linalg.norm(r[:, :3], axis=1) for r in (result.residual_before, result.residual))
    _by_measurement(axes[0, 0], before, after)
    _distribution(axes[0, 1], result, before, after)
    _by_axis(axes[1, 0], result)
    _by_parameter(axes[1, 1], result)
    figure.suptitle(
        f'{result.robot.name}: rms {1e3 * result.before.rms:.3g} mm before, {1e3 * result.after.rms:.3g} mm after'
    )
    return figure


def workspace_figure(workspace: Workspace) -> 'Figure':
    """Return the sampled workspace from above, from the front and from the side.

    Raises
    ------
    MissingDependencyError
        If matplotlib is absent.
    """
    figure = _figure(13.0, 4.6)
    shown = workspace.positions[:: max(1, len(workspace.positions) // 20_000)]
    for axis, (first, second) in zip(figure.subplots(1, 3), ((0, 1), (0, 2), (1, 2)), strict=True):
        axis.plot(shown[:, first], shown[:, second], ',', color=_AFTER, alpha=0.5)
        axis.set_xlabel(f'{"xyz"[first]} [m]')
        axis.set_ylabel(f'{"xyz"[second]} [m]')
        axis.set_aspect('equal')
        axis.grid(alpha=0.3)
    figure.suptitle(f'workspace, {len(workspace.positions)} samples: reach {workspace.reach:.3f} m')
    return figure


def png(figure: 'Figure') -> bytes:
    """Return a figure as the bytes of a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format='png', dpi=120)
    return buffer.getvalue()


def _figure(width: float, height: float) -> 'Figure':
    try:
        from matplotlib.figure import Figure
    except ImportError as cause:
        raise MissingDependencyError.of('matplotlib', 'plot', 'draw pictures') from cause
    return Figure(figsize=(width, height), layout='constrained')


def _by_measurement(axis: Any, before: Array, after: Array) -> None:
    number = np.arange(1, len(before) + 1)
    axis.semilogy(number, np.maximum(before, 1e-6), '.', color=_BEFORE, label='before', markersize=4)
    axis.semilogy(number, np.maximum(after, 1e-6), '.', color=_AFTER, label='after', markersize=4)
    axis.set_xlabel('measurement')
    axis.set_ylabel('distance [mm]')
    axis.legend()
    axis.grid(alpha=0.3)


def _distribution(axis: Any, result: CalibrationResult, before: Array, after: Array) -> None:
    curves = [(before, 'before', _BEFORE, '-'), (after, 'after, fitted to', _AFTER, '-')]
    if result.cross_validation is not None:
        unseen = 1e3 * np.linalg.norm(result.cross_validation.residual[:, :3], axis=1)
        curves.append((unseen[np.isfinite(unseen)], 'after, cross-validated', _AFTER, '--'))
    if result.held_out is not None:
        apart = 1e3 * np.linalg.norm(result.held_out.residual[:, :3], axis=1)
        curves.append((apart, 'after, held out', _AFTER, ':'))
    for values, label, color, style in curves:
        share = np.arange(1, len(values) + 1) / len(values)
        axis.semilogx(np.maximum(np.sort(values), 1e-6), 100.0 * share, style, color=color, label=label)
    axis.set_xlabel('distance [mm]')
    axis.set_ylabel('share of measurements below [%]')
    axis.legend()
    axis.grid(alpha=0.3)


def _by_axis(axis: Any, result: CalibrationResult) -> None:
    place = np.arange(3)
    axis.bar(place - 0.2, 1e3 * np.array(result.before.axis_rms), 0.4, color=_BEFORE, label='before')
    axis.bar(place + 0.2, 1e3 * np.array(result.after.axis_rms), 0.4, color=_AFTER, label='after')
    axis.set_yscale('log')
    axis.set_xticks(place, ['x', 'y', 'z'])
    axis.set_ylabel('rms [mm]')
    axis.legend()


def _by_parameter(axis: Any, result: CalibrationResult) -> None:
    shown = [p for p in result.parameters if p.std is not None and p.unit in ('m', 'rad')]
    place = np.arange(len(shown))
    colors = [_AFTER if p.unit == 'm' else _BEFORE for p in shown]
    axis.bar(place, [1e3 * p.correction for p in shown], color=colors)
    deviations = [2e3 * (p.std or 0.0) for p in shown]
    axis.errorbar(place, [1e3 * p.correction for p in shown], deviations, fmt='none', ecolor='black', capsize=2)
    axis.set_xticks(place, [p.name for p in shown], rotation=90, fontsize=7)
    axis.set_ylabel('correction and two deviations [mm, mrad]')
    axis.grid(alpha=0.3, axis='y')

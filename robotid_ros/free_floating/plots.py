# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Pictures of a design, of the motion it causes and of an identification; matplotlib is imported when one is drawn."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import MissingDependencyError
from robotid_ros.excitation.fourier import FourierTrajectory
from robotid_ros.files import atomic_file
from robotid_ros.free_floating.body import RigidBody
from robotid_ros.free_floating.measurement import FloatingMeasurement
from robotid_ros.free_floating.result import TargetIdentification
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.transforms import rotation_of_quaternion, vector_of_rotation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ['base_figure', 'condition_figure', 'identification_figures', 'save_figures', 'trajectory_figures']

_INK, _MUTED, _GRID = '#24292f', '#6a737d', '#e3e7ec'
_SERIES = ('#0b5394', '#c2571a', '#2e7d4f', '#8e3b8e', '#b8860b', '#1f9aa8', '#a3314a', '#5b6770', '#6b8e23', '#4059ad')


def trajectory_figures(
    trajectory: FourierTrajectory, joint_names: Sequence[str], limits: JointLimits | None = None
) -> 'dict[str, Figure]':
    """Return one period of a trajectory: positions, velocities and accelerations, a figure each.

    Where all joints share a bound it is drawn; the grey band is what lies beyond.
    """
    t = np.linspace(0.0, trajectory.period, 1001)
    kinds = ('positions', 'velocities', 'accelerations')
    labels = ('joint position [rad]', 'joint velocity [rad/s]', 'joint acceleration [rad/s²]')
    figures = {}
    for kind, label, values in zip(kinds, labels, trajectory.evaluate(t), strict=True):
        figure, axes = _figure(f'Exciting trajectory: {kind}')
        _lines(axes, t, values, joint_names)
        bound = None if limits is None or kind == 'positions' else limits.velocity
        if limits is not None and kind == 'accelerations':
            bound = limits.acceleration
        if bound is not None and np.isfinite(bound).all() and np.ptp(bound) == 0.0:
            _bound(axes, float(bound[0]))
        axes.set_xlim(0.0, trajectory.period)
        axes.set_xlabel('time [s]')
        axes.set_ylabel(label)
        figures[f'joint_{kind}'] = figure
    return figures


def base_figure(measurement: FloatingMeasurement) -> 'Figure':
    """Return how the base drifts and turns: position and rotation vector against the first sample.

    Where the pose was not measured, its linear and angular velocity instead.
    """
    figure = _blank(8.6, 5.6)
    upper, lower = figure.subplots(2, 1, sharex=True)
    if measurement.base_position is not None and measurement.base_orientation is not None:
        rotation = rotation_of_quaternion(measurement.base_orientation)
        moved = np.einsum('ba,nb->na', rotation[0], measurement.base_position - measurement.base_position[0])
        turned = np.degrees(vector_of_rotation(np.swapaxes(rotation[:1], 1, 2) @ rotation))
        contents = ((1e3 * moved, 'base position [mm]'), (turned, 'base rotation [°]'))
    else:
        contents = (
            (1e3 * measurement.base_twist[:, :3], 'base velocity [mm/s]'),
            (np.degrees(measurement.base_twist[:, 3:]), 'base rate [°/s]'),
        )
    for axes, (values, label) in zip((upper, lower), contents, strict=True):
        _style(axes)
        _lines(axes, measurement.time, values, ('x', 'y', 'z'))
        axes.set_ylabel(label)
        axes.set_xlim(measurement.time[0], measurement.time[-1])
    lower.set_xlabel('time [s]')
    _title(upper, 'The base reacts to the arm')
    return figure


def identification_figures(result: TargetIdentification, truth: RigidBody | None = None) -> 'dict[str, Figure]':
    """Return the convergence of mass, centre of mass and inertia, and of the condition number.

    Parameters
    ----------
    result : TargetIdentification
    truth : RigidBody, optional
        The true last link merged with the target; dashed where it is known.
    """
    history = result.history
    values = history.estimates.copy()
    with np.errstate(divide='ignore', invalid='ignore'):
        values[:, 0] = 1.0 / values[:, 0]
    final = np.concatenate([[result.body.mass], result.unknowns[1:]])
    true = None if truth is None else np.concatenate([[truth.mass], truth.unknowns[1:]])
    groups = (
        ('mass', 'Mass', 'mass of last link and target [kg]', ('m',), slice(0, 1)),
        ('center_of_mass', 'Centre of mass', 'centre of mass [m]', ('cx', 'cy', 'cz'), slice(1, 4)),
        ('inertia', 'Inertia', 'inertia about the centre of mass [kg m²]', _INERTIA, slice(4, 10)),
    )
    figures = {}
    for key, title, label, names, part in groups:
        figure, axes = _figure(f'{title}: estimate after each sample')
        _lines(axes, history.time, values[:, part], names)
        for k, index in enumerate(range(10)[part]):
            deviation = 2.0 * result.body_deviation[index]
            axes.axhspan(final[index] - deviation, final[index] + deviation, color=_SERIES[k], alpha=0.12, lw=0)
            if true is not None:
                axes.axhline(true[index], color=_SERIES[k], lw=0.9, ls=(0, (4, 3)), zorder=1)
        _focus(axes, values[:, part], final[part])
        axes.set_xlim(history.time[0], history.time[-1])
        axes.set_xlabel('time [s]')
        axes.set_ylabel(label)
        _note(axes, 'dashed: truth · band: final ± 2σ' if true is not None else 'band: final ± 2σ')
        figures[key] = figure
    figures['condition_number'] = condition_figure(
        {'column-scaled': history.condition_scaled, 'SI units': history.condition_si}, history.time
    )
    return figures


def condition_figure(curves: dict[str, Array], time: Array) -> 'Figure':
    """Return condition numbers over time, on a logarithmic axis; infinite values are left out."""
    figure, axes = _figure('Condition number of all samples so far')
    names = list(curves)
    values = np.stack([np.where(np.isfinite(curves[name]), curves[name], np.nan) for name in names], axis=1)
    axes.set_yscale('log')
    _lines(axes, time, values, [f'{name}: {curves[name][-1]:.4g} at the end' for name in names])
    axes.legend(loc='upper right', frameon=False, fontsize=9.5, labelcolor=_INK, handlelength=1.4)
    axes.set_xlim(time[0], time[-1])
    axes.set_ylim(bottom=0.8)
    axes.set_xlabel('time [s]')
    axes.set_ylabel('condition number')
    return figure


def save_figures(figures: 'dict[str, Figure]', folder: str | Path, *, dpi: int = 150) -> list[Path]:
    """Write figures as PNG files named after their keys; return the paths."""
    paths = []
    for name, figure in figures.items():
        buffer = io.BytesIO()
        figure.savefig(buffer, format='png', dpi=dpi)
        path = Path(folder) / f'{name}.png'
        with atomic_file(path) as file:
            file.write(buffer.getvalue())
        paths.append(path)
    return paths


_INERTIA = ('Ixx', 'Ixy', 'Ixz', 'Iyy', 'Iyz', 'Izz')


def _blank(width: float, height: float) -> 'Figure':
    try:
        from matplotlib.figure import Figure
    except ImportError as cause:
        raise MissingDependencyError.of('matplotlib', 'plot', 'draw pictures') from cause
    return Figure(figsize=(width, height), layout='constrained', facecolor='white')


def _figure(title: str) -> 'tuple[Figure, Any]':
    figure = _blank(8.6, 4.2)
    axes = figure.subplots()
    _style(axes)
    _title(axes, title)
    return figure, axes


def _style(axes: 'Axes') -> None:
    for side in ('top', 'right'):
        axes.spines[side].set_visible(False)
    for side in ('left', 'bottom'):
        axes.spines[side].set_color(_MUTED)
    axes.grid(color=_GRID, lw=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=_MUTED, labelcolor=_INK, labelsize=9)
    axes.xaxis.label.set_color(_INK)
    axes.yaxis.label.set_color(_INK)


def _title(axes: 'Axes', text: str) -> None:
    axes.set_title(text, loc='left', fontsize=11, fontweight='bold', color=_INK, pad=10)


def _note(axes: 'Axes', text: str) -> None:
    axes.set_title(text, loc='right', fontsize=8.5, color=_MUTED, pad=10)


def _lines(axes: 'Axes', time: Array, values: Array, names: Sequence[str]) -> None:
    for k, name in enumerate(names):
        axes.plot(time, values[:, k], color=_SERIES[k % len(_SERIES)], lw=1.5, label=name)
    if len(names) > 1:
        axes.legend(
            loc='center left', bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9, labelcolor=_INK, handlelength=1.4
        )


def _bound(axes: 'Axes', bound: float) -> None:
    axes.axhspan(bound, 1.12 * bound, color=_MUTED, alpha=0.15, lw=0)
    axes.axhspan(-1.12 * bound, -bound, color=_MUTED, alpha=0.15, lw=0)
    axes.set_ylim(-1.12 * bound, 1.12 * bound)
    _note(axes, f'grey: beyond the bound of ± {bound:g}')


def _focus(axes: 'Axes', values: Array, final: Array) -> None:
    """Show how the estimate settles: the first samples are far off and would hide it."""
    settled = values[len(values) // 10 :]
    reach = np.nanmax(np.abs(settled - final)) if np.isfinite(settled).any() else 0.0
    spread = max(1.3 * float(reach), 0.1 * float(np.ptp(final)), 0.01 * float(np.abs(final).max()))
    axes.set_ylim(float(final.min()) - spread, float(final.max()) + spread)

# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Pictures of an excitation: every joint with its limits, and the path of the end effector."""

from pathlib import Path
from typing import Any

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import MissingDependencyError
from robotid_ros.excitation.design import ExcitationDesign
from robotid_ros.excitation.fourier import FourierTrajectory
from robotid_ros.files import atomic_file
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.kinematics import tip_transforms
from robotid_ros.model.robot_model import RobotModel

__all__ = ['path_figure', 'plot_excitation', 'trajectory_figure']

_SAMPLES = 1500
_LINE, _LIMIT, _SHADE = '#1f5fa8', '#b03030', '#f3e3e3'


def _figure(**options: Any) -> Any:
    """Return an empty matplotlib figure that needs no display.

    Raises
    ------
    MissingDependencyError
        If matplotlib is absent.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as cause:
        raise MissingDependencyError.of('matplotlib', 'plot', 'draw an excitation') from cause
    return Figure(**options)


def trajectory_figure(trajectory: FourierTrajectory, joint_names: tuple[str, ...], limits: JointLimits) -> Any:
    """Return a figure of one period: a row per joint; position, velocity and acceleration side by side.

    Limits are drawn where they are close enough to matter; how far each is used is written above.

    Parameters
    ----------
    trajectory : FourierTrajectory
    joint_names : tuple of str
    limits : JointLimits

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    MissingDependencyError
        If matplotlib is absent.
    """
    times = np.linspace(0.0, trajectory.period, _SAMPLES)
    columns = (
        ('position [rad or m]', limits.lower, limits.upper),
        ('velocity [1/s]', -limits.velocity, limits.velocity),
        ('acceleration [1/s²]', -limits.acceleration, limits.acceleration),
    )
    figure = _figure(figsize=(12.0, 1.2 + 1.5 * trajectory.n), layout='constrained')
    axes = figure.subplots(trajectory.n, 3, sharex=True, squeeze=False)
    for k, (values, (title, lower, upper)) in enumerate(zip(trajectory.evaluate(times), columns, strict=True)):
        axes[0, k].set_title(title, loc='left', fontsize=11)
        axes[-1, k].set_xlabel('time [s]')
        for j, name in enumerate(joint_names):
            _draw(axes[j, k], times, values[:, j], float(lower[j]), float(upper[j]))
            if k == 0:
                axes[j, 0].set_ylabel(name, rotation=0, ha='right', va='center', fontsize=9)
    figure.align_ylabels(axes[:, 0])
    return figure


def _draw(axes: Any, times: Array, values: Array, lower: float, upper: float) -> None:
    """Draw one signal and those of its limits that are within sight."""
    axes.plot(times, values, color=_LINE, lw=1.2)
    axes.margins(x=0.0)
    low, high = float(values.min()), float(values.max())
    sight = max(high - low, 1e-9)
    bottom, top = low - 0.1 * sight, high + 0.1 * sight
    if lower > low - 0.5 * sight:
        bottom = min(bottom, lower - 0.1 * sight)
        axes.axhspan(bottom, lower, color=_SHADE, lw=0)
        axes.axhline(lower, color=_LIMIT, lw=0.9)
    if upper < high + 0.5 * sight:
        top = max(top, upper + 0.1 * sight)
        axes.axhspan(upper, top, color=_SHADE, lw=0)
        axes.axhline(upper, color=_LIMIT, lw=0.9)
    axes.set_ylim(bottom, top)
    if np.isfinite(upper - lower):
        used = max(abs(2.0 * value - lower - upper) for value in (low, high)) / (upper - lower)
        axes.set_title(f'{100.0 * used:.0f} % of the limit', loc='right', fontsize=7, pad=2.0)
    axes.grid(alpha=0.3)
    axes.tick_params(labelsize=8)


def path_figure(trajectory: FourierTrajectory, model: RobotModel) -> Any:
    """Return a figure of the tip's path over one period, from above, from the side and in space.

    Parameters
    ----------
    trajectory : FourierTrajectory
    model : RobotModel

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    MissingDependencyError
        If matplotlib is absent.
    """
    times = np.linspace(0.0, trajectory.period, _SAMPLES)
    path = tip_transforms(model, trajectory.position(times))[:, :3, 3]
    figure = _figure(figsize=(13.0, 4.4), layout='constrained')
    for k, (first, second, title) in enumerate(((0, 1, 'from above'), (0, 2, 'from the side'))):
        axes = figure.add_subplot(1, 3, k + 1)
        axes.scatter(path[:, first], path[:, second], c=times, s=3, cmap='viridis')
        axes.plot(*path[0, [first, second]], 'o', color=_LIMIT, ms=6, label='start and end')
        axes.plot(0.0, 0.0, 's', color='black', ms=6, label='base')
        axes.set(xlabel=f'{"xyz"[first]} [m]', ylabel=f'{"xyz"[second]} [m]', title=f'end effector {title}')
        axes.set_aspect('equal', adjustable='datalim')
        axes.grid(alpha=0.3)
    axes.legend(loc='best', fontsize=8)
    space = figure.add_subplot(1, 3, 3, projection='3d')
    points = space.scatter(*path.T, c=times, s=3, cmap='viridis')
    space.set(xlabel='x [m]', ylabel='y [m]', zlabel='z [m]')
    figure.colorbar(points, ax=space, label='time [s]', shrink=0.8, pad=0.14)
    return figure


def plot_excitation(model: RobotModel, design: ExcitationDesign, path: str | Path) -> list[Path]:
    """Write the joints' picture to a file, and the path's beside it.

    Parameters
    ----------
    model : RobotModel
    design : ExcitationDesign
    path : str or Path
        Ends in .png, .svg or .pdf; the second file has '-path' before that.

    Returns
    -------
    list of Path
        What was written.

    Raises
    ------
    MissingDependencyError
        If matplotlib is absent.
    DataError
        If a file cannot be written.
    """
    path = Path(path)
    kind = path.suffix[1:].lower() if path.suffix[1:].lower() in ('png', 'svg', 'pdf') else 'png'
    target = path if path.suffix else path.with_suffix(f'.{kind}')
    second = target.with_name(f'{target.stem}-path{target.suffix}')
    figures = (
        trajectory_figure(design.trajectory, design.joint_names, design.limits),
        path_figure(design.trajectory, model),
    )
    figures[0].suptitle(
        f'{model.name}: condition number {design.excitation.condition:.3g} (SI), '
        f'{design.excitation.condition_scaled:.3g} (columns scaled)'
    )
    for figure, file_name in zip(figures, (target, second), strict=True):
        with atomic_file(file_name) as file:
            figure.savefig(file, format=kind, dpi=110)
    return [target, second]

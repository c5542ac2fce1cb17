# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Friction curves with the data they were fitted to."""

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.dataset import Dataset
from robotid_ros.report.chart import Axis, Chart, Dots, Line, Rule, Series
from robotid_ros.report.content import Figure
from robotid_ros.report.decimate import spread
from robotid_ros.report.numbers import number
from robotid_ros.report.torque import units_of

__all__ = ['friction_figure', 'ripple_figure']


def friction_figure(
    dataset: Dataset,
    predicted: Array,
    friction: Array,
    *,
    model_name: str,
    velocity: Array,
    curve: Array,
    truth: Array | None = None,
    prismatic: tuple[bool, ...] | None = None,
) -> Figure:
    """Return friction torque against velocity, one chart per joint.

    The points are tau - tau_hat + friction_hat: the measured torque without what the rigid body explains.

    Parameters
    ----------
    dataset : Dataset
    predicted : ndarray, shape (N, n)
        Whole predicted torque [N m or N].
    friction : ndarray, shape (N, n)
        The friction part of it [N m or N].
    model_name : str
    velocity : ndarray, shape (K, n)
        Where the curve is drawn [rad/s or m/s], increasing.
    curve : ndarray, shape (K, n)
        Friction there, at the mean load where it depends on the load [N m or N].
    truth : ndarray, shape (K, n), optional
        The true friction, where it is known.
    prismatic : tuple of bool, optional
        Which joints are; none by default.
    """
    points = dataset.tau - predicted + friction
    keep = spread(len(dataset), 600)
    charts = []
    for j, joint in enumerate(dataset.joint_names):
        series: list[Series] = [
            Rule(axis='y', at=0.0),
            Dots(role='measured', x=dataset.dq[keep, j], y=points[keep, j], label='measured, rigid body subtracted'),
            Line(role='predicted', x=velocity[:, j], y=curve[:, j], label=f'fitted: {model_name}'),
        ]
        if truth is not None:
            series.append(Line(role='truth', x=velocity[:, j], y=truth[:, j], label='true'))
        low, high = np.quantile(points[:, j], [0.002, 0.998])
        limits = (min(float(low), float(curve[:, j].min())), max(float(high), float(curve[:, j].max())))
        units = units_of(bool(prismatic and prismatic[j]))
        charts.append(_friction_chart(joint, units, velocity[:, j], curve[:, j], limits, tuple(series)))
    return Figure(
        name='friction',
        caption='Friction curves with data',
        reading='The curve should run through the middle of the cloud, and friction must oppose the motion: positive '
        'on the right, negative on the left, but for a constant offset.',
        charts=tuple(charts),
    )


def _friction_chart(
    joint: str,
    units: tuple[str, str],
    velocity: Array,
    curve: Array,
    limits: tuple[float, float],
    series: tuple[Series, ...],
) -> Chart:
    torque, speed = units
    fast = float(np.abs(velocity).max())
    margin = 0.06 * (limits[1] - limits[0]) + 1e-9
    return Chart(
        title=joint,
        note=f'{number(float(curve[-1]))} {torque} at {number(fast, 2)} {speed}',
        alt=f'{joint}: friction torque against velocity; the fitted curve runs from {number(float(curve[0]))} to '
        f'{number(float(curve[-1]))} {torque} between {number(-fast, 2)} and {number(fast, 2)} {speed}.',
        x=Axis(label=f'velocity [{speed}]'),
        y=Axis(label=f'friction [{torque}]', limits=(limits[0] - margin, limits[1] + margin)),
        series=series,
        height=0.66,
    )


def ripple_figure(
    dataset: Dataset,
    predicted: Array,
    ripple: Array,
    *,
    position: Array,
    curve: Array,
    frequency: Array,
    prismatic: tuple[bool, ...] | None = None,
) -> Figure:
    """Return torque ripple against position for the joints that have some.

    The points are tau - tau_hat + ripple_hat: the measured torque without anything else that is explained.

    Parameters
    ----------
    dataset : Dataset
    predicted : ndarray, shape (N, n)
        Whole predicted torque [N m or N].
    ripple : ndarray, shape (N, n)
        The ripple in it [N m or N].
    position : ndarray, shape (K, n)
        Where the curve is drawn [rad or m], increasing.
    curve : ndarray, shape (K, n)
        Ripple there at creeping speed [N m or N].
    frequency : ndarray, shape (n,)
        Of the ripple [1/rad]; zero for joints without.
    prismatic : tuple of bool, optional
        Which joints are; none by default.
    """
    points = dataset.tau - predicted + ripple
    charts = []
    for j in np.flatnonzero(frequency):
        inside = (dataset.q[:, j] >= position[0, j]) & (dataset.q[:, j] <= position[-1, j])
        rows = np.flatnonzero(inside)
        rows = rows[spread(len(rows), 600)]
        q = dataset.q[rows, j]
        series = (
            Dots(role='measured', x=q, y=points[rows, j], label='measured, the rest subtracted'),
            Line(role='prior', x=position[:, j], y=curve[:, j], label='fitted, at creeping speed'),
            Dots(role='predicted', x=q, y=ripple[rows, j], label='fitted, along the motion'),
        )
        torque, _ = units_of(bool(prismatic and prismatic[j]))
        rate, size = number(float(frequency[j])), number(float(np.abs(curve[:, j]).max()))
        joint = dataset.joint_names[j]
        charts.append(
            Chart(
                title=joint,
                note=f'{rate} per rad',
                alt=f'{joint}: torque ripple against position, {rate} per rad with an amplitude of {size} {torque} at '
                'creeping speed.',
                x=Axis(label='position [m]' if prismatic and prismatic[j] else 'position [rad]'),
                y=Axis(label=f'ripple [{torque}]'),
                series=series,
            )
        )
    return Figure(
        name='ripple',
        caption='Torque ripple of motor and gear',
        reading='Cogging and gear errors repeat with the motor shaft; fast motion hides them. Blue points should lie '
        'on grey ones; where grey stays at zero throughout, do not believe the ripple of that joint.',
        charts=tuple(charts),
    )

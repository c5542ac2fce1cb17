# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Where a motion goes, how well it excites an arm, and how close a designed one comes to each limit."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.dataset import Dataset
from robotid_ros.excitation.design import ExcitationDesign
from robotid_ros.excitation.verification import Peak
from robotid_ros.identification.result import IdentificationResult
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.kinematics import link_transforms
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.report.bodies import Body
from robotid_ros.report.content import Fact, Figure, Level, Table, number, percent, quantities, units_of, words
from robotid_ros.report.plot import Chart, Trace, axis, dots, line, rule
from robotid_ros.report.subject import described_torque

SAMPLES = 2001
TOLERANCE = 1e-6  # of a limit
_QUANTITIES = ('position', 'velocity', 'acceleration', 'torque')
_GOOD_CONDITION = 30.0
_POOR_CONDITION = 200.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Approach:
    """How close one joint comes to one of its limits: ``share`` of it, 1 at the limit, NaN where there is none."""

    quantity: str
    joint: str
    share: float
    time: float
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Motion:
    """One period of a design at N instants ``time`` [s].

    Attributes
    ----------
    signals : dict of str to ndarray, shape (N, n)
        Position, velocity, acceleration and torque.
    poses : ndarray, shape (N, n, 4, 4)
        Of the links in the base frame.
    tip : ndarray, shape (N, 3)
        Path of the tool [m].
    approaches : tuple of Approach
        Of every quantity and joint.
    floor : float
        Height of the ground, or of the plane that the base is mounted on, in the base frame [m].
    """

    time: Array
    signals: dict[str, Array]
    poses: Array
    tip: Array
    approaches: tuple[Approach, ...]
    floor: float


def motion_of(model: RobotModel, design: ExcitationDesign) -> Motion:
    """Return one period of a design, with the torque of the robot description."""
    time = np.linspace(0.0, design.trajectory.period, SAMPLES)
    q, dq, ddq = design.trajectory.evaluate(time)
    signals = dict(zip(_QUANTITIES, (q, dq, ddq, described_torque(model, q, dq, ddq)), strict=True))
    poses = link_transforms(model, q)
    limits = design.limits
    approaches = []
    with np.errstate(invalid='ignore'):
        for name in _QUANTITIES:
            if name == 'position':
                half = 0.5 * (limits.upper - limits.lower)
                shares = np.abs(q - 0.5 * (limits.upper + limits.lower)) / half
            else:
                bound = limits.effort if name == 'torque' else getattr(limits, name)
                shares = np.abs(signals[name]) / bound
            shares = np.where(np.isfinite(shares), shares, 0.0)
            for j, joint in enumerate(design.joint_names):
                k = int(shares[:, j].argmax())
                share = float(shares[k, j]) or float('nan')
                value = float(signals[name][k, j])
                approaches.append(Approach(quantity=name, joint=joint, share=share, time=float(time[k]), value=value))
    tip = (poses[:, -1] @ model.tip)[:, :3, 3]
    floor = design.config.ground_height if design.config.ground else 0.0
    return Motion(time=time, signals=signals, poses=poses, tip=tip, approaches=tuple(approaches), floor=floor)


def closest(approaches: Iterable[Approach]) -> Approach | None:
    """Return the one that comes closest to its limit; None where nothing has a limit."""
    limited = (each for each in approaches if np.isfinite(each.share))
    return max(limited, key=lambda each: each.share, default=None)


def lowest_point(motion: Motion, bodies: Sequence[Body]) -> tuple[float, float]:
    """Return how low the moving bodies come in the base frame [m], and when [s]."""
    height, time = np.inf, 0.0
    for body in bodies:
        if body.link >= 1:  # the base and the first link turn in place
            pose = motion.poses[::4, body.link]
            lowest = (body.vertices @ pose[:, 2, :3].T + pose[:, 2, 3]).min(axis=0)
            k = int(lowest.argmin())
            if lowest[k] < height:
                height, time = float(lowest[k]), float(motion.time[::4][k])
    return height, time


def approach_table(motion: Motion, joint_names: Sequence[str]) -> Table:
    """Return how close each joint comes to each of its limits."""
    rows: list[tuple[str, ...]] = []
    levels: list[Level | None] = []
    for joint in joint_names:
        own = [each for each in motion.approaches if each.joint == joint]
        cells = [
            'no limit' if np.isnan(each.share) else f'{percent(100 * each.share)} at {each.time:.1f} s' for each in own
        ]
        rows.append((joint, *cells))
        levels.append('bad' if any(each.share > 1.0 + TOLERANCE for each in own) else 'good')
    return Table(
        caption='Closest approach to each limit',
        columns=(*words('Joint'), *quantities(*(name.capitalize() for name in _QUANTITIES))),
        rows=tuple(rows),
        levels=tuple(levels),
        reading='In percent of the limit, from the middle of the range for positions. The torque is that of the robot '
        'description.',
    )


def space_table(peaks: list[Peak]) -> Iterator[Table]:
    """Yield the workspace and clearance bounds that are approached closest, where there are any."""
    if not peaks:
        return
    nearest = sorted(peaks, key=lambda peak: -peak.excess)[:12]
    rows = tuple(
        (peak.bound.label, f'{number(-1e3 * peak.bound.scale * peak.excess)} mm', f'{peak.time:.1f} s')
        for peak in nearest
    )
    levels: tuple[Level, ...] = tuple('bad' if peak.excess > TOLERANCE else 'good' for peak in nearest)
    yield Table(
        caption='Closest approach in space',
        columns=(*words('Bound'), *quantities('Left', 'At')),
        rows=rows,
        levels=levels,
        reading=f'The {len(rows)} closest of {len(peaks)} workspace and clearance bounds.',
    )


def limit_figure(model: RobotModel, design: ExcitationDesign, motion: Motion) -> Figure:
    """Return position, velocity, acceleration and torque over one period with their limits, one chart per joint."""
    charts = []
    for j, joint in enumerate(design.joint_names):
        torque, speed, length = units_of(model.joint_types[j])
        names = (f'q [{length}]', f'q̇ [{speed}]', f'q̈ [{speed}²]', f'τ [{torque}]')
        limits = design.limits
        bounds = (
            (limits.lower[j], limits.upper[j]),
            *((-bound[j], bound[j]) for bound in (limits.velocity, limits.acceleration, limits.effort)),
        )
        own = [each for each in motion.approaches if each.joint == joint]
        traces: list[Trace] = []
        layout: Trace = {'xaxis': axis('time [s]', anchor='y4'), 'meta': 'linked', 'shapes': []}
        for k, (name, (low, high), each) in enumerate(zip(names, bounds, own, strict=True)):
            suffix = '' if k == 0 else str(k + 1)
            values = motion.signals[each.quantity][:, j]
            traces.append(line('predicted', motion.time, values, each.quantity, yaxis=f'y{suffix}', showlegend=False))
            layout[f'yaxis{suffix}'] = axis(
                name, domain=[0.78 - 0.26 * k, 1.0 - 0.26 * k], nticks=4, limits=_seen(values, float(low), float(high))
            )
            rules = [rule('y', float(at), 'residual') for at in (low, high) if np.isfinite(at)]
            layout['shapes'] += [{**each, 'yref': f'y{suffix}'} for each in rules]
            if np.isfinite(each.share):
                at, value = np.array([each.time]), np.array([each.value])
                said = f'{percent(100.0 * each.share)} of the limit at {each.time:.2f} s<extra></extra>'
                traces.append(
                    dots('residual', at, value, 'closest approach', 8.0, yaxis=f'y{suffix}', hovertemplate=said)
                )
        worst = closest(own)
        charts.append(
            Chart(
                title=joint,
                note='' if worst is None else f'{worst.quantity} to {percent(100.0 * worst.share)}',
                traces=tuple(traces),
                layout=layout,
                height=520,
            )
        )
    return Figure(
        name='limits',
        caption='Each joint against its limits',
        reading='Dotted lines are limits, where they are near; the orange point is the closest approach. The '
        'vertical line is the moment of the picture above; a click on a chart goes to that moment.',
        charts=tuple(charts),
    )


def _seen(values: Array, low: float, high: float) -> tuple[float, float]:
    """Return a range that shows the values, and limits that are no further than half their range away."""
    bottom, top = float(values.min()), float(values.max())
    room = 0.5 * max(top - bottom, 1e-9)
    bottom, top = (low if low > bottom - room else bottom), (high if high < top + room else top)
    return min(bottom, float(values.min())) - 0.15 * room, max(top, float(values.max())) + 0.15 * room


def condition_level(scaled: float) -> Level:
    """Return the traffic light of a column-scaled condition number."""
    return 'good' if scaled <= _GOOD_CONDITION else 'caution' if scaled <= _POOR_CONDITION else 'bad'


def condition_fact(scaled: float, si: float) -> Fact:
    """Return a condition number as a fact, column-scaled and in SI units."""
    return Fact(label='Condition number', value=number(scaled), note=f'column-scaled; {number(si)} in SI')


def condition_table(result: IdentificationResult) -> Table:
    """Return the condition number of the training data, with its light."""
    return Table(
        caption='Condition number of the observation matrix',
        columns=(*words('Of'), *quantities('SI units', 'Column-scaled')),
        rows=(('Training data', number(result.condition_si), number(result.condition_scaled)),),
        levels=(condition_level(result.condition_scaled),),
        reading='The ratio of the largest singular value of the matrix to the smallest: by how much more the noise '
        'disturbs the combination of parameters that was excited worst than the one that was excited best. The '
        f'scaled number does not depend on units: below {_GOOD_CONDITION:.0f} is good, above {_POOR_CONDITION:.0f} '
        'some parameters are not determined.',
    )


def coverage_figure(dataset: Dataset, joint_types: Sequence[str], limits: JointLimits) -> Figure:
    """Return velocity against position, one chart per joint, with the limits where the motion comes near them."""
    charts = []
    for j, joint in enumerate(dataset.joint_names):
        _, speed, length = units_of(joint_types[j])
        q, dq = dataset.q[:, j], dataset.dq[:, j]
        fast = float(np.abs(dq).max())
        charts.append(
            Chart(
                title=joint,
                note=f'range {number(np.ptp(q))} {length}, speed to {number(fast)} {speed}',
                alt=f'{joint}: positions from {number(q.min())} to {number(q.max())} {length} at speeds '
                f'up to {number(fast)} {speed}.',
                traces=(dots('predicted', q, dq, 'visited', showlegend=False),),
                layout={
                    'xaxis': axis(f'position [{length}]'),
                    'yaxis': axis(f'velocity [{speed}]'),
                    'shapes': _near(limits, j, q, dq),
                },
                height=250,
            )
        )
    return Figure(
        name='coverage',
        caption='Where the motion went',
        reading='Wide clouds on both sides of zero velocity determine gravity and friction; a joint that hardly moves '
        'cannot be identified. Dotted lines are limits of the arm.',
        charts=tuple(charts),
    )


def _near(limits: JointLimits, j: int, q: Array, dq: Array) -> list[Trace]:
    reach, fast = 0.3 * float(np.ptp(q)), float(np.abs(dq).max())
    rules = [
        rule('x', float(bound))
        for bound in (limits.lower[j], limits.upper[j])
        if q.min() - reach < bound < q.max() + reach
    ]
    if limits.velocity[j] < 1.3 * fast:
        rules += [rule('y', sign * float(limits.velocity[j])) for sign in (-1.0, 1.0)]
    return rules

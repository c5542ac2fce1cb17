"""How well a motion excites an arm: where it went, and the trajectory itself."""

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.dataset import Dataset
from robotid_ros.excitation.fourier import FourierTrajectory
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.report.chart import Axis, Chart, Dots, Line, Role, Rule, Series
from robotid_ros.report.content import Column, Figure, Level, Table
from robotid_ros.report.decimate import envelope
from robotid_ros.report.numbers import number

__all__ = ['condition_level', 'condition_table', 'coverage_figure', 'trajectory_figure']

_GOOD_CONDITION = 30.0
_POOR_CONDITION = 200.0
_DOTS = 700


def condition_level(scaled: float) -> Level:
    """Return the traffic light of a column-scaled condition number."""
    return 'good' if scaled <= _GOOD_CONDITION else 'caution' if scaled <= _POOR_CONDITION else 'bad'


def condition_table(rows: tuple[tuple[str, float, float], ...]) -> Table:
    """Return condition numbers, with a light for each.

    Parameters
    ----------
    rows : tuple of (name, SI, column-scaled)
    """
    return Table(
        caption='Condition number of the observation matrix',
        columns=(
            Column(name='Of', numeric=False),
            Column(name='SI units'),
            Column(name='Column-scaled'),
        ),
        rows=tuple((name, number(si), number(scaled)) for name, si, scaled in rows),
        levels=tuple(condition_level(scaled) for _, _, scaled in rows),
        reading='By how much the worst-excited combination of parameters amplifies noise, against the best. The '
        f'scaled number does not depend on units: below {_GOOD_CONDITION:.0f} is good, above {_POOR_CONDITION:.0f} '
        'some parameters are not determined.',
    )


def coverage_figure(dataset: Dataset, limits: JointLimits | None = None) -> Figure:
    """Return velocity against position, one chart per joint.

    Parameters
    ----------
    dataset : Dataset
    limits : JointLimits, optional
        Of the same joints; drawn where the motion comes near them.
    """
    charts = []
    keep = np.linspace(0, len(dataset) - 1, min(len(dataset), _DOTS)).astype(np.int64)
    for j, joint in enumerate(dataset.joint_names):
        q, dq = dataset.q[:, j], dataset.dq[:, j]
        fast = float(np.abs(dq).max())
        series: list[Series] = [Dots(role='predicted', x=q[keep], y=dq[keep], label='visited', size=1.1)]
        if limits is not None:
            series += _near(limits, j, q, dq)
        charts.append(
            Chart(
                title=joint,
                note=f'range {number(float(np.ptp(q)))}, speed to {number(fast)}',
                alt=f'{joint}: positions from {number(float(q.min()))} to {number(float(q.max()))} rad at speeds up '
                f'to {number(fast)} rad/s.',
                x=Axis(label='position [rad]'),
                y=Axis(label='velocity [rad/s]'),
                series=tuple(series),
                height=0.62,
            )
        )
    return Figure(
        name='coverage',
        caption='Where the motion went',
        reading='Wide, well-filled clouds on both sides of zero velocity determine gravity and friction; a joint that '
        'hardly moves cannot be identified.',
        charts=tuple(charts),
    )


def trajectory_figure(trajectory: FourierTrajectory, joints: tuple[str, ...], limits: JointLimits) -> Figure:
    """Return one period of an excitation trajectory, one chart per joint.

    Position, velocity and acceleration are shown as shares of their limits, so that one chart holds
    all three and what is active touches 100 %.

    Parameters
    ----------
    trajectory : FourierTrajectory
    joints : tuple of str
    limits : JointLimits
        Where there is none, the largest value stands for it.
    """
    t = np.linspace(0.0, trajectory.period, 1000)
    position, velocity, acceleration = trajectory.evaluate(t)
    charts = []
    for j, joint in enumerate(joints):
        middle, half = _span(limits, j, position[:, j])
        shares: list[tuple[Role, str, Array]] = [
            ('predicted', 'position', (position[:, j] - middle) / half),
            ('residual', 'velocity', velocity[:, j] / _bound(limits.velocity[j], velocity[:, j])),
            ('truth', 'acceleration', acceleration[:, j] / _bound(limits.acceleration[j], acceleration[:, j])),
        ]
        series: list[Series] = [Rule(axis='y', at=100.0, label='limit'), Rule(axis='y', at=-100.0)]
        for role, label, share in shares:
            x, y = envelope(t, 100.0 * share)
            series.append(Line(role=role, x=x, y=y, label=label))
        peaks = [float(np.abs(share).max()) for *_, share in shares]
        charts.append(
            Chart(
                title=joint,
                note=f'{number(float(position[:, j].min()))} to {number(float(position[:, j].max()))} rad',
                alt=f'{joint}: one period of {number(trajectory.period)} s; position, velocity and acceleration reach '
                + ', '.join(f'{100.0 * peak:.0f} %' for peak in peaks)
                + ' of their limits.',
                x=Axis(label='time [s]'),
                y=Axis(label='share of limit [%]', limits=(-112.0, 112.0)),
                series=tuple(series),
            )
        )
    return Figure(
        name='trajectory',
        caption='Excitation trajectory, one period',
        reading='A good excitation uses the limits: curves that touch ±100 % are as fast or as wide as allowed, none '
        'goes beyond.',
        charts=tuple(charts),
    )


def _span(limits: JointLimits, j: int, values: Array) -> tuple[float, float]:
    low, high = float(limits.lower[j]), float(limits.upper[j])
    if not np.isfinite(high - low):
        low, high = float(values.min()), float(values.max())
    return 0.5 * (low + high), max(0.5 * (high - low), 1e-12)


def _bound(limit: float, values: Array) -> float:
    return float(limit) if np.isfinite(limit) else max(float(np.abs(values).max()), 1e-12)


def _near(limits: JointLimits, j: int, q: Array, dq: Array) -> list[Series]:
    reach, fast = 0.3 * float(np.ptp(q)), float(np.abs(dq).max())
    rules: list[Series] = [
        Rule(axis='x', at=float(bound), label='limit')
        for bound in (limits.lower[j], limits.upper[j])
        if q.min() - reach < bound < q.max() + reach
    ]
    if limits.velocity[j] < 1.3 * fast:
        rules += [Rule(axis='y', at=sign * float(limits.velocity[j]), label='limit') for sign in (-1.0, 1.0)]
    return rules

# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""When samples were taken: at their stamps, or by an even clock whose samples were stamped late.

A driver or a logger that stamps what it receives stamps late, in bursts and after pauses, while the robot samples
evenly. No sample is later than its stamp, and each is at least one step after the one before. So the latest times that
are possible are

    ``t[i] = min over j >= i of s[j] - (j - i) h``

with stamps ``s`` and step ``h``. Where messages were lost, the times jump by whole steps. Which of the two it was, the
motion tells: with wrong times, positions do not lie on smooth curves through their neighbours.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from robotid_ros.arrays import Array

_EVEN = 0.02  # of a step; stamps that close to a straight line are as good as even
SMOOTHER = 0.9  # what is left of the roughness where an even clock is believed
_APART = np.array([1, 4, 16])  # samples
MOST = 100_000  # samples that are looked at
_LAGS = 16 * 4 ** np.arange(10)  # samples, over which the step is measured in turn
_WHOLE = 0.25  # steps; how far counts may be from whole numbers of an even clock
_FEWEST = 8
_OVER = 20  # samples, over which velocities are integrated
_MOVES = 1e-3  # rad or m in that time, by which a joint moves
_ALIKE, _OFF = 0.9, 0.1  # squared correlation of two that go together; relative error of their factor


def is_even(time: Array) -> bool:
    """Return whether times, shape (N,), are a straight line to within 2 % of their distance."""
    ideal = np.linspace(time[0], time[-1], len(time))
    return bool(np.abs(time - ideal).max() <= _EVEN * (ideal[1] - ideal[0]))


def sample_times(stamp: Array, position: Array) -> tuple[Array, float, float]:
    """Return the times at which samples were taken, their step, and how much smoother an even clock makes the motion.

    ``stamp``, shape (N,): increasing [s]. ``position``, shape (N, n) [rad or m]. Returns ``time``, shape (N,):
    increasing [s]; the stamps themselves where an even clock does not make the positions smoother; ``step`` [s];
    ``left``: roughness of the positions at the times of the smoothest even clock, over that at the stamps: below 0.9
    that clock is taken. NaN where the stamps are even.
    """
    steps = np.diff(stamp)
    usual = float(np.median(steps)) if len(steps) else 0.0
    if len(stamp) < _FEWEST or is_even(stamp):
        return stamp, usual, np.nan
    step = float(steps.sum() / np.maximum(np.round(steps / usual), 1.0).sum())
    clocks = [_by_an_even_clock(stamp, first) for first in (step, float(steps.mean()))]
    rough = [_roughness(time, position) for time, _ in clocks]
    best = int(np.argmin(rough))
    left = float(np.exp(rough[best] - _roughness(stamp, position)))
    return (*(clocks[best] if left < SMOOTHER else (stamp, step)), left)


def velocity_share(time: Array, position: Array, velocity: Array) -> float:
    """Return how many times as fast recorded velocities are as positions by their times; 1 where they agree.

    They tell where, in every joint that moves, what velocities integrate to over some samples goes with what positions
    change by, with the same factor; NaN where they do not. Times, shape (N,), increase [s]; positions and velocities
    have the shape (N, n) [rad, rad/s; or m, m/s].
    """
    told = np.isfinite(velocity).all(axis=1)
    time, position, velocity = time[told], position[told], velocity[told]
    if len(time) < _FEWEST * _OVER:
        return float('nan')
    with np.errstate(over='ignore', invalid='ignore'):  # of damaged numbers, which then tell nothing
        steps = 0.5 * (velocity[1:] + velocity[:-1]) * np.diff(time)[:, None]
        way = np.concatenate([np.zeros((1, steps.shape[1])), np.cumsum(steps, axis=0)])
        moved, told_way = (values[_OVER:] - values[:-_OVER] for values in (position, way))
        size, product, told_size = (
            (a * b).sum(axis=0) for a, b in ((moved, moved), (moved, told_way), (told_way, told_way))
        )
        moving = size > _MOVES**2 * len(moved)
        if not moving.any() or (product**2 <= _ALIKE * size * told_size)[moving].any():
            return float('nan')
        factors = product[moving] / size[moving]
        share = float(np.median(factors))
        return share if np.abs(factors / share - 1.0).max() < _OFF else float('nan')


def velocity_remark(found: Mapping[str, Any]) -> str:
    """Return a sentence on velocities that contradict positions and times, from what was found in them, or nothing."""
    share = found.get('velocity_share', 1.0)
    if abs(share - 1.0) < _OFF:
        return ''
    return (
        f'the recorded velocities are {share:.3g} times what the positions do by their times: either the times are in '
        'another unit or of another clock, and then all inertias are wrong, or the velocities are not in rad/s'
    )


def _by_an_even_clock(stamp: Array, step: float) -> tuple[Array, float]:
    """Return the latest times that are possible, about a step apart or whole steps where some were lost, and the step.

    Where whole steps do not explain them, as after pauses or where two clocks drift, they are not rounded to such.
    """
    for lag in _LAGS[len(stamp) > 2 * _LAGS]:  # each knows the step well enough to count those of the next
        apart = stamp[lag:] - stamp[:-lag]
        step = float(apart.sum() / np.maximum(np.round(apart / step), 1.0).sum())
    index = np.arange(len(stamp), dtype=np.float64)
    latest = np.minimum.accumulate((stamp - step * index)[::-1])[::-1]
    count = index + np.round((latest - latest[0]) / step)
    possible: Array = latest + step * index
    step = float(np.polyfit(count, possible, 1)[0])
    time: Array = np.median(stamp - step * count) + step * count  # a delay of all is none
    if np.ptp(time - possible) > 2.0 * _WHOLE * step:
        return possible, step
    return time, step


def _roughness(time: Array, position: Array) -> float:
    """Return how far positions are from the cubics through their neighbours, which are 1, 4 and 16 samples away.

    The logarithm of the mean distance, of the ranges of the joints; mean over the three. Near neighbours show wrong
    times of single samples, far ones those of many in a row.
    """
    total = 0.0
    columns = [column / np.ptp(column) for column in position.T if np.ptp(column) > 0.0]
    for apart in _APART[len(time) > 4 * _APART]:
        here = np.arange(2 * apart, len(time) - 2 * apart, 1 + len(time) // MOST)
        near = [here + side * apart for side in (-2, -1, 1, 2)]
        shares = [
            np.prod([(time[here] - time[other]) / (time[one] - time[other]) for other in near if other is not one], 0)
            for one in near
        ]
        error = [
            np.abs(column[here] - sum(share * column[one] for share, one in zip(shares, near, strict=True))).mean()
            for column in columns
        ]
        total += float(np.log(np.sum(error) + np.finfo(float).tiny))
    return total / len(_APART)

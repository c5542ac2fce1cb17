# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""Whether an arm presses on something: its effort against its limits, its model, and its own period before.

A stiff position controller that meets a wall pushes with all its torque long before the arm is visibly off its path.
None of this is a safety function: a threshold that never stops a healthy arm lets it push with a part of its torque.
"""

import numpy as np

from robotid_ros.arrays import Array, BoolArray, IntArray
from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.execution.belief import GOES_ON
from robotid_ros.execution.joint_motion import JointMotion
from robotid_ros.execution.run import RunPlan
from robotid_ros.model import RobotModel

_BIN = 0.02
"""Efforts are averaged over this time, which takes single spikes away [s]."""
_SATURATED = 0.97
"""Part of the effort limit that counts as all of it: efforts are noisy."""
_SHARE_OF_LIMIT = 0.2
"""What friction, of which a description says little, takes of the effort limit at most: strain wave drives take about
4 % dry and 6 % viscous, twice as much when they are cold."""
_SHARE_OF_MODEL = 0.5
"""How wrong the torque of a description may be: masses that were estimated, a tool that nobody described."""
_USUAL = 2.0
"""Factor on the largest difference from the model that was seen before."""
_LEARNING = 0.3
"""How long a difference has to last until it counts as usual [s]: a push is found sooner."""
_REPEATS = 0.1
"""How far the effort may be from that of the period before, as a part of the effort limit: friction warms up."""
_REPEATS_OF_PEAK = 0.4
"""The same as a part of the largest effort, where that is less."""
_SLOW = 0.02
"""Part of a joint's fastest speed below which its friction may turn over earlier or later than a period before."""
_AS_USUAL = 0.25
"""Part of these bounds within which a joint is as usual: beyond it, it may touch something already."""
_NOISE = 6.0
"""Standard deviations of the averaged effort that noise may reach: once in a billion averages if it is Gaussian."""
_DRY = 0.05
"""What friction holds of an arm at rest, as a part of the effort limits: strain wave drives have about 4 % dry."""
_LEAST_HELD = 0.5
"""Least part of the described gravity that efforts hold, whatever the errors of published masses."""


class EffortWatch:
    """Judges the efforts of a run, joint state after joint state.

    Three bounds, each for as long as two or three averages in a row, 40 to 60 ms:

    - the effort limit: ``|tau| < 0.97 tau_max``;
    - the model, with its inertias and friction: ``|tau - tau_model| < 0.2 tau_max + 0.5 |tau_model| + 2 u``, where
      u is the largest difference that lasted 0.3 s before;
    - from the second period on the period before: ``|tau - tau(t - T)| < 0.1 tau_max + 6 s``, with the standard
      deviation s of the noise. A model is not needed, nor the unit of the effort. Where the joint was slow then, or
      was not seen, it may be any effort of that stretch and its edges: friction turns over when the joint does, which
      a slow one does not do to the moment, and what a lost joint state would have shown lies between its neighbours,
      where these are not far apart.

    Where an effort limit or a torque constant is missing, so are the first two. A joint that is beyond its effort
    limit before the run begins has another unit or a wrong limit, and the first bound does not count for it.

    ``clear``, shape (n,): where a joint presses, the positions where the effort had last been within a quarter of its
    bound for 20 ms, of the joints that are beyond it; NaN for the others [rad or m]. ``unit``, shape (n,): torque per
    unit of the effort [N m/A, or 1]; NaN where it is not known. Efforts of coupled motors are taken to their joints
    (:attr:`~robotid_ros.model.RobotModel.effort_map`).
    ``tolerance``: factor on the last two bounds.
    """

    def __init__(self, plan: RunPlan, unit: Array, tolerance: float) -> None:
        self._plan, self._names, self._tolerance = plan, plan.joint_names, tolerance
        self._model = plan.windows.check.model
        self._unit = np.where(np.isfinite(unit), unit, 1.0)
        known = np.isfinite(np.where(self._model.effort_map == 0.0, 0.0, unit)).all(axis=1)
        limit = self._model.limits.effort
        self._limit = np.where(known & np.isfinite(limit) & (limit > 0.0), limit, np.inf)
        n = len(self._limit)
        self._bin: int | None = None
        self._sum, self._count = np.zeros(n), 0
        self._usual: Array | None = None
        self._difference = np.zeros(n)
        self._believed = np.ones(n, dtype=bool)
        self._runs = {name: np.zeros(n, dtype=int) for name in ('limit', 'model', 'period')}
        bins = int(np.ceil(plan.motion.duration / _BIN))
        self._present = np.full((bins, n), np.nan)
        speed = np.abs(plan.motion.evaluate(np.minimum(_BIN * (np.arange(bins) + 0.5), plan.motion.duration))[1])
        self._slow = _SLOW * speed.max(axis=0)
        self._fast = np.zeros((bins, n), dtype=bool)
        self._seen = np.zeros(0, dtype=np.int64)
        self._period = 0
        self._usually = np.ones(n, dtype=bool)
        self._clear, self._passed = np.full(n, np.nan), np.full(n, np.nan)

    def receive(self, elapsed: float, expected: JointMotion, motion: JointMotion, effort: Array) -> str | None:
        """Take in the efforts of a joint state; return what an arm that presses on something shows, or None.

        ``elapsed`` counts from the start of the run [s], negative before it; ``expected`` is what the arm should do
        then, with its acceleration, ``motion`` what it does; efforts have the shape (n,).
        """
        current = int(np.floor(elapsed / _BIN))
        problem = None
        if self._bin is not None and current != self._bin and self._count:
            mean, self._sum, self._count = self._sum / self._count, np.zeros_like(self._sum), 0
            problem = self._judge((self._bin + 0.5) * _BIN, expected, motion, mean)
            self._clear = np.where(self._usually, self._passed, self._clear)
            self._passed = np.where(self._usually, motion.position, self._passed)
        self._bin = current
        self._sum, self._count = self._sum + self._model.torque_of(self._unit * effort), self._count + 1
        return problem

    def _judge(self, elapsed: float, expected: JointMotion, motion: JointMotion, mean: Array) -> str | None:
        if elapsed < 0.0:
            self._believed &= ~(np.abs(mean) >= _SATURATED * self._limit)
        saturated = (np.abs(mean) >= _SATURATED * self._limit) & self._believed
        k = self._lasting('limit', saturated, 3)
        if k is not None:
            return (
                f"the effort of joint '{self._names[k]}' has been at its limit ({self._limit[k]:.3g}) for "
                f'{3 * _BIN:.2f} s: the arm presses on something, or the motion is too much for it'
            )
        return self._judge_model(expected, mean) or self._judge_period(elapsed, motion.velocity, mean)

    def _judge_model(self, expected: JointMotion, mean: Array) -> str | None:
        """Return that the effort is far from what the model needs for the motion."""
        acceleration = np.zeros_like(mean) if expected.acceleration is None else expected.acceleration
        motion = expected.position[None], expected.velocity[None], acceleration[None]
        model = inverse_dynamics(self._model, *motion, friction=True)[0]
        size = np.abs(mean - model)
        if self._usual is None:
            self._usual, self._difference = size.copy(), size.copy()
        allowed = _SHARE_OF_LIMIT * self._limit + _SHARE_OF_MODEL * np.abs(model) + _USUAL * self._usual
        self._usually = ~(size > self._usual + _AS_USUAL * allowed)
        k = self._lasting('model', size > self._tolerance * allowed, 2)
        self._difference += (1.0 - np.exp(-_BIN / _LEARNING)) * (np.nan_to_num(size) - self._difference)
        self._usual = np.fmax(self._usual, self._difference)
        if k is None:
            return None
        return (
            f"the effort of joint '{self._names[k]}' is {mean[k]:.3g} where its model needs {model[k]:.3g} (allowed: "
            f'{self._tolerance * allowed[k]:.2g} more or less): the arm presses on something'
        )

    def _judge_period(self, elapsed: float, velocity: Array, mean: Array) -> str | None:
        """Return that the effort is far from that at the same place of the period before."""
        plan, bins = self._plan, len(self._present)
        if not plan.begin <= elapsed < plan.end:
            self._runs['period'][:] = 0
            return None
        period, phase = divmod(elapsed - plan.begin, plan.motion.duration)
        if int(period) != self._period:
            self._period = int(period)
            self._turn_over()
        k = min(int(phase / _BIN), bins - 1)
        self._present[k] = mean
        self._fast[k] = np.abs(velocity) >= self._slow
        if not len(self._seen):
            return None
        away = np.empty_like(mean)
        # A moment that was not seen then lies between the one before and the one after it.
        last, first = (np.searchsorted(self._seen, k, side) for side in ('right', 'left'))
        unseen = (k - self._seen[last - 1]) % bins + (self._seen[first % len(self._seen)] - k) % bins
        if unseen * _BIN > GOES_ON:  # it may have been anything
            self._runs['period'][:] = 0
            return None
        for j, effort in enumerate(self._before.T):
            begin, end = last - 1 - self._since[last - 1, j], first + self._until[first % len(self._seen), j]
            near = effort[np.arange(begin, end + 1) % len(effort)]
            away[j] = max(mean[j] - np.fmax.reduce(near), np.fmin.reduce(near) - mean[j])
        allowed = np.fmin(_REPEATS * self._limit, _REPEATS_OF_PEAK * self._peak) + _NOISE * self._noise
        self._usually = ~(away > _AS_USUAL * allowed)
        found = self._lasting('period', away > self._tolerance * allowed, 2)
        if found is None:
            return None
        return (
            f"the effort of joint '{self._names[found]}' is {away[found]:.3g} away from that of the period before "
            f'(allowed: {self._tolerance * allowed[found]:.2g}): the arm presses on something'
        )

    def _turn_over(self) -> None:
        """Make the present period the one before, without what was not seen of it."""
        self._seen = np.flatnonzero(np.isfinite(self._present).any(axis=1))
        self._before = self._present[self._seen]
        self._peak = np.fmax.reduce(np.abs(self._before))
        second = np.diff(self._before, n=2, axis=0)  # what they show is noise; the motion adds to it
        count, total = np.isfinite(second).sum(axis=0), np.nansum(second**2, axis=0)
        self._noise = np.where(count > 0, np.sqrt(total / (6.0 * np.maximum(count, 1))), np.inf)
        fast = self._fast[self._seen]
        alike = fast & np.roll(fast, 1, axis=0) & np.roll(fast, -1, axis=0)
        self._since, self._until = _lengths(~alike), _lengths(~alike[::-1])[::-1]
        self._present, self._fast = np.full_like(self._present, np.nan), np.zeros_like(self._fast)

    @property
    def clear(self) -> Array | None:
        """Last positions at which joints were as usual that are not now, shape (n,); NaN for the others [rad or m].

        None where none is beyond a bound.
        """
        if not any(run.any() for run in self._runs.values()):
            return None
        return np.where(self._usually, np.nan, self._clear)

    def _lasting(self, name: str, beyond: BoolArray, times: int) -> int | None:
        """Return the first joint that has been beyond a bound for some averages in a row."""
        run = self._runs[name]
        run[:] = np.where(beyond, run + 1, 0)
        return int(np.argmax(run)) if (run >= times).any() else None


def _lengths(stretch: BoolArray) -> IntArray:
    """Return how many bins before each one, at least one, belong to its stretch and the edge of it."""
    count = np.zeros(stretch.shape[1], dtype=np.int64)
    counts = np.array([count := np.where(row, count + 1, 0) for row in (*stretch, *stretch)])
    lengths: IntArray = np.clip(counts[len(stretch) :], 1, len(stretch))
    return lengths


def holds_no_gravity(model: RobotModel, position: Array, torque: Array) -> bool:
    r"""Return whether the torques of an arm at rest cannot be those that hold it, and can be those of friction alone.

    With the described gravity g and the torque tau, both relative to the effort limits, h = g / tau_max and friction of
    at most r = 0.05 per joint,

        | tau . h | <= r |h|_1                    without gravity,
          tau . h   >= |h|^2 / 2 - r |h|_1        with half of it or more.

    Where the two ranges overlap, the pose tells nothing.

    ``position``, ``torque``, shape (n,) each: at rest, in the coordinates of the description [rad or m, N m or N].
    Joints whose torque is not finite, or that have no effort limit, are left out.
    """
    limit = model.limits.effort
    known = np.isfinite(torque) & np.isfinite(limit) & (limit > 0.0)
    still = np.zeros((1, model.n))
    described = inverse_dynamics(model, position[None], still, still)[0][known] / limit[known]
    held = float(np.abs(torque[known] / limit[known] @ described))
    friction = _DRY * float(np.abs(described).sum())
    return held <= friction < _LEAST_HELD * float(described @ described) - friction

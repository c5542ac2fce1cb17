# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Room to stop: from every moment of a motion, a stop has to exist that stays inside the limits of place."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robotid_ros.errors import ExcitationError
from robotid_ros.excitation import ExcitationConfig, ExcitationDesign, optimize_excitation
from robotid_ros.excitation.preparation import arm_check, reference_check
from robotid_ros.excitation.reference import FourierRun, Reference, ReferenceCheck
from robotid_ros.execution.delay import motions_at
from robotid_ros.execution.stop import PathPlace, StopPlan, plan_stop
from robotid_ros.model import RobotModel

_LATENCY = 0.1
"""What a message takes at most by default [s]: a stop may begin anywhere in it."""
_STEP = 0.1
"""Moments are as far apart at full velocity or full acceleration, and at half that distance at both [s]."""
_PLACES = ('rad', 'm')
"""Units of bounds that are of a place; the others are those of a motion."""
_BETWEEN = 2e-3
"""What a start may find beyond its design's check, which looked at other moments [rad or m]."""
_ROUNDS = 6
_LEAST_MARGIN, _LARGEST_MARGIN = 0.02, 0.1
_SLOWER = 0.8


def stops_along(
    reference: Reference, checks: Sequence[ReferenceCheck], begin: float, end: float
) -> Iterator[tuple[float, StopPlan]]:
    """Yield moments of a reference [s], denser where it is fast or turns, and the stop of an arm that is there."""
    times = np.linspace(begin, end, max(2, round((end - begin) / 0.01)))
    _, velocity, acceleration = reference.evaluate(times)
    limits, shown = checks[0].limits, np.abs(acceleration).max(axis=0)
    pace = np.abs(velocity / limits.velocity).max(axis=1) + np.abs(acceleration / limits.acceleration).max(axis=1)
    passed = np.concatenate([[0.0], np.cumsum(0.5 * (pace[1:] + pace[:-1]) * np.diff(times))])
    for time in np.interp(np.arange(0.5 * _STEP, passed[-1], _STEP), passed, times):
        led = motions_at(reference, time + _LATENCY * np.array([0.5, 0.0, 1.0]))
        starts = [*(replace(motion, acceleration=None) for motion in led), *led]
        path = PathPlace(reference=reference, time=time + 0.5 * _LATENCY, along=np.ones(len(shown), dtype=bool))
        yield float(time), plan_stop(starts, checks, path, shown=shown)


def require_room(
    reference: Reference,
    checks: Sequence[ReferenceCheck],
    begin: float,
    end: float,
    tolerance: float = _BETWEEN,
) -> None:
    """Refuse a reference with a moment from which every stop leaves the limits of place, naming the worst.

    Position, ground, clearance and workspace are limits of place; a stop may leave them by ``tolerance`` [rad or m].
    Of the ``checks``, stops keep the first, and where none does, the next.
    """
    bounds = [bound for part in checks[0].constraints for bound in part.bounds]
    places = np.array([bound.unit in _PLACES for bound in bounds])
    slight = tolerance / np.array([bound.scale for bound in bounds])
    worst, when = np.zeros(len(places)), 0.0
    for time, plan in stops_along(reference, checks, begin, end):
        if plan.added is not None:
            added = np.where(places & (plan.added > slight), plan.added, 0.0)
            if added.max(initial=0.0) > worst.max(initial=0.0):
                worst, when = added, time
    if worst.any():
        raise ExcitationError(
            f'no stop at t = {when:.2f} s keeps the arm inside: {checks[0].spell(worst)}; design with more '
            'position_margin or clearance, or a lower velocity_scaling'
        )


def stoppable_design(model: RobotModel, config: ExcitationConfig, **options: Any) -> ExcitationDesign:
    """Return the best design of which every moment has room to stop; see :func:`optimize_excitation`.

    Where the best one has not, it is searched for again with twice the ``position_margin`` and four fifths of the
    speed, with whose square the way that braking takes falls.

    Raises an ExcitationError if the last one has no room either.
    """
    checks = [reference_check(model, config), arm_check(model, config)]
    for further in reversed(range(_ROUNDS)):
        design = optimize_excitation(model, config, **options)
        if design.interrupted:
            break
        trajectory = design.trajectory
        run = FourierRun(trajectory=trajectory, duration=2.0 * trajectory.period)
        try:
            require_room(run, checks, 0.0, trajectory.period, tolerance=0.0)
        except ExcitationError:
            if not further:
                raise
            margin = min(max(2.0 * config.position_margin, _LEAST_MARGIN), max(_LARGEST_MARGIN, config.position_margin))
            config = replace(config, position_margin=margin, velocity_scaling=_SLOWER * config.velocity_scaling)
            continue
        break
    return design

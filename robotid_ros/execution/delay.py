# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""How far an arm is behind its path, and whether it falls further behind: time may be stretched unannounced."""

import numpy as np
from numpy.typing import ArrayLike

from robotid_ros.excitation.reference import Reference
from robotid_ros.execution.joint_motion import JointMotion

_SLOW, _RELATIVE = 0.15, 0.2
"""How far an arm's velocity may be from that of its path, in rad/s or m/s and as a part of it."""
_BEFORE, _BEHIND, _STEP = 0.05, 1.0, 0.005
"""How far a path is searched for the place an arm is at, ahead and behind, and in which steps [s]."""
_PULL = 0.01
"""What a delay costs in that search [rad/s]: where the arm hardly moves, none is found."""
_MEMORY = 0.5
"""How long motion counts for the delay [s]."""
_ENOUGH = 0.02
"""Sum of squared speed over that time from which a delay can be told [rad^2/s]: 0.2 rad/s throughout."""
_GOES_ON = 0.2
"""Part of the speed of its reference from which an arm counts as going on along it."""


def motions_at(reference: Reference, elapsed: ArrayLike) -> list[JointMotion]:
    """Return a reference at times from its start [s]; before and after it, its ends."""
    rows = reference.evaluate(np.clip(elapsed, 0.0, reference.duration))
    return [JointMotion(position=q, velocity=dq, acceleration=ddq) for q, dq, ddq in zip(*rows, strict=True)]


def motion_at(reference: Reference, elapsed: float) -> JointMotion:
    """Return a reference at one time; see :func:`motions_at`."""
    return motions_at(reference, [elapsed])[0]


def delay_on_path(
    reference: Reference, motion: JointMotion, elapsed: float, tolerance: float, *, at_speed: bool
) -> float | None:
    """Return how far a motion is behind its place on a path [s], or None if it is not on the path.

    Its place is ``elapsed`` from the start of the reference [s]; a motion on the path is within the tolerance of it
    [rad or m] and, where ``at_speed``, has its velocity too.
    """
    delays = np.arange(-_BEFORE, _BEHIND, _STEP)
    positions, velocities, _ = reference.evaluate(np.clip(elapsed - delays, 0.0, reference.duration))
    distance = ((positions - motion.position) ** 2).sum(axis=1) + (_PULL * delays) ** 2
    k = int(np.argmin(distance))
    behind = float((positions[k] - motion.position) @ velocities[k])
    behind /= float(velocities[k] @ velocities[k]) + _PULL**2
    delay = float(delays[k]) + float(np.clip(behind, -_STEP, _STEP))
    there = motion_at(reference, elapsed - delay)
    slower = np.abs(there.velocity - motion.velocity) > _SLOW + _RELATIVE * np.abs(there.velocity)
    if np.abs(there.position - motion.position).max() > tolerance or (at_speed and slower.any()):
        return None
    return delay


def goes_on(motion: JointMotion, expected: JointMotion) -> bool:
    """Return whether an arm goes on along its reference: one that stands while that moves does not."""
    velocity = expected.velocity
    return float(velocity @ motion.velocity) >= _GOES_ON * float(velocity @ velocity)


class DelayGrowth:
    """How much further an arm is behind its reference than at the beginning of its run.

    That is ``value`` [s]; ``usual`` is the delay at the beginning [s], ``known`` whether that has been seen.
    """

    def __init__(self, joints: int) -> None:
        self.value = self.usual = 0.0
        self.known = False
        self._sums, self._means = np.zeros(3), np.zeros((2, joints))
        self._compared: float | None = None
        self._moving = 0.0

    def receive(self, motion: JointMotion, expected: JointMotion, stamp: float) -> bool:
        """Take in what the arm does, and should do, at a stamp [s]; return whether the growth is known anew."""
        before, self._compared = self._compared, stamp
        if before is None or not 0.0 < stamp - before < _MEMORY:
            return False
        step, velocity = stamp - before, expected.velocity
        speed, error = float(velocity @ velocity), expected.position - motion.position
        # The error grows with the speed where the arm is late; what stays is a load that bends it, or holds it off.
        kept, products = np.exp(-step / _MEMORY), np.array([1.0, speed, float(velocity @ error)])
        self._sums = kept * self._sums + step * products
        self._means = kept * self._means + step * np.array([velocity, error])
        time, squares, product = self._sums
        changes = squares - float(self._means[0] @ self._means[0]) / time
        if changes < _ENOUGH or not goes_on(motion, expected):
            return False
        self._moving += step
        delay = (product - float(self._means[0] @ self._means[1]) / time) / changes
        if not self.known:
            if self._moving > _MEMORY:
                self.usual, self.known = delay, True
            return False
        self.value = delay - self.usual
        return True

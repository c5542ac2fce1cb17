# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Watches an arm follow its reference: whatever looks wrong stops it, with the reason."""

from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import ExcitationError
from robotid_ros.settings import Settings, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchdogConfig(Settings):
    """What is still taken as right; each field's ``metadata`` has its description, unit and range."""

    error = ExcitationError

    # Less than 0.1 s cannot be told from a tick that came late.
    joint_state_timeout: float = setting(
        0.5, 'Longest time without a joint state before the arm is stopped', unit='s', range=(0.1, 60.0)
    )
    tracking_tolerance: float = setting(
        0.2,
        'Largest distance between a joint and its reference before the arm is stopped',
        unit='rad or m',
        range=(1e-4, 10.0),
    )
    tracking_delay: float = setting(
        0.0, 'Known delay of the arm behind its reference, taken out of the tracking error', unit='s', range=(0.0, 1.0)
    )
    path_distance: float = setting(
        0.03,
        'Largest distance between a joint and its path, apart from a delay, at which the arm counts as being on it: '
        'only then it is sent the next piece, or stopped along the path',
        unit='rad or m',
        range=(1e-4, 10.0),
    )
    delay_tolerance: float = setting(
        0.02,
        'Largest growth of the delay behind the reference before the arm is stopped: 0.02 s are reached after 20 s '
        'at 99.9 % of the speed',
        unit='s',
        range=(1e-3, 1.0),
    )
    push_tolerance: float = setting(
        1.0,
        'Factor on how far efforts may be from those of the model, and of the period before, until the arm counts as '
        'pressing on something and is stopped; 0: efforts are not watched',
        range=(0.0, 100.0),
    )
    # A window begins half a second in the past: with clocks apart by more, the arm would be led off its path.
    clock_tolerance: float = setting(
        0.25,
        "Largest difference between the joint states' clock and the node's at which a run starts",
        unit='s',
        range=(0.01, 0.4),
    )


class Watchdog:
    """Judges joint states, one after the other.

    Velocity limits, shape (n,), tell a jump from a motion [rad/s or m/s]; infinity where there is none.
    """

    def __init__(self, joint_names: tuple[str, ...], velocity: Array, config: WatchdogConfig | None = None) -> None:
        self.config = WatchdogConfig() if config is None else config
        self._names = joint_names
        self._velocity = np.asarray(velocity)
        self._received: float | None = None
        self._stamp: float | None = None
        self._position: Array | None = None
        self.tracking_error = 0.0

    @property
    def position(self) -> Array | None:
        """Latest good position, shape (n,), or None before the first one."""
        return self._position

    def receive(self, position: Array, velocity: Array | None, stamp: float, now: float) -> str | None:
        """Take in a joint state; return what is wrong with it, or None.

        Position and velocity have the shape (n,). ``stamp`` is when it was measured, ``now`` when it came, on a clock
        that never stands still [s].
        """
        for name, value in zip(self._names, position, strict=True):
            if not np.isfinite(value):
                return f"the position of joint '{name}' is {value}"
        if velocity is not None:
            for name, value in zip(self._names, velocity, strict=True):
                if not np.isfinite(value):
                    return f"the velocity of joint '{name}' is {value}"
        problem = None
        if self._position is not None and self._stamp is not None:
            # as far as the joint can go at twice its velocity limit, plus what a noisy sensor may do
            allowed = 2.0 * self._velocity * max(stamp - self._stamp, 0.0) + 0.5 * self.config.tracking_tolerance
            moved = np.abs(position - self._position)
            if (moved > allowed).any():
                k = int(np.argmax(moved - allowed))
                problem = f"the position of joint '{self._names[k]}' jumps by {moved[k]:.3g} between two joint states"
        self._position, self._stamp, self._received = np.array(position), stamp, now
        return problem

    def silence(self, now: float) -> str | None:
        """Return a sentence if no joint state came for too long, else None; ``now`` as in :meth:`receive`."""
        if self._received is None:
            return 'no joint state has come yet'
        age = now - self._received
        if age > self.config.joint_state_timeout:
            return f'no joint state for {age:.2f} s (allowed: {self.config.joint_state_timeout:g} s)'
        return None

    def compare(self, position: Array, expected: Array) -> str | None:
        """Return a sentence if the arm is too far from its reference, else None; both of shape (n,) [rad or m]."""
        error = np.abs(position - expected)
        self.tracking_error = float(error.max())
        if self.tracking_error > self.config.tracking_tolerance:
            k = int(np.argmax(error))
            return (
                f"joint '{self._names[k]}' is {error[k]:.3g} away from its reference "
                f'(allowed: {self.config.tracking_tolerance:g})'
            )
        return None

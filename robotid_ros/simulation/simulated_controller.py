# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What a joint_trajectory_controller does beside following: holding, deactivation, speed scaling, clamped commands.

The rules were read in the controller's source (ros-controls/ros2_controllers, joint_trajectory_controller,
``update``, ``on_activate`` and ``on_deactivate``, at 6.9.0 and at its master of August 2026).
"""

from collections.abc import Sequence

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import DataError
from robotid_ros.simulation.trajectory_follower import CommandPoint, TrajectoryFollower


class SimulatedController:
    """Follows trajectories as a controller does, with path tolerance, speed scaling, deactivation and clamping.

    Attributes
    ----------
    active : bool
        An inactive controller ignores trajectories, and the arm keeps the last command.
    speed_scaling : float
        Trajectory time per time, 0 to 1.
    path_tolerance : float
        How far a joint may be from its reference before the controller holds it where it is [rad or m]; 0: any.

    Parameters
    ----------
    joint_names : sequence of str
        The controller's n joints.
    position : ndarray, shape (n,)
        Held until the first trajectory [rad or m].
    blend : bool
        Replace as the newest controllers do (``allow_trajectory_replacement``).
    from_command : bool
        Begin a new trajectory at the last command (``interpolate_from_desired_state``), not at the measured state.
    velocity_limits : ndarray, shape (n,), optional
        What the commands are clamped to, as by ``enforce_command_limits`` [rad/s or m/s].
    """

    def __init__(
        self,
        joint_names: Sequence[str],
        position: Array,
        *,
        blend: bool = False,
        from_command: bool = False,
        velocity_limits: Array | None = None,
    ) -> None:
        self.follower = TrajectoryFollower(joint_names, position, blend=blend)
        self.active, self.speed_scaling, self.path_tolerance = True, 1.0, 0.0
        self._blend, self._from_command, self._limits = blend, from_command, velocity_limits
        self._behind = 0.0
        self._commanded = np.array(position, dtype=float)
        self._previous: float | None = None
        self._measured_at: float | None = None
        self._holding = True

    def command(
        self,
        joint_names: Sequence[str],
        start: float | None,
        points: Sequence[CommandPoint],
        now: float,
        measured: tuple[Array, Array] | None = None,
    ) -> None:
        """Take over a new trajectory; see :meth:`TrajectoryFollower.command`.

        Parameters
        ----------
        measured : tuple of ndarray, each of shape (n,), optional
            Position and velocity at the first instant of the last sampling: there the new trajectory begins.

        Raises
        ------
        DataError
            If the controller is not active, or refuses the trajectory.
        """
        if not self.active:
            raise DataError('the controller is not active')
        if self._blend:
            begin = None if start is None else max(start, now) - self._behind
            self.follower.command(joint_names, begin, points, now - self._behind)
        else:
            state = None
            if measured is not None and not self._from_command:
                position, velocity = measured
                since = 0.0 if self._measured_at is None else now - self._measured_at
                state = (position + since * velocity, velocity, np.zeros_like(position))
            elif self._behind:
                state = self._state(now)
            self.follower.command(joint_names, start, points, now, state)
            self._behind, self._previous = 0.0, now  # a new trajectory begins in time, whatever the scaling
        self._holding = False

    def _state(self, now: float) -> tuple[Array, Array, Array]:
        q, dq, ddq = self.follower.sample(np.array([now - self._behind]))
        return q[0], dq[0], ddq[0]  # in the trajectory's own time, as the controller keeps them

    def hold(self, position: Array, now: float) -> None:
        """Hold the arm at a position, at once and at any speed."""
        follower = self.follower
        follower.command(follower.joint_names, None, [CommandPoint(0.0, np.asarray(position).tolist())], now)
        self._behind, self._holding = 0.0, True

    def set_active(self, active: bool, now: float) -> None:
        """Activate the controller, which then holds its last command, or deactivate it."""
        if active and not self.active:
            self.active = True
            self.hold(self._commanded, now)
        self.active = active

    def sample(self, times: Array, measured: Array) -> tuple[Array, Array, Array]:
        """Return what the drives are told at some instants, q, dq, ddq, each (N, n) [rad, rad/s, rad/s^2; or m].

        Times, shape (N,), increase and are not before those of earlier calls [s]; ``measured``, shape (n,), is the
        position at the last instant before them [rad or m].
        """
        before = times[0] if self._previous is None else self._previous
        self._previous, self._measured_at = float(times[-1]), float(times[0])
        if not self.active:
            q = np.tile(self._commanded, (len(times), 1))
            return q, np.zeros_like(q), np.zeros_like(q)
        behind = self._behind + (1.0 - self.speed_scaling) * (times - before)
        self._behind = float(behind[-1])
        q, dq, ddq = self.follower.sample(times - behind)
        dq, ddq = self.speed_scaling * dq, self.speed_scaling**2 * ddq
        if self.path_tolerance > 0.0 and not self._holding and (np.abs(q[0] - measured) > self.path_tolerance).any():
            self.hold(measured, float(times[0]))
            q, dq, ddq = self.follower.sample(times)
        if self._limits is not None:
            q, dq, ddq = self._clamped(times, before, q, dq, ddq)
        self._commanded = q[-1].copy()
        return q, dq, ddq

    def _clamped(self, times: Array, before: float, q: Array, dq: Array, ddq: Array) -> tuple[Array, Array, Array]:
        """Return the reference with no step between two instants beyond what the velocity limits allow."""
        assert self._limits is not None
        last, clamped = self._commanded, q.copy()
        for k, step in enumerate(np.diff(times, prepend=before)):
            clamped[k] = np.clip(q[k], last - self._limits * step, last + self._limits * step)
            last = clamped[k]
        changed = np.abs(clamped - q) > 1e-12
        return clamped, np.where(changed, np.clip(dq, -self._limits, self._limits), dq), np.where(changed, 0.0, ddq)

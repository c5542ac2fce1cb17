# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A simulated arm on a base that floats freely: MuJoCo moves both."""

import numpy as np

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import ModelError
from robotid_ros.model import RobotModel
from robotid_ros.simulation.mjcf import load_mujoco, mjcf_of
from robotid_ros.simulation.plant import Wall
from robotid_ros.simulation.sensors import PlantMotion


class FloatingPlant:
    """An arm without friction on a free base, without gravity; it begins at rest, with no momentum.

    The joints are led by computed torque, which knows that the base gives way:

        M(q) [dV_0; ddq_r + w^2 (q_r - q) + 2 w (dq_r - dq)] + c(q, V) = [0; tau]

    The upper six rows give dV_0, the others tau, with w = 2 pi bandwidth.

    Attributes
    ----------
    nominal : RobotModel
    rate : float
        [Hz]
    wall : Wall or None
        What one joint runs into.
    base_position, base_orientation : ndarray, shape (3,) and (4,)
        Of the base where the last run began: its origin [m] and its quaternion (w, x, y, z), in the inertial frame.
    base_twist : ndarray, shape (6,)
        [v; w] there: velocity of the base frame's origin and angular velocity, along the axes of the base
        [m/s, rad/s].

    Parameters
    ----------
    model : RobotModel
        The arm with its base and what it holds.
    rate : float
        Steps per second [Hz].
    bandwidth : float
        Of the position controller [Hz]; at most rate/15.

    Raises
    ------
    ModelError
        If the base has no mass, MuJoCo does not take the arm, or a number is out of its range.
    MissingDependencyError
        If MuJoCo is not installed.
    """

    def __init__(self, model: RobotModel, *, rate: float = 500.0, bandwidth: float = 10.0) -> None:
        if not 0.0 < bandwidth <= rate / 15.0:
            raise ModelError(
                f'bandwidth: expected a positive number up to rate/15 = {rate / 15.0:g} Hz, got {bandwidth:g}'
            )
        if not model.base_inertial[9] > 0.0:
            raise ModelError(f"the base '{model.base_name}' has no mass, and cannot float")
        self.nominal, self.rate = model, float(rate)
        self.wall: Wall | None = None
        self._mujoco = load_mujoco('simulate a free-floating robot')
        try:
            self._robot = self._mujoco.MjModel.from_xml_string(mjcf_of(model, time_step=1.0 / rate, floating=True))
        except ValueError as cause:
            if isinstance(cause, ModelError):
                raise
            raise ModelError(f'MuJoCo does not take the arm {model.name}: {" ".join(str(cause).split())}') from cause
        self._state = self._mujoco.MjData(self._robot)
        self._mass = np.empty((self._robot.nv, self._robot.nv))
        self._units, self._turn = np.eye(self._robot.nv), np.empty(9)
        self._frequency = 2.0 * np.pi * bandwidth
        self.reset(np.zeros(model.n))

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints, base to tip."""
        return self.nominal.joint_names

    def reset(self, q: Array) -> None:
        """Put the joints somewhere at rest, shape (n,) [rad or m], and the base to the origin of the inertial frame."""
        position = frozen_array(q, 'q', (self.nominal.n,), ModelError)
        self._mujoco.mj_resetData(self._robot, self._state)
        self._state.qpos[7:] = position
        self._remember_base()

    def run(self, q_ref: Array, dq_ref: Array, ddq_ref: Array) -> PlantMotion:
        """Return how the joints follow a reference over N steps, shape (N, n) each [rad, rad/s, rad/s^2; or m].

        Raises
        ------
        ModelError
            If the simulation diverges.
        """
        mujoco, robot, state, w = self._mujoco, self._robot, self._state, self._frequency
        position, velocity, acceleration, torque = (np.empty_like(q_ref, dtype=float) for _ in range(4))
        limit, mass, begin = self.nominal.limits.effort, self._mass, state.time
        self._remember_base()
        for k in range(len(q_ref)):
            q, dq = state.qpos[7:], state.qvel[6:]
            position[k], velocity[k] = q, dq
            wanted = ddq_ref[k] + w * w * (q_ref[k] - q) + 2.0 * w * (dq_ref[k] - dq)
            state.qfrc_applied[:] = 0.0
            mujoco.mj_forward(robot, state)
            for unit, row in zip(self._units, mass, strict=True):  # symmetric
                mujoco.mj_mulM(robot, state, row, unit)
            base = -np.linalg.solve(mass[:6, :6], mass[:6, 6:] @ wanted + state.qfrc_bias[:6])
            torque[k] = np.clip(mass[6:, :6] @ base + mass[6:, 6:] @ wanted + state.qfrc_bias[6:], -limit, limit)
            state.qfrc_applied[6:] = torque[k]
            if self.wall is not None:
                state.qfrc_applied[6 + self.wall.joint] += self.wall.torque(q, dq)
            mujoco.mj_step(robot, state)
            acceleration[k] = (state.qvel[6:] - velocity[k]) * self.rate
        if not np.isfinite(state.qvel).all() or state.time < begin + (len(q_ref) - 0.5) / self.rate:
            raise ModelError(
                f'the simulation of {self.nominal.name} diverged: raise the rate above {self.rate:g} Hz, '
                'or check the masses and inertias in the URDF'
            )
        return PlantMotion(
            position=position,
            velocity=velocity,
            acceleration=acceleration,
            torque=torque,
            motor_torque=torque,
            friction=np.zeros_like(torque),
        )

    def _remember_base(self) -> None:
        state = self._state
        self._mujoco.mju_quat2Mat(self._turn, state.qpos[3:7])
        self.base_position, self.base_orientation = state.qpos[:3].copy(), state.qpos[3:7].copy()
        self.base_twist = np.concatenate([self._turn.reshape(3, 3).T @ state.qvel[:3], state.qvel[3:6]])

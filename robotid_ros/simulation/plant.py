# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Simulated arms, on the ground or on a free base: MuJoCo moves them, a controller of positions leads them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import ModelError
from robotid_ros.model import RobotModel
from robotid_ros.simulation.arm_truth import ArmTruth, prior_friction
from robotid_ros.simulation.mjcf import load_mujoco, mjcf_of
from robotid_ros.simulation.sensors import PlantMotion


@dataclass(frozen=True, slots=True, kw_only=True)
class Wall:
    """What one joint cannot pass.

        tau = -(k (q - q_w) + d dq) beyond the wall, never pulling;  0 before it

    A k of 2e4 N m/rad is a table of 2e4 N/m at a reach of 1 m.
    """

    joint: int  # its index
    position: float  # q_w [rad or m]
    side: float  # +1: the wall is in the way of growing positions, -1: of falling ones
    stiffness: float = 2e4  # k [N m/rad or N/m]
    damping: float = 200.0  # d [N m s/rad or N s/m]

    def torque(self, q: Array, dq: Array) -> float:
        """Return the torque on the joint at positions and velocities of shape (n,) [N m or N]."""
        depth = self.side * (float(q[self.joint]) - self.position)
        if depth <= 0.0:
            return 0.0
        return -self.side * max(0.0, self.stiffness * depth + self.damping * self.side * float(dq[self.joint]))


# Below this velocity of the reference [rad/s or m/s] the controller's friction compensation fades out: it is zero at
# rest. At 1 mrad/s a reversal takes one or two steps; with a larger velocity, joints stick for longer.
_COMPENSATION_VELOCITY = 0.001


class _Simulated:
    """What moves an arm in MuJoCo and knows when it diverges."""

    def __init__(self, nominal: RobotModel, rate: float, bandwidth: float, purpose: str) -> None:
        if not 0.0 < bandwidth <= rate / 15.0:
            message = f'bandwidth: expected a positive number up to rate/15 = {rate / 15.0:g} Hz, got {bandwidth:g}'
            raise ModelError(message, name='bandwidth', expected=rate / 15.0, found=bandwidth)
        self.nominal, self.rate = nominal, float(rate)
        self._frequency = 2.0 * np.pi * bandwidth
        self.wall: Wall | None = None
        self._mujoco = load_mujoco(purpose)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints, base to tip."""
        return self.nominal.joint_names

    def _compiled(self, model: RobotModel, *, floating: bool = False) -> Any:
        try:
            text = mjcf_of(model, time_step=1.0 / self.rate, floating=floating)
            return self._mujoco.MjModel.from_xml_string(text)
        except ValueError as cause:
            if isinstance(cause, ModelError):
                raise
            raise ModelError(f'MuJoCo does not take the arm {model.name}: {" ".join(str(cause).split())}') from cause

    def _wanted(self, reference: tuple[Array, Array, Array], q: Array, dq: Array) -> Array:
        """Return the acceleration that leads the joints to a reference, each part of shape (n,) as q and dq are."""
        w, (q_ref, dq_ref, ddq_ref) = self._frequency, reference
        return np.asarray(ddq_ref + w * w * (q_ref - q) + 2.0 * w * (dq_ref - dq))

    def _require_finite(self, velocity: Array, passed: float, steps: int) -> None:
        # MuJoCo answers a state it cannot continue with a reset, its clock included.
        if not np.isfinite(velocity).all() or passed < (steps - 0.5) / self.rate:
            raise ModelError(
                f'the simulation of {self.nominal.name} diverged: raise the rate above {self.rate:g} Hz, '
                'or check the masses and inertias in the URDF'
            )


class Plant(_Simulated):
    """A simulated arm with friction, rotor inertia, torque noise and a position controller.

    Time goes in steps of h = 1/rate. MuJoCo's semi-implicit Euler integrator is a leapfrog: positions stand at the
    instants t_k, velocities half a step before. Velocity-dependent forces are evaluated at the velocity at the instant
    itself, dq_k = dq_{k-1/2} + h/2 ddq_k (viscous friction implicitly, Coriolis torques in a second pass, an arctangent
    with what it holds of both), which makes the scheme second-order accurate and gives positions whose second
    difference is exactly the ``ddq_k`` that belongs to ``tau_k``: the recorded motion carries no half-step delay for an
    identification to mistake for inertia or damping.

    Dry friction is MuJoCo's friction-loss constraint, solved implicitly with the accelerations and not a force computed
    from the velocity before the step: a force would have to be smoothed over a band of velocities, or chatter, and
    could not hold a joint at rest. As long as a joint slips, the constraint exerts the stated level exactly; one that
    sticks takes what it needs. Viscous friction, the arctangent and offsets, which are smooth, are generalised forces.

    The controller is computed torque with the *described* dynamics, as drives have it:

        tau = ID_nominal(q_r, dq_r, ddq_r + w^2 (q_r - q) + 2 w (dq_r - dq)) + friction_nominal(dq_r),

    limited to the effort limits, with w = 2 pi bandwidth.

    Attributes
    ----------
    wall : Wall or None
        What one joint runs into.

    Parameters
    ----------
    truth : ArmTruth
        What moves.
    nominal : RobotModel
        What the controller believes.
    rate : float
        Steps per second [Hz].
    bandwidth : float
        Of the position controller [Hz]; at most rate/15.
    torque_noise : ndarray, shape (n,), optional
        Standard deviation of a white disturbance at the joints, which the motors do not see
        [N m or N]; zero by default.
    rng : numpy.random.Generator, optional
        Needed for the noise.

    Raises
    ------
    ModelError
        If the arms differ in their joints, or a number is out of its range.
    MissingDependencyError
        If MuJoCo is not installed.
    """

    def __init__(
        self,
        truth: ArmTruth,
        nominal: RobotModel,
        *,
        rate: float = 1000.0,
        bandwidth: float = 30.0,
        torque_noise: Array | None = None,
        rng: np.random.Generator | None = None,
    ) -> None:
        if truth.model.joint_names != nominal.joint_names:
            message = (
                f'the true arm has the joints {", ".join(truth.model.joint_names)}, '
                f'the described one: {", ".join(nominal.joint_names)}'
            )
            raise ModelError(message, expected=nominal.joint_names, found=truth.model.joint_names)
        if not 100.0 <= rate <= 20000.0:
            message = f'rate: expected 100 to 20000 Hz, got {rate:g}'
            raise ModelError(message, name='rate', expected=(100.0, 20000.0), found=rate)
        super().__init__(nominal, rate, bandwidth, 'simulate an arm')
        n = nominal.n
        noise = np.zeros(n) if torque_noise is None else torque_noise
        self.torque_noise = frozen_array(noise, 'torque_noise', (n,), ModelError)
        if self.torque_noise.any() and rng is None:
            raise ModelError('torque_noise: expected a random generator with it', name='rng')
        self.truth = truth
        self._rng = rng
        # dq_k holds half of the step's own acceleration; for the viscous torque F_v dq_k that half is
        # an inertia of F_v h/2, so that light joints with much friction stay stable.
        friction = truth.friction
        implicit = friction.viscous / (2.0 * rate)
        heavier = truth.model.with_inertial(truth.model.inertial, rotor_inertia=truth.model.rotor_inertia + implicit)
        self._stribeck = bool(friction.breakaway.any())
        self._arctan = bool((friction.arctan_gain * friction.arctan_rate).any())
        self._arm = self._compiled(heavier)
        self._state = self._mujoco.MjData(self._arm)
        self._believed_arm = self._compiled(nominal)
        self._believed = self._mujoco.MjData(self._believed_arm)
        self._compensation = prior_friction(nominal)
        self._half_velocity = np.zeros(n)
        self._acceleration = np.zeros(n)
        self.reset(np.zeros(n))

    def reset(self, q: Array, dq: Array | None = None, ddq: Array | None = None) -> None:
        """Put the arm somewhere, at rest or in motion; each of shape (n,) [rad, rad/s, rad/s^2; or m]."""
        n = self.nominal.n
        zero = np.zeros(n)
        position = frozen_array(q, 'q', (n,), ModelError)
        velocity = frozen_array(zero if dq is None else dq, 'dq', (n,), ModelError)
        acceleration = frozen_array(zero if ddq is None else ddq, 'ddq', (n,), ModelError)
        self._mujoco.mj_resetData(self._arm, self._state)
        self._state.qpos[:] = position
        self._acceleration[:] = acceleration
        self._half_velocity[:] = velocity - acceleration / (2.0 * self.rate)

    def run(self, q_ref: Array, dq_ref: Array, ddq_ref: Array) -> PlantMotion:
        """Return how the arm follows a reference over N steps.

        The reference is given at the instants of the steps, shape (N, n) each [rad, rad/s, rad/s^2; or m].

        Raises
        ------
        ModelError
            If the simulation diverges.
        """
        mujoco, arm, state = self._mujoco, self._believed_arm, self._believed
        motor_torque = np.empty_like(q_ref, dtype=float)
        compensation = self._compensation.coulomb * np.tanh(dq_ref / _COMPENSATION_VELOCITY)
        compensation += self._compensation.viscous * dq_ref

        def servo(k: int, q: Array, dq: Array) -> Array:
            wanted = self._wanted((q_ref[k], dq_ref[k], ddq_ref[k]), q, dq)
            torque: Array = motor_torque[k]
            state.qpos[:], state.qvel[:], state.qacc[:] = q_ref[k], dq_ref[k], wanted
            mujoco.mj_kinematics(arm, state)
            mujoco.mj_comPos(arm, state)
            mujoco.mj_comVel(arm, state)
            mujoco.mj_rne(arm, state, 1, torque)
            torque += self.nominal.rotor_inertia * wanted
            torque += compensation[k]
            np.maximum(torque, -self.nominal.limits.effort, out=torque)
            np.minimum(torque, self.nominal.limits.effort, out=torque)
            return torque

        return self._advance(motor_torque, servo)

    def run_torque(self, motor_torque: Array) -> PlantMotion:
        """Return the motion under motor torques without any controller, shape (N, n) [N m or N].

        Raises
        ------
        ModelError
            If the simulation diverges.
        """
        applied = np.array(motor_torque, dtype=float)
        return self._advance(applied, lambda k, q, dq: applied[k])

    def _advance(self, motor_torque: Array, controller: Any) -> PlantMotion:
        """Step through the rows of ``motor_torque``, which the controller fills as it goes."""
        mujoco, arm, state, friction = self._mujoco, self._arm, self._state, self.truth.friction
        steps, n = motor_torque.shape
        half_step = 0.5 / self.rate
        position, velocity, acceleration, slip = (np.empty((steps, n)) for _ in range(4))
        disturbance = np.zeros((steps, n))
        slope, beyond = friction.viscous, np.zeros(n)
        if self._rng is not None and self.torque_noise.any():
            disturbance = self.torque_noise * self._rng.standard_normal((steps, n))
        arm.dof_frictionloss[:] = friction.coulomb + friction.breakaway
        half_velocity, last_acceleration = self._half_velocity, self._acceleration
        begin = state.time
        for k in range(steps):
            dq = half_velocity + half_step * last_acceleration
            if self._arctan:
                slope = friction.viscous + friction.arctan_slope(dq)
                arm.dof_armature[:] = self.truth.model.rotor_inertia + half_step * slope
                beyond = friction.smooth_torque(dq) - slope * dq
            state.qvel[:] = dq
            mujoco.mj_step1(arm, state)
            position[k] = state.qpos
            applied = controller(k, position[k], dq) + disturbance[k] - friction.offset
            if self.wall is not None:
                applied[self.wall.joint] += self.wall.torque(position[k], dq)
            applied -= slope * half_velocity
            state.qfrc_applied[:] = applied - beyond
            self._solve(dq)
            dq = half_velocity + half_step * state.qacc
            state.qvel[:] = dq
            mujoco.mj_fwdVelocity(arm, state)
            if self._arctan:
                beyond = friction.smooth_torque(dq) - slope * dq
                state.qfrc_applied[:] = applied - beyond
            self._solve(dq)
            mujoco.mj_Euler(arm, state)
            last_acceleration[:] = state.qacc
            acceleration[k] = last_acceleration
            velocity[k] = half_velocity + half_step * last_acceleration
            slip[k] = slope * velocity[k] + beyond + friction.offset - state.qfrc_constraint
            half_velocity[:] = state.qvel
        self._require_finite(half_velocity, state.time - begin, steps)
        return PlantMotion(
            position=position,
            velocity=velocity,
            acceleration=acceleration,
            torque=motor_torque + disturbance,
            motor_torque=motor_torque,
            friction=slip,
        )

    def _solve(self, dq: Array) -> None:
        """Find the accelerations, with the velocity-dependent forces as they stand and dry friction of ``dq``."""
        mujoco, arm, state, friction = self._mujoco, self._arm, self._state, self.truth.friction
        if self._stribeck:
            state.efc_frictionloss[:] = friction.dry_level(dq)[arm.dof_frictionloss > 0.0]
        # Dry friction stops a joint where the step itself would end at rest: it counts from the
        # half-step velocity that the integrator holds.
        state.qvel[:] = self._half_velocity
        mujoco.mj_referenceConstraint(arm, state)
        mujoco.mj_fwdAcceleration(arm, state)
        mujoco.mj_fwdConstraint(arm, state)


class FloatingPlant(_Simulated):
    """An arm without friction on a free base, without gravity; it begins at rest, with no momentum.

    The joints are led by computed torque, which knows that the base gives way:

        M(q) [dV_0; ddq_r + w^2 (q_r - q) + 2 w (dq_r - dq)] + c(q, V) = [0; tau]

    The upper six rows give dV_0, the others tau, with w = 2 pi bandwidth. Rate and bandwidth [Hz] and the wall are as
    for :class:`Plant`; the model has its base and what it holds.

    Where the last run began, ``base_position``, shape (3,), is the origin of the base [m] and ``base_orientation``,
    shape (4,), its quaternion (w, x, y, z), in the inertial frame; ``base_twist``, shape (6,), is [v; w], the velocity
    of the base frame's origin and the angular velocity, along the axes of the base [m/s, rad/s].

    Raises a ModelError if the base has no mass, MuJoCo does not take the arm, or a number is out of its range. Raises a
    MissingDependencyError if MuJoCo is not installed.
    """

    def __init__(self, model: RobotModel, *, rate: float = 500.0, bandwidth: float = 10.0) -> None:
        super().__init__(model, rate, bandwidth, 'simulate a free-floating robot')
        if not model.base_inertial[9] > 0.0:
            raise ModelError(f"the base '{model.base_name}' has no mass, and cannot float")
        self._robot = self._compiled(model, floating=True)
        self._state = self._mujoco.MjData(self._robot)
        self._mass = np.empty((self._robot.nv, self._robot.nv))
        self._units, self._turn = np.eye(self._robot.nv), np.empty(9)
        self.reset(np.zeros(model.n))

    def reset(self, q: Array) -> None:
        """Put the joints somewhere at rest, shape (n,) [rad or m], and the base to the origin of the inertial frame."""
        position = frozen_array(q, 'q', (self.nominal.n,), ModelError)
        self._mujoco.mj_resetData(self._robot, self._state)
        self._state.qpos[7:] = position
        self._remember_base()

    def run(self, q_ref: Array, dq_ref: Array, ddq_ref: Array) -> PlantMotion:
        """Return how the joints follow a reference over N steps, shape (N, n) each [rad, rad/s, rad/s^2; or m].

        Raises a ModelError if the simulation diverges.
        """
        mujoco, robot, state = self._mujoco, self._robot, self._state
        position, velocity, acceleration, torque = (np.empty_like(q_ref, dtype=float) for _ in range(4))
        limit, mass, begin = self.nominal.limits.effort, self._mass, state.time
        self._remember_base()
        for k in range(len(q_ref)):
            q, dq = state.qpos[7:], state.qvel[6:]
            position[k], velocity[k] = q, dq
            wanted = self._wanted((q_ref[k], dq_ref[k], ddq_ref[k]), q, dq)
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
        self._require_finite(state.qvel, state.time - begin, len(q_ref))
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

# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The identified arm: what simulators can hold of it, what that loses, and its whole torque as formulas for code."""

from dataclasses import dataclass, replace
from operator import methodcaller
from types import SimpleNamespace

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics import MinimalModel, inverse_dynamics, minimal_model
from robotid_ros.dynamics.codegen.expression import FUNCTIONS
from robotid_ros.dynamics.codegen.minimal_model import JointFriction
from robotid_ros.dynamics.codegen.source import as_comment
from robotid_ros.errors import IdentificationError, ModelError
from robotid_ros.identification import IdentificationResult, TorquePredictor
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import split_inertial_parameters
from robotid_ros.progress import Progress
from robotid_ros.simulation.servo import Servo

_STATES = 2000
_SPEED = 2.0  # a joint without a velocity limit is taken to reach this [rad/s or m/s]
_PACE = np.pi  # sinusoidal motion of 0.5 Hz: the acceleration that goes with a velocity


def identified_arm(model: RobotModel, result: IdentificationResult) -> RobotModel:
    """Return the arm with the identified inertial parameters, rotor inertias, and the closest plain friction.

    With coupled drives, each joint gets the rotor inertia that it turns when it moves alone.

    Negative rotor inertias and friction become zero, because simulators refuse them. Raises a RobotIdError if the
    result belongs to another arm, or the arm's joints are coupled: in simulators, joints are independent.
    """
    if not np.array_equal(model.coupling, np.eye(model.n)):
        raise ModelError(
            'the joints of this arm are coupled, which no simulator format can describe; export to c, cpp or python'
        )
    TorquePredictor(model, result)  # it refuses the result of another arm
    plain = np.zeros((model.n, 2)) if result.plain_friction is None else result.plain_friction
    drives = np.eye(model.n) if result.drives is None else result.drives
    return model.with_inertial(
        result.inertial,
        gravity=result.gravity,
        rotor_inertia=drives.T**2 @ np.maximum(result.rotor_inertia, 0.0),  # what each joint alone has to turn
        friction=np.maximum(plain[:, 0], 0.0),
        damping=np.maximum(plain[:, 1], 0.0),
    )


def without_friction(result: IdentificationResult, *kinds: str) -> IdentificationResult:
    """Return the result with the friction parameters whose names begin so at zero."""
    kept = [not name.startswith(kinds) for name in result.friction_names]
    return replace(result, friction_values=np.where(kept, result.friction_values, 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What a format leaves out of the identified torque, in percent of that torque's root mean square."""

    total: float
    rotor_inertia: float  # that the format cannot hold
    friction: float  # beyond Coulomb and viscous
    physical: float  # of base parameters changed so that they belong to real bodies

    def __str__(self) -> str:
        parts = {
            'rotor inertia': self.rotor_inertia,
            'friction beyond Coulomb and viscous': self.friction,
            'parameters made physically consistent': self.physical,
        }
        said = ', '.join(f'{name} {value:.2g} %' for name, value in parts.items() if value >= 0.005)
        return f'the torque differs from the identified one by {self.total:.2g} %' + (f' ({said})' if said else '')


def loss_of(model: RobotModel, result: IdentificationResult, *, rotor_inertia: bool) -> Loss:
    """Return what a simulator's description loses, over random states within the arm's limits.

    Speeds go up to half the velocity limits, accelerations up to those of a sine of 0.5 Hz at such a speed.
    ``rotor_inertia`` tells whether the format has rotor inertias.
    """
    arm, predictor = identified_arm(model, result), TorquePredictor(model, result)
    rng, n = np.random.default_rng(0), model.n
    lower, upper = (np.clip(limit, -np.pi, np.pi) for limit in (model.limits.lower, model.limits.upper))
    speed = 0.5 * np.where(np.isfinite(model.limits.velocity), model.limits.velocity, _SPEED)
    q = rng.uniform(lower, upper, (_STATES, n))
    dq, ddq = (rng.uniform(-size, size, (_STATES, n)) for size in (speed, _PACE * speed))
    whole, rigid = predictor.torque(q, dq, ddq), predictor.rigid_torque(q, dq, ddq)
    _, _, turned = predictor.at_motors(q, dq, ddq)
    rotors = predictor.at_joints(np.maximum(result.rotor_inertia, 0.0) * turned)
    said = inverse_dynamics(arm, q, dq, ddq, rotor_inertia=rotor_inertia, friction=True)

    def part(difference: Array) -> float:
        return float(100.0 * np.linalg.norm(difference) / np.linalg.norm(whole))

    return Loss(
        total=part(whole - said),
        rotor_inertia=part(rotors - rotor_inertia * arm.rotor_inertia * ddq),
        friction=part(whole - rigid - arm.damping * dq - arm.friction * np.sign(dq)),
        physical=part(rigid - rotors - inverse_dynamics(arm, q, dq, ddq, rotor_inertia=False)),
    )


def require_accepted(arm: RobotModel, servo: Servo | None = None) -> None:
    """Refuse what simulators refuse: a link without mass, and a servo that drives away from its target.

    Raises a ModelError naming the first.
    """
    mass, _, _ = split_inertial_parameters(arm.inertial)
    if (mass <= 0.0).any():
        name = arm.link_names[int(np.argmax(mass <= 0.0))]
        raise ModelError(f"link '{name}' has no mass, which simulators refuse; give it one in the description")
    if servo is not None:
        for name, stiffness, damping in zip(arm.joint_names, servo.stiffness, servo.damping, strict=True):
            if min(stiffness, damping) < 0.0:
                raise ModelError(
                    f"the servo of joint '{name}' has stiffness {stiffness:.3g} and damping {damping:.3g}; expected "
                    'neither below zero: replay a command that moves the joint more'
                )


# A column that the columns before it leave less of than this is round-off: generated torques are to equal those of
# TorquePredictor to 1e-12.
_TOLERANCE = 1e-12

# numpy's functions of one argument, of symbols
_SYMBOLIC = SimpleNamespace(**{name: methodcaller('function', op) for op, (name, *_) in FUNCTIONS.items()})


def identified_model(
    model: RobotModel, result: IdentificationResult, *, snap: float = 1e-12, progress: Progress | None = None
) -> MinimalModel:
    """Return the formulas of an identified arm, with the identified parameters for its own.

    tau = Y_b(q, dq, ddq) beta + tau_f(q, dq, load = Y_b beta): what :class:`TorquePredictor` returns,
    to round-off, whatever the friction model.

    ``snap``: sines and relative lengths taken as zero; see :func:`robotid_ros.dynamics.minimal_model`. Raises a
    RobotIdError if the result belongs to another arm.
    """
    predictor = TorquePredictor(model, result)  # refuses the result of another arm
    friction = result.friction
    losses = JointFriction(
        name=result.friction.name,
        parameters=tuple(
            tuple(
                (f'{name} of {as_comment(joint)}', unit)
                for name, unit in zip(result.friction_names, units, strict=True)
            )
            for joint, units in zip(result.joint_names, result.friction_units, strict=True)
        ),
        torque=lambda joint, velocity, parameters, load, position: friction.of_joint(joint).expression(
            velocity, parameters, load, position, functions=_SYMBOLIC
        ),
    )
    minimal = minimal_model(
        predictor.model,
        rotor_inertia=result.has_rotor_inertia,
        friction=losses if result.friction_names else None,
        snap=snap,
        tolerance=max(_TOLERANCE, snap),
        progress=progress,
    )
    standard = np.zeros(len(minimal.base.columns))
    standard[predictor.base.independent] = result.base_values
    return minimal.with_parameters(np.concatenate([minimal.base.map @ standard, result.friction_values.ravel()]))


def described_model(model: RobotModel, *, snap: float = 1e-12, progress: Progress | None = None) -> MinimalModel:
    """Return the formulas of an arm with the parameters of its description, viscous and Coulomb friction included."""
    tolerance = max(1e-9, snap)
    return minimal_model(
        model, rotor_inertia=True, viscous=True, coulomb=True, snap=snap, tolerance=tolerance, progress=progress
    )


def require_usable(result: IdentificationResult, *, force: bool) -> None:
    """Refuse a result that its identification calls unusable.

    Raises an IdentificationError with the result's reason.
    """
    if not result.usable and not force:
        raise IdentificationError(f'the result is not usable: {result.reason}; --force exports it all the same')

# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""An identified model put to use: its torques, a URDF with its numbers, its bodies as the description of an arm."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.dataset import Dataset
from robotid_ros.dynamics import DATA_TOLERANCE, base_parameters
from robotid_ros.errors import IdentificationError
from robotid_ros.identification.result import IdentificationResult
from robotid_ros.identification.samples import Samples, evenly_weighted, listed
from robotid_ros.identification.setup import SetUp
from robotid_ros.identification.signal_choice import like_training
from robotid_ros.identification.torque_fit import predicted_torque
from robotid_ros.identification.verdict import Metrics, torque_metrics
from robotid_ros.model.inertia import physical_violation, transform_inertial_parameters
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.model.urdf_edit import edited_urdf
from robotid_ros.reading import refusing

_LAST_DIGIT = 1.1e-3  # of four, relative to the least number with them


class TorquePredictor:
    """Inverse dynamics of an identified arm: rigid body and friction.

    Parameters
    ----------
    model : RobotModel
        Kinematics of the arm; its inertial parameters do not enter.
    result : IdentificationResult

    Attributes
    ----------
    setup : SetUp
        From recorded coordinates to those of the description, in which the model is.

    Raises
    ------
    IdentificationError
        If the result belongs to another arm.
    """

    def __init__(self, model: RobotModel, result: IdentificationResult) -> None:
        if model.joint_names != result.joint_names:
            raise IdentificationError(
                f'the result is for the joints {", ".join(result.joint_names)}; '
                f'the robot has {", ".join(model.joint_names)}'
            )
        self.setup = result.setup or SetUp.as_described(model)
        model = replace(model, gravity=result.gravity)  # as the arm stands, which the description may not say
        self.model = model if result.drives is None else replace(model, drives=result.drives)
        self.result = result
        driven = self.model.at_motors()
        self.base = base_parameters(driven, rotor_inertia=result.has_rotor_inertia, tolerance=DATA_TOLERANCE)
        if not _same_but_for_rounding(self.base.names, result.base_names):
            mine, its = set(self.base.names), set(result.base_names)
            first = next((f"'{name}'" for name in result.base_names if name not in mine), 'none')
            other = next((f"'{name}'" for name in self.base.names if name not in its), 'none')
            raise IdentificationError(
                f'the result belongs to another arm than {model.name}, which has no base parameter {first}, but '
                f'has {other}; give the URDF it was identified with'
            )
        self.friction = result.friction

    def rigid_torque(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Return the torque without friction, shape (N, n) [N m]."""
        return self.at_joints(self._rigid(*self.at_motors(q, dq, ddq)))

    def at_motors(self, *signals: Array) -> list[Array]:
        """Return positions, velocities or accelerations of the motors, scaled to the joints, shape (N, n) each."""
        return [signal @ self.model.drives.T for signal in signals] if self.model.has_coupled_drives else [*signals]

    def at_joints(self, torque: Array) -> Array:
        """Return the torque of the joints from that of the motors, shape (N, n) [N m]."""
        return np.asarray(torque @ self.model.drives) if self.model.has_coupled_drives else torque

    def _rigid(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Return the torque without friction at the motors."""
        return np.asarray(self.base.regressor(q, dq, ddq) @ self.result.base_values)

    def gravity_torque(self, q: Array) -> Array:
        """Return the torque that holds the arm at rest, shape (N, n) [N m]: gravity compensation."""
        return self.rigid_torque(q, np.zeros_like(q), np.zeros_like(q))

    def friction_torque(self, dq: Array, load: Array | None = None, position: Array | None = None) -> Array:
        """Return the friction at some velocities and loads, shape (N, n) [N m]: friction feed-forward.

        Without positions there is no ripple and no spring in it.
        """
        load = np.zeros_like(dq) if load is None else load
        if self.model.has_coupled_drives:
            load = load @ np.linalg.inv(self.model.drives)
        at = self.at_motors(*([dq] if position is None else [dq, position]))
        return self.at_joints(self.motor_friction(at[0], load, *at[1:]))

    def motor_friction(self, dq: Array, load: Array, position: Array | None = None) -> Array:
        """Return the friction of each motor, scaled to its joint, at its own velocities and loads, shape (N, n) [N m].

        That of :meth:`friction_torque`, unless drives are coupled.
        """
        if position is None:
            return self.friction.torque_of_motion(dq, self.result.friction_values, load)
        return self.friction.torque(dq, self.result.friction_values, load, position)

    def torque(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Return the torque at the joints, shape (N, n) [N m]."""
        q, dq, ddq = self.at_motors(q, dq, ddq)
        load = self._rigid(q, dq, ddq)
        return self.at_joints(load + self.friction.torque(dq, self.result.friction_values, load, q))

    def measured_torque(self, datasets: Dataset | Sequence[Dataset]) -> Array:
        """Return the predicted recorded torque along datasets: with the signal's bandwidth.

        Returns
        -------
        ndarray, shape (N, n)
            Joints in the model's order, datasets one after the other [N m].
        """
        return self.at_joints(self._predicted(self._samples(datasets)))

    def _samples(self, datasets: Dataset | Sequence[Dataset]) -> Samples:
        return evenly_weighted(listed(datasets), self.model, self.result.torque_bandwidth)

    def in_arm_coordinates(self, datasets: Dataset | Sequence[Dataset]) -> list[Dataset]:
        """Return recordings in the coordinates of the description, as the identification found them to differ."""
        return [self.setup.dataset(dataset, self.model.joint_names) for dataset in listed(datasets)]

    def prepared(self, datasets: Dataset | Sequence[Dataset]) -> list[Dataset]:
        """Return recordings prepared like those of the training: same coordinates, filter and delay of the torque."""
        return like_training(self.in_arm_coordinates(datasets), self.result.cutoff, self.result.delay)

    def _predicted(self, samples: Samples) -> Array:
        result = self.result
        return predicted_torque(self.base, self.friction, result.base_values, result.friction_values, samples)

    def metrics(self, datasets: Dataset | Sequence[Dataset]) -> Metrics:
        """Return the errors along datasets, against the torque as recorded, on every sample."""
        samples = self._samples(datasets)
        both = (self.at_joints(samples.measured), self.at_joints(self._predicted(samples)))
        return torque_metrics(self.model.joint_names, *both)


def described_by(model: RobotModel, path: str | Path) -> RobotModel:
    """Return an arm whose description has the bodies and rotors of a card or result, as a prior.

    Raises
    ------
    IdentificationError
        If the file is neither, is not usable, or belongs to another arm.
    """
    found = IdentificationResult.load(path)
    with refusing(f"prior '{path}'", IdentificationError):
        if not found.usable:
            raise IdentificationError(f'{path}: not usable as a prior: {found.reason}')
        if found.joint_names != model.joint_names:
            raise IdentificationError(
                f'{path}: expected the prior of an arm with the joints {", ".join(model.joint_names)}, got '
                f'{", ".join(found.joint_names)}'
            )
        try:
            TorquePredictor(model, found)
        except IdentificationError as cause:
            raise IdentificationError(f'{path}: {cause}') from cause
    return model.with_inertial(found.inertial, rotor_inertia=found.rotor_inertia)


def _same_but_for_rounding(mine: tuple[str, ...], its: tuple[str, ...]) -> bool:
    """Return whether names of base parameters say the same; the last of four digits of a factor may be another."""
    number = re.compile(r'(\d+(?:\.\d+)?(?:e[+-]?\d+)?)')
    parts = [number.split('\n'.join(names)) for names in (mine, its)]
    if parts[0][::2] != parts[1][::2]:
        return False
    factors = np.array([each[1::2] for each in parts], dtype=float)
    return np.allclose(*factors, rtol=_LAST_DIGIT, atol=0.0)


def validate(result: IdentificationResult, model: RobotModel, datasets: Dataset | Sequence[Dataset]) -> Metrics:
    """Return the errors of an identified model on datasets, against the torque as recorded.

    The datasets go through the filter of the training, where they still can, and the delay of its torque is taken out
    of them too. They are taken in the set-up that the training showed.

    Raises
    ------
    IdentificationError
        If the result belongs to another arm, or a joint is not in a dataset.
    """
    predictor = TorquePredictor(model, result)
    return predictor.metrics(predictor.prepared(datasets))


def link_inertials(model: RobotModel, inertial: Array) -> dict[str, Array]:
    """Return identified parameters of the moving bodies, shape (n, 10), as those of the links that change.

    A moving link and what is fixed to it form one body. What is attached keeps its described
    parameters and the main link gets the rest, where that rest is a real body; otherwise the main
    link gets everything and the attached links become massless.
    """
    result: dict[str, Array] = {}
    for k, link in enumerate(model.link_names):
        attached = model.attached[k] if model.attached else ()
        lumped = [
            transform_inertial_parameters(part.inertial, part.placement[:3, :3], part.placement[:3, 3])
            for part in attached
            if part.name != link
        ]
        rest = inertial[k] - np.sum(lumped, axis=0) if lumped else inertial[k]
        if rest[9] > 0.0 and physical_violation(rest) is None:
            result[link] = rest
            continue
        result[link] = inertial[k]
        for part in attached:
            if part.name != link and np.any(part.inertial != 0.0):
                result[part.name] = np.zeros(10)
    return result


def calibrated_urdf(model: RobotModel, result: IdentificationResult) -> str:
    """Return the URDF the model came from with identified inertial parameters and joint friction.

    Everything else, comments included, stays as it is. ``joint/dynamics`` gets the viscous and
    Coulomb friction that are closest to the friction model along the training motion.

    Raises
    ------
    IdentificationError
        If the model did not come from a URDF.
    """
    if model.source is None:
        raise IdentificationError('a calibrated URDF needs a robot that was read from a URDF')
    plain = result.plain_friction
    known = {} if plain is None else dict(zip(result.joint_names, plain.tolist(), strict=True))
    dynamics = {joint: (viscous, coulomb) for joint, (coulomb, viscous) in known.items()}
    return edited_urdf(model.source, inertials=link_inertials(model, result.inertial), dynamics=dynamics)

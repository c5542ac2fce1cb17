# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What a report of an identification is about: model, result, and the runs it is judged by."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robotid_ros.arrays import Array, BoolArray
from robotid_ros.data.dataset import Dataset, concatenate
from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.identification.predictor import TorquePredictor
from robotid_ros.identification.result import IdentificationResult
from robotid_ros.identification.verdict import Metrics, torque_metrics
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.report.wording import units_of

_RIPPLE = ('ripple_sin', 'ripple_cos')
_ROUNDING = 1e-12  # of the largest parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A dataset in the model's joint order, with what the identified model predicts for it."""

    title: str
    dataset: Dataset
    predicted: Array
    friction: Array  # the part of it
    described: Array  # by the robot description, with or without its friction, before anything was identified
    joint_types: tuple[str, ...]

    @property
    def residual(self) -> Array:
        """What the model leaves of the measured torque, shape (N, n) [N m or N]."""
        return np.asarray(self.dataset.tau - self.predicted)

    @property
    def joints(self) -> Iterator[tuple[int, str, tuple[str, str, str]]]:
        """Number and name of each joint, and its units of torque, speed and position."""
        for j, joint in enumerate(self.dataset.joint_names):
            yield j, joint, units_of(self.joint_types[j])


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a report is about."""

    model: RobotModel
    result: IdentificationResult
    predictor: TorquePredictor
    training: Run
    unseen: Run | None
    true_base: Array | None
    true_friction: Callable[[Array, Array], Array] | None
    consistent_error: float  # of the physically consistent parameters on what is judged, all joints [%]

    @property
    def judged(self) -> Run:
        """The validation run where there is one, else the training run."""
        return self.unseen or self.training

    @property
    def metrics(self) -> Metrics:
        """Errors on the judged run."""
        run = self.judged
        known = self.result.metrics.get(run.title.lower())
        return known or torque_metrics(run.dataset.joint_names, run.dataset.tau, run.predicted)

    @property
    def noise(self) -> Array | None:
        """Standard deviation of the measured torque it is judged by, shape (n,), where repetitions tell it."""
        return self.judged.dataset.noise_std

    @property
    def before(self) -> Metrics:
        """Errors of the robot description on the judged run."""
        run = self.judged
        return torque_metrics(run.dataset.joint_names, run.dataset.tau, run.described)

    @property
    def prior(self) -> Array:
        """Base parameters of the robot description, shape (b,); a sum that is zero but for rounding is zero."""
        values = np.array(self.predictor.base.values)
        values[np.abs(values) < _ROUNDING * np.abs(values).max(initial=0.0)] = 0.0
        return values

    def torque_unit(self, joint: int) -> str:
        """Return the unit of a joint's torque."""
        return units_of(self.result.joint_types[joint])[0]


def predicted_run(title: str, datasets: Dataset | Sequence[Dataset], predictor: TorquePredictor) -> Run:
    """Return recordings as one, with columns in the model's order, and what the model predicts for them."""
    listed = [datasets] if isinstance(datasets, Dataset) else list(datasets)
    predicted = predictor.measured_torque(listed)  # first, for it refuses data of other joints
    ordered = concatenate([dataset.of_joints(predictor.model.joint_names) for dataset in listed])
    load = predictor.rigid_torque(ordered.q, ordered.dq, ordered.ddq)
    # A simulator's effort may hold no friction, whatever its description says: the nearer of both is what was known.
    rigid = inverse_dynamics(predictor.model, ordered.q, ordered.dq, ordered.ddq)
    whole = inverse_dynamics(predictor.model, ordered.q, ordered.dq, ordered.ddq, friction=True)
    nearer = min((whole, rigid), key=lambda torque: float(np.sum((ordered.tau - torque) ** 2)))
    return Run(
        title=title,
        dataset=ordered,
        predicted=predicted,
        friction=predictor.friction_torque(ordered.dq, load),
        described=nearer,
        joint_types=predictor.model.joint_types,
    )


def velocity_steps() -> Array:
    """Return 161 parts of the largest speed, -1 to 1, dense around zero, where friction bends."""
    return np.asarray(np.sinh(np.linspace(-4.0, 4.0, 161)) / np.sinh(4.0))


def judged(result: IdentificationResult) -> tuple[str, Metrics]:
    """Return on what data a result is judged, 'validation' where there were some, else 'training', and its errors."""
    on = 'validation' if 'validation' in result.metrics else 'training'
    return on, result.metrics[on]


def friction_used(result: IdentificationResult) -> BoolArray:
    """Return which friction parameters exist, shape (n, f): ripple and spring only at the joints that have them."""
    used = np.ones(result.friction_values.shape, dtype=bool)
    for k, name in enumerate(result.friction_names):
        if name in _RIPPLE and result.friction.ripple_frequency is not None:
            used[:, k] = result.friction.ripple_frequency != 0.0
        elif name == 'stiffness':
            used[:, k] = result.friction_values[:, k] != 0.0
    return used


def parameters_of(result: IdentificationResult) -> dict[str, tuple[float, float, str]]:
    """Return value, standard deviation and unit of every parameter by its name.

    Base parameters come first, then the friction parameters that exist, as 'viscous elbow'.
    """
    base = zip(result.base_values.tolist(), result.base_std.tolist(), result.base_units, strict=True)
    found = dict(zip(result.base_names, base, strict=True))
    for j, k in np.argwhere(friction_used(result)):
        name = f'{result.friction_names[k].replace("_", " ")} {result.joint_names[j]}'
        value, std = float(result.friction_values[j, k]), float(result.friction_std[j, k])
        found[name] = value, std, result.friction_units[j][k]
    return found


def consistent_error(predictor: TorquePredictor, run: Run) -> float:
    """Return the relative error of the physically consistent parameters on a run, all joints [%]."""
    result = predictor.result
    standard = result.inertial.ravel()
    if result.has_rotor_inertia:
        standard = np.concatenate([standard, result.rotor_inertia])
    consistent = replace(result, base_values=predictor.base.map @ standard)
    predicted = TorquePredictor(predictor.model, consistent).measured_torque(run.dataset)
    return torque_metrics(run.dataset.joint_names, run.dataset.tau, predicted).relative_error_total

# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What a report of an identification is about: model, result, and the runs it is judged by."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.dataset import Dataset
from robotid_ros.identification.metrics import Metrics, torque_metrics
from robotid_ros.identification.predictor import TorquePredictor
from robotid_ros.identification.result import IdentificationResult
from robotid_ros.identification.samples import joint_columns
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.report.torque import units_of

__all__ = ['Run', 'Subject', 'consistent_error', 'predicted_run']


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A dataset in the model's joint order, with what the identified model predicts for it."""

    title: str
    dataset: Dataset
    predicted: Array
    friction: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a report is about."""

    model: RobotModel
    result: IdentificationResult
    predictor: TorquePredictor
    training: Run
    unseen: Run | None
    true_base: Array | None
    true_friction: Callable[[Array], Array] | None
    consistent_error: float  # of the physically consistent parameters on what is judged, all joints [%]

    @property
    def judged(self) -> Run:
        """What tells most about new motions."""
        return self.unseen or self.training

    @property
    def metrics(self) -> Metrics:
        """The errors on it."""
        run = self.judged
        known = self.result.metrics.get(run.title.lower())
        return known or torque_metrics(run.dataset.joint_names, run.dataset.tau, run.predicted)

    @property
    def noise(self) -> Array | None:
        """Standard deviation of the measured torque it is judged by, shape (n,), where repetitions tell it."""
        return self.judged.dataset.noise_std

    def torque_unit(self, joint: int) -> str:
        """Return the unit of a joint's torque."""
        return units_of(self.prismatic[joint])[0]

    @property
    def prismatic(self) -> tuple[bool, ...]:
        """Which joints are."""
        return tuple(kind == 'prismatic' for kind in self.result.joint_types)


def predicted_run(title: str, dataset: Dataset, predictor: TorquePredictor) -> Run:
    """Return a dataset with its columns in the model's order and what the model predicts for it."""
    names = predictor.model.joint_names
    columns = joint_columns(dataset, predictor.model)
    signals = {name: getattr(dataset, name)[:, columns] for name in ('q', 'dq', 'ddq', 'tau', 'tau_filtered')}
    noise = None if dataset.noise_std is None else dataset.noise_std[columns]
    ordered = replace(dataset, joint_names=names, noise_std=noise, **signals)
    load = predictor.rigid_torque(ordered.q, ordered.dq, ordered.ddq)
    return Run(
        title=title,
        dataset=ordered,
        predicted=predictor.measured_torque(ordered),
        friction=predictor.friction_torque(ordered.dq, load),
    )


def consistent_error(predictor: TorquePredictor, run: Run) -> float:
    """Return the relative error of the physically consistent parameters on a run, all joints [%]."""
    result = predictor.result
    standard = result.inertial.ravel()
    if result.has_rotor_inertia:
        standard = np.concatenate([standard, result.rotor_inertia])
    consistent = replace(result, base_values=predictor.base.map @ standard)
    predicted = TorquePredictor(predictor.model, consistent).measured_torque(run.dataset)
    return torque_metrics(run.dataset.joint_names, run.dataset.tau, predicted).relative_error_total

# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Sequential design: what earlier data already tell, so that the next trajectory adds the rest."""

from collections.abc import Sequence

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data import Dataset
from robotid_ros.errors import ExcitationError
from robotid_ros.excitation.config import ExcitationConfig
from robotid_ros.excitation.criteria import information_matrix
from robotid_ros.excitation.fourier import FourierTrajectory
from robotid_ros.excitation.preparation import design_observation
from robotid_ros.model.robot_model import RobotModel

__all__ = ['dataset_information', 'trajectory_information']


def dataset_information(
    model: RobotModel, datasets: Sequence[Dataset], config: ExcitationConfig, *, samples: int
) -> Array:
    """Return the information of earlier datasets, for ``information`` of ``optimize_excitation``.

        M_earlier = sum_k Y_k^T diag(1/noise^2) Y_k / samples

    over the independent samples of the datasets: with the criterion's own mean over a sample of
    the next run, the sum is then that of both runs together.

    Parameters
    ----------
    model : RobotModel
    datasets : sequence of Dataset
        Of the model's joints.
    config : ExcitationConfig
        Of the next design: which parameters are to be found, and the noise of each joint.
    samples : int
        Independent samples that the next run will have.

    Returns
    -------
    ndarray, shape (b, b)

    Raises
    ------
    ExcitationError
        If the joints differ or ``samples`` is not positive.
    """
    if samples < 1:
        raise ExcitationError(f'samples: expected a positive number, got {samples}')
    observation = design_observation(model, config)
    size = len(observation.base.independent)
    total: Array = np.zeros((size, size))
    for dataset in datasets:
        if dataset.joint_names != model.joint_names:
            raise ExcitationError(
                f'the dataset has joints {", ".join(dataset.joint_names)}; expected {", ".join(model.joint_names)}'
            )
        mean = information_matrix(observation.base.regressor(dataset.q, dataset.dq, dataset.ddq), observation.noise)
        total += mean * (len(dataset) / dataset.decimation / samples)
    return total


def trajectory_information(
    model: RobotModel, trajectory: FourierTrajectory, config: ExcitationConfig, *, weight: float = 1.0
) -> Array:
    """Return the information that a trajectory would give, for ``information`` of ``optimize_excitation``.

    Parameters
    ----------
    model : RobotModel
    trajectory : FourierTrajectory
    config : ExcitationConfig
        Of the next design.
    weight : float
        Length of its run in lengths of the next one.

    Returns
    -------
    ndarray, shape (b, b)
    """
    observation = design_observation(model, config)
    times = trajectory.sample_times(1000.0 / trajectory.period)
    information: Array = weight * information_matrix(
        observation.base.regressor(*trajectory.evaluate(times)), observation.noise
    )
    return information

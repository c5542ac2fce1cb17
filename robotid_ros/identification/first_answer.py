# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What plain least squares say, before anything is chosen: a first answer within two seconds."""

from collections.abc import Sequence

import numpy as np

from robotid_ros.data.dataset import Dataset
from robotid_ros.friction import friction_model
from robotid_ros.identification.bench import Bench
from robotid_ros.identification.information import BaseRegressor
from robotid_ros.identification.judge import REGIONS, groups
from robotid_ros.identification.samples import evenly_weighted
from robotid_ros.model.robot_model import RobotModel

_ENOUGH = 3000  # samples, which take a tenth of a second


def first_answer(datasets: Sequence[Dataset], model: RobotModel, base: BaseRegressor) -> float:
    """Return what weighted least squares with Coulomb and viscous friction leave of the torque in states left out [%].

    Parameters
    ----------
    datasets : sequence of Dataset
    model : RobotModel
    base : BaseRegressor
        Of the model at its motors.
    """
    samples = evenly_weighted(datasets, model, None).thinned(_ENOUGH)
    friction = friction_model('coulomb_viscous+offset')
    own = friction.columns(samples.dq, np.zeros((samples.n, 0)))
    rigid = base.regressor(samples.q, samples.dq, samples.ddq)
    score, _, _ = Bench.of(samples, groups(samples, REGIONS), rigid, own).linear(friction)
    recorded = float(np.sum(samples.weight * samples.measured**2))
    return 100.0 * float(np.sqrt(score.squares.sum() / max(recorded, 1e-300)))

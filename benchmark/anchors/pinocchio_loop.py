# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Pinocchio's inverse dynamics and regressor, called for one sample after the other as its users do."""

from typing import Any

import numpy as np
import pinocchio

from benchmark.timing import seconds


def throughput(given: dict[str, Any]) -> dict[str, Any]:
    """Return processor seconds for all samples, and torques to compare with."""
    model = pinocchio.buildModelFromXML(given['urdf'])
    data = model.createData()
    q, dq, ddq = given['q'], given['dq'], given['ddq']
    torques = np.empty_like(q)
    rows = np.empty((len(q), model.nv, 10 * model.nv))

    def rnea() -> None:
        for k in range(len(q)):
            torques[k] = pinocchio.rnea(model, data, q[k], dq[k], ddq[k])

    def regressor() -> None:
        for k in range(len(q)):
            rows[k] = pinocchio.computeJointTorqueRegressor(model, data, q[k], dq[k], ddq[k])

    times = {task.__name__: seconds(task, given['runs']).processor for task in (rnea, regressor)}
    return {'name': f'Pinocchio {pinocchio.__version__}', 'torque': torques, **times}

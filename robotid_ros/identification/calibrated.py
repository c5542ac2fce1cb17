# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The calibrated URDF: the input description with identified numbers."""

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import IdentificationError
from robotid_ros.identification.result import IdentificationResult
from robotid_ros.model.inertia import physical_violation, transform_inertial_parameters
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.model.urdf_edit import edited_urdf


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
    inertials = link_inertials(model, result.inertial)
    return edited_urdf(model.source, inertials=inertials, dynamics=_joint_dynamics(result))


def _joint_dynamics(result: IdentificationResult) -> dict[str, tuple[float, float]]:
    plain = result.plain_friction
    if plain is None:
        return {}
    return {joint: (float(plain[j, 1]), float(plain[j, 0])) for j, joint in enumerate(result.joint_names)}

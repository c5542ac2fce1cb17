# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The recursive Newton-Euler algorithm for a batch of samples.

J. Y. S. Luh, M. W. Walker and R. P. C. Paul, "On-line computational scheme for mechanical
manipulators", J. Dyn. Sys. Meas. Control 102 (1980); with inertias about the frame origins as in
W. Khalil and E. Dombre, "Modeling, Identification and Control of Robots" (2002), eq. 9.86-9.91.
"""

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics.chain import Part, checked_output, checked_samples, moving
from robotid_ros.dynamics.recursion import packed_arm, recursion, single_torque, torque_kernel
from robotid_ros.model import RobotModel


def inverse_dynamics(
    model: RobotModel,
    q: Array,
    dq: Array,
    ddq: Array,
    *,
    part: Part = 'all',
    rotor_inertia: bool = True,
    friction: bool = False,
    out: Array | None = None,
) -> Array:
    """Return the joint torques that make the arm move as given.

    tau = M(q) ddq + C(q, dq) dq + g(q) + Ia ddq, and + Fv dq + Fc sign(dq) where friction is asked for.

    Evaluated by one compiled recursion for all arms, whatever the number of samples; in numpy where
    there is no C compiler. Both agree to round-off. One sample in float64 arrays of shape (1, n) takes a shorter way.

    Parameters
    ----------
    model : RobotModel
    q, dq, ddq : ndarray, shape (N, n)
        Joint positions, velocities and accelerations [rad, rad/s, rad/s^2; m for prismatic joints],
        in measured coordinates where the model has a coupling.
    part : {'all', 'gravity', 'kinetic'}
        All torques, those of gravity alone, or those of motion alone.
    rotor_inertia, friction : bool
        Whether the model's rotor inertia, and its prior viscous and Coulomb friction, take part.
    out : ndarray, shape (N, n), optional
        Where to write the result.

    Returns
    -------
    ndarray, shape (N, n)
        Torques [N m], forces [N] for prismatic joints.

    Raises
    ------
    DataError
        If the shapes do not fit the model, or ``out`` not the result.

    References
    ----------
    Luh, Walker and Paul (1980); Khalil and Dombre (2002), eq. 9.86-9.91.
    """
    if part == 'all' and out is None:
        made = single_torque(model, True, rotor_inertia, friction)(q, dq, ddq)
        if made is not None:
            return made
    q, dq, ddq = checked_samples(model, q=q, dq=dq, ddq=ddq)
    tau = checked_output(out, q.shape, (q, dq, ddq))
    rate, change = moving(part, dq, ddq)
    compiled = recursion('recursion_torque')
    if compiled is not None:
        compiled([packed_arm(model, part != 'kinetic', rotor_inertia, friction), q, rate, change], tau)
        return tau
    kernel, parameters = torque_kernel(model, part != 'kinetic')
    kernel([q, rate, change, parameters], tau)
    if rotor_inertia:
        tau += model.rotor_inertia * change
    if friction:
        tau += model.damping * rate + model.friction * np.sign(rate)
    return tau

# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Arms from Denavit-Hartenberg tables, standard and modified."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import ModelError
from robotid_ros.model.inertia import transform_inertial_parameters
from robotid_ros.model.robot_model import JointType, RobotModel
from robotid_ros.model.transforms import rotation_x, rotation_z, translation

__all__ = ['robot_model_from_dh', 'robot_model_from_mdh']


def robot_model_from_mdh(
    rows: Sequence[Sequence[float]],
    *,
    types: Sequence[JointType] | None = None,
    names: Sequence[str] | None = None,
    inertial: Array | None = None,
    **options: Any,
) -> RobotModel:
    """Build an arm from modified (Khalil/Craig) DH rows.

    T_i = Rx(alpha_i) Tx(a_i) Rz(theta_i + q_i) Tz(d_i), and Tz(d_i + q_i) for a prismatic joint.

    Parameters
    ----------
    rows : sequence of (alpha, a, d, theta)
        One per joint [rad, m, m, rad].
    types : sequence of {'revolute', 'prismatic'}, optional
        Revolute by default.
    names : sequence of str, optional
        ``joint1``, ``joint2``, ... by default.
    inertial : ndarray, shape (n, 10), optional
        In the DH frames, each of which is its link's frame; zero by default.
    **options
        Other fields of :class:`RobotModel`: gravity, limits, rotor_inertia, tip, ...

    Raises
    ------
    ModelError
        If the table has no rows or a row does not hold four finite numbers.
    """
    table = _checked_table(rows, 'alpha, a, d, theta')
    placements = np.stack(
        [
            rotation_x(alpha) @ translation([a, 0.0, 0.0]) @ rotation_z(theta) @ translation([0.0, 0.0, d])
            for alpha, a, d, theta in table
        ]
    )
    return _chain(placements, np.eye(4), types, names, inertial, options)


def robot_model_from_dh(
    rows: Sequence[Sequence[float]],
    *,
    types: Sequence[JointType] | None = None,
    names: Sequence[str] | None = None,
    inertial: Array | None = None,
    **options: Any,
) -> RobotModel:
    """Build an arm from standard (distal) DH rows.

    T_i = Rz(theta_i + q_i) Tz(d_i) Tx(a_i) Rx(alpha_i); the model's link frame i has the axis of
    joint i, so it is DH frame i seen from its near end.

    Parameters
    ----------
    rows : sequence of (theta, d, a, alpha)
        One per joint [rad, m, m, rad].
    types, names, **options
        As in :func:`robot_model_from_mdh`.
    inertial : ndarray, shape (n, 10), optional
        In the distal DH frames (frame i at the far end of link i); zero by default.

    Raises
    ------
    ModelError
        If the table has no rows or a row does not hold four finite numbers.
    """
    table = _checked_table(rows, 'theta, d, a, alpha')
    links = [rotation_z(theta) @ translation([a, 0.0, d]) @ rotation_x(alpha) for theta, d, a, alpha in table]
    placements = np.stack([np.eye(4), *links[:-1]])
    if inertial is not None:
        distal = frozen_array(inertial, 'inertial', (len(table), 10), ModelError)
        inertial = np.stack(
            [
                transform_inertial_parameters(pi, link[:3, :3], link[:3, 3])
                for pi, link in zip(distal, links, strict=True)
            ]
        )
    tip = links[-1] @ np.asarray(options.pop('tip', np.eye(4)))
    return _chain(placements, tip, types, names, inertial, options)


def _checked_table(rows: Sequence[Sequence[float]], columns: str) -> Array:
    if len(rows) == 0:
        raise ModelError(f'DH table: expected at least one row of ({columns}), got none')
    return frozen_array(rows, f'DH table of ({columns})', (None, 4), ModelError)


def _chain(
    placements: Array,
    tip: Array,
    types: Sequence[JointType] | None,
    names: Sequence[str] | None,
    inertial: Array | None,
    options: dict[str, Any],
) -> RobotModel:
    n = len(placements)
    revolute: list[JointType] = ['revolute'] * n
    return RobotModel(
        name=str(options.pop('name', 'robot')),
        joint_names=tuple(names) if names is not None else tuple(f'joint{k + 1}' for k in range(n)),
        joint_types=tuple(types) if types is not None else tuple(revolute),
        placements=placements,
        axes=np.tile([0.0, 0.0, 1.0], (n, 1)),
        inertial=np.zeros((n, 10)) if inertial is None else inertial,
        tip=options.pop('tip', tip),
        **options,
    )

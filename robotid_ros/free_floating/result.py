# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The result of a target identification."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from robotid_ros import __version__
from robotid_ros.arrays import Array
from robotid_ros.free_floating.body import RigidBody
from robotid_ros.free_floating.regression import ConvergenceHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetIdentification:
    """Result of :func:`robotid_ros.free_floating.identify_target`.

    Attributes
    ----------
    robot_name : str
    joint_names : tuple of str
    body : RigidBody
        The last link merged with the target, in the last link's frame.
    target : RigidBody
        The target alone: ``body`` less the bare last link.
    unknowns : ndarray, shape (10,)
        [1/m, c, Ixx Ixy Ixz Iyy Iyz Izz about c] of ``body``.
    covariance : ndarray, shape (10, 10)
        Of the unknowns, from the sensor noise, scaled to the residual.
    body_deviation, target_deviation : ndarray, shape (10,)
        Standard deviations of [m, c, Ixx Ixy Ixz Iyy Iyz Izz] [kg, m, kg m^2].
    condition_si, condition_scaled : float
        Of the stacked regressor, in SI units and with columns scaled to equal length.
    residual_rms : ndarray, shape (2,)
        Of the velocity rows [m/s] and of the angular-momentum rows [kg m^2/s].
    noise_scale : float
        Residual relative to what the stated noise predicts; near one where the model fits.
    momentum : ndarray, shape (6,)
        [P; L] about the inertial origin [kg m/s, kg m^2/s].
    momentum_deviation : ndarray, shape (6,), or None
        Where it was estimated.
    momentum_source : {'zero', 'given', 'estimated'}
    estimator : str
    history : ConvergenceHistory
        Estimates sample by sample.
    samples : int
    usable : bool
    reason : str
        Why it is not usable, or a remark; may be empty.
    provenance : mapping
    """

    robot_name: str
    joint_names: tuple[str, ...]
    body: RigidBody
    target: RigidBody
    unknowns: Array
    covariance: Array
    body_deviation: Array
    target_deviation: Array
    condition_si: float
    condition_scaled: float
    residual_rms: Array
    noise_scale: float
    momentum: Array
    momentum_deviation: Array | None
    momentum_source: str
    estimator: str
    history: ConvergenceHistory
    samples: int
    usable: bool
    reason: str
    provenance: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and lists, as ``result.yaml`` holds them."""
        momentum: dict[str, Any] = {
            'source': self.momentum_source,
            'linear': self.momentum[:3].tolist(),
            'angular': self.momentum[3:].tolist(),
        }
        if self.momentum_deviation is not None:
            momentum['linear_std'] = self.momentum_deviation[:3].tolist()
            momentum['angular_std'] = self.momentum_deviation[3:].tolist()
        return {
            'robot': self.robot_name,
            'joints': list(self.joint_names),
            'target': _with_deviation(self.target, self.target_deviation),
            'last_link_with_target': _with_deviation(self.body, self.body_deviation),
            'condition_number': {'si': self.condition_si, 'scaled': self.condition_scaled},
            'momentum': momentum,
            'estimator': self.estimator,
            'samples': self.samples,
            'residual': {
                'velocity_rms': float(self.residual_rms[0]),
                'angular_momentum_rms': float(self.residual_rms[1]),
                'noise_scale': self.noise_scale,
            },
            'usable': self.usable,
            'reason': self.reason,
            'provenance': dict(self.provenance),
        }

    def to_yaml(self, **made_with: Any) -> str:
        """Return the text of ``result.yaml``, with what it was made with beside the version."""
        content = self.to_dict()
        content['provenance'] |= {**made_with, 'version': __version__}
        return str(yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100))


def _with_deviation(body: RigidBody, deviation: Array) -> dict[str, Any]:
    return {
        **body.to_dict(),
        'std': {
            'mass': float(deviation[0]),
            'center_of_mass': deviation[1:4].tolist(),
            'inertia': deviation[4:].tolist(),
        },
    }

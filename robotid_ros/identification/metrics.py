# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""How well a predicted torque matches the measured one."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import IdentificationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """Errors of a torque prediction, per joint and over all.

    Attributes
    ----------
    joint_names : tuple of str
    rmse : ndarray, shape (n,)
        Root mean square error [N m].
    relative_error : ndarray, shape (n,)
        100 |tau - tau_hat| / |tau| over the joint's samples [%].
    relative_error_total : float
        The same over all joints' samples stacked [%].
    samples : int
    """

    joint_names: tuple[str, ...]
    rmse: Array
    relative_error: Array
    relative_error_total: float
    samples: int

    def __post_init__(self) -> None:
        n = len(self.joint_names)
        for name in ('rmse', 'relative_error'):
            value = frozen_array(getattr(self, name), name, (n,), IdentificationError)
            object.__setattr__(self, name, value)

    @property
    def match(self) -> Array:
        """Match delta = 100 - relative_error, shape (n,) [%]."""
        return 100.0 - self.relative_error

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers by joint name."""

        def by_joint(values: Array) -> dict[str, float]:
            return {name: float(value) for name, value in zip(self.joint_names, values, strict=True)}

        return {
            'rmse': by_joint(self.rmse),
            'relative_error': by_joint(self.relative_error),
            'relative_error_total': float(self.relative_error_total),
            'match': by_joint(self.match),
            'samples': int(self.samples),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> 'Metrics':
        """Return the metrics that :meth:`to_dict` wrote."""
        names = tuple(data['rmse'])
        return cls(
            joint_names=names,
            rmse=np.array([data['rmse'][name] for name in names]),
            relative_error=np.array([data['relative_error'][name] for name in names]),
            relative_error_total=float(data['relative_error_total']),
            samples=int(data['samples']),
        )


def torque_metrics(joint_names: tuple[str, ...], measured: Array, predicted: Array) -> Metrics:
    """Return the errors of a torque prediction.

    relative error = 100 |tau - tau_hat| / |tau|. A joint whose measured torque is zero throughout has an
    error of 0 % where the prediction is zero too, and 100 % otherwise.

    Parameters
    ----------
    joint_names : tuple of str
    measured, predicted : ndarray, shape (N, n)
        [N m]; the measured torque as recorded, unfiltered.

    Raises
    ------
    IdentificationError
        If there are no samples.
    """
    if len(measured) == 0:
        raise IdentificationError('expected torque samples to compare, got none')
    error = np.sum((measured - predicted) ** 2, axis=0)
    power = np.sum(measured**2, axis=0)

    def relative(numerator: Array, denominator: Array) -> Array:
        unknown = np.where(numerator > 0.0, 1.0, 0.0)
        safe = np.where(denominator > 0.0, denominator, 1.0)
        return 100.0 * np.sqrt(np.where(denominator > 0.0, numerator / safe, unknown))

    return Metrics(
        joint_names=joint_names,
        rmse=np.sqrt(error / len(measured)),
        relative_error=relative(error, power),
        relative_error_total=float(relative(error.sum(), power.sum())),
        samples=len(measured),
    )

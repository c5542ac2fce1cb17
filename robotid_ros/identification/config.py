# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Settings of an identification."""

from dataclasses import dataclass, field

import numpy as np

from robotid_ros.errors import IdentificationError
from robotid_ros.friction import FRICTION_MODELS

__all__ = ['ESTIMATORS', 'IdentificationConfig']

ESTIMATORS = ('ols', 'wls', 'irls', 'alternating', 'bee-colony', 'physical')


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentificationConfig:
    """How to identify; the defaults suit any arm.

    Attributes
    ----------
    friction : str
        A friction model by name, with its options (``'stribeck+load+offset'``), or ``'auto'``.
    estimator : str
    rotor_inertia : bool
        Identify rotor inertias beside the links' parameters.
    torque_bandwidth : float
        Bandwidth of the torque channel [Hz]; 0 finds it in the data, a negative value says there is none.
    standstill_speed, standstill_weight : float
        Speed, as a share of the joint's largest, below which samples count less, and their weight at rest.
    regularisation : float
        Weight of the description's inertial parameters; 0 chooses it from the data.
    torque_threshold : tuple of float
        Largest acceptable root-mean-square torque error, per joint or one for all [N m]; empty for none.
    max_iterations : int
        Of the alternating and the bee-colony estimator.
    seed : int
    """

    friction: str = field(
        default='auto',
        metadata={'description': "friction model with options joined by '+', or 'auto' to choose by cross-validation"},
    )
    estimator: str = field(
        default='wls', metadata={'description': 'how the parameters are estimated', 'choices': ESTIMATORS}
    )
    rotor_inertia: bool = field(default=True, metadata={'description': 'identify rotor inertias too'})
    torque_bandwidth: float = field(
        default=0.0,
        metadata={
            'description': 'bandwidth of the measured torque; 0 finds it, -1 says it is not limited',
            'unit': 'Hz',
            'range': (-1.0, 1e4),
        },
    )
    standstill_speed: float = field(
        default=0.02,
        metadata={
            'description': "share of a joint's largest speed below which samples count less",
            'range': (0.0, 1.0),
        },
    )
    standstill_weight: float = field(
        default=0.01, metadata={'description': 'weight of a sample at rest', 'range': (0.0, 1.0)}
    )
    regularisation: float = field(
        default=0.0,
        metadata={
            'description': "weight of the description's inertial parameters; 0 chooses it from the data",
            'range': (0.0, 1e12),
        },
    )
    torque_threshold: tuple[float, ...] = field(
        default=(),
        metadata={'description': 'largest acceptable torque error per joint, or one for all', 'unit': 'N m'},
    )
    max_iterations: int = field(
        default=50,
        metadata={'description': 'iterations of the alternating and bee-colony estimators', 'range': (1, 100000)},
    )
    seed: int = field(default=0, metadata={'description': 'seed of every random choice', 'range': (0, 2**31 - 1)})

    def __post_init__(self) -> None:
        if self.estimator not in ESTIMATORS:
            raise IdentificationError(f"estimator '{self.estimator}' is unknown; there are: {', '.join(ESTIMATORS)}")
        base = self.friction.split('+')[0]
        if base != 'auto' and base not in FRICTION_MODELS:
            raise IdentificationError(
                f"friction model '{base}' is unknown; there are: auto, {', '.join(FRICTION_MODELS)}"
            )
        for name in ('standstill_speed', 'standstill_weight'):
            value = getattr(self, name)
            if not 0.0 <= value <= 1.0:
                raise IdentificationError(f'{name}: expected a number from 0 to 1, got {value}')
        if not np.isfinite(self.regularisation) or self.regularisation < 0.0:
            raise IdentificationError(f'regularisation: expected a number of at least 0, got {self.regularisation}')
        if any(not value > 0.0 for value in self.torque_threshold):
            raise IdentificationError(f'torque_threshold: expected positive torques, got {self.torque_threshold}')
        if self.max_iterations < 1:
            raise IdentificationError(f'max_iterations: expected at least 1, got {self.max_iterations}')
        object.__setattr__(self, 'torque_threshold', tuple(float(value) for value in self.torque_threshold))

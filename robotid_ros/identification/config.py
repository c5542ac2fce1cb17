# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Settings of an identification."""

from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import IdentificationError
from robotid_ros.friction import FRICTION_MODELS, parse_friction
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.settings import Settings, setting

ESTIMATORS = ('auto', 'ols', 'wls', 'irls', 'alternating', 'bee-colony', 'physical')
_PLAIN = ('ols', 'wls', 'irls', 'bee-colony')
AT_REST = 0.02  # of a joint's largest speed: slower, friction is whatever balances the load


def _require_friction(name: str) -> None:
    model = name.split('+')[0]
    if model not in ('auto', *FRICTION_MODELS):
        raise IdentificationError(f"friction model '{model}' is unknown; there are: auto, {', '.join(FRICTION_MODELS)}")
    if name != 'auto':
        parse_friction(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentificationConfig(Settings):
    """Settings of an identification; the defaults suit any arm."""

    error = IdentificationError

    friction: str = setting(
        'auto',
        "friction model with options joined by '+', or 'auto' to choose by cross-validation",
        accepted=_require_friction,
    )
    estimator: str = setting(
        'auto',
        "how the parameters are estimated; 'auto' is weighted least squares with every choice made by held-out torque; "
        'ols, wls, irls are plain: exact sign, no bandwidth of the torque, no prior',
        choices=ESTIMATORS,
    )
    rotor_inertia: bool = setting(True, 'identify rotor inertias too')
    torque_bandwidth: float = setting(
        0.0, 'bandwidth of the measured torque; 0 finds it, -1 says it is not limited', unit='Hz', range=(-1.0, 1e4)
    )
    standstill_speed: float = setting(
        AT_REST, "share of a joint's largest speed below which samples count less", range=(0.0, 1.0)
    )
    standstill_weight: float = setting(0.01, 'weight of a sample at rest', range=(0.0, 1.0))
    regularisation: float = setting(
        0.0, "weight of the description's inertial parameters; 0 chooses it from the data", range=(0.0, 1e12)
    )
    prior: str = setting(
        '', "card or result of an arm of this type, whose bodies take the place of the description's; empty: none"
    )
    torque_threshold: tuple[float, ...] = setting(
        (), 'largest acceptable torque error per joint, or one for all', unit='N m', range=(1e-6, 1e6)
    )
    max_iterations: int = setting(50, 'iterations of the alternating estimator', range=(1, 100000))
    colony_size: int = setting(30, 'bees of the colony; half of them have a food source each', range=(4, 100000))
    colony_limit: int = setting(
        15, 'trials without improvement after which the bee colony leaves a source', range=(1, 1000000)
    )
    colony_cycles: int = setting(50, 'cycles of the bee colony', range=(1, 1000000))
    seed: int = setting(0, 'seed of every random choice', range=(0, 2**31 - 1))

    def check(self) -> None:
        """Refuse a prior that the estimator would ignore."""
        if self.prior and self.estimator in _PLAIN:
            raise self.error(f"estimator '{self.estimator}' takes no prior; leave it out, or the estimator to auto")

    @property
    def automatic(self) -> bool:
        """Whether held-out torque chooses what the estimator does not need as it is."""
        return self.estimator not in _PLAIN

    def thresholds(self, model: RobotModel) -> Array | None:
        """Return the largest acceptable torque error of each joint, or None.

        Raises
        ------
        IdentificationError
            If there are neither none, nor one, nor one per joint.
        """
        given = self.torque_threshold
        if not given:
            return None
        if len(given) not in (1, model.n):
            raise self.error(f'torque_threshold: expected 1 or {model.n} torques, got {len(given)}')
        return np.broadcast_to(np.array(given), (model.n,))

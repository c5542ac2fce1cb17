# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Which joints rest with the friction of their last motion, by torque that the fit has not seen."""

from dataclasses import replace

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.identification.config import IdentificationConfig
from robotid_ros.identification.decision import Alternative, Decision
from robotid_ros.identification.judge import GROUPS, Score, groups
from robotid_ros.identification.rest_friction import RestFriction, last_direction
from robotid_ros.identification.rows import Rows
from robotid_ros.identification.torque_fit import TorqueFit, predicted_torque

_SAMPLES = 20_000  # at most, by which it is found
_SHARE = 0.005  # of the samples: less rest than this is not worth a parameter
_AT_REST = 0.02  # of a joint's largest speed, where the configuration does not say


def with_rest(fit: TorqueFit, rows: Rows, config: IdentificationConfig) -> tuple[TorqueFit, Decision]:
    """Find the friction at rest, joint by joint, where held-out torque confirms it.

    Friction that builds up along the way stays where a joint stops by itself. For its joints this is what a program has
    that knows no past: the last direction.
    """
    samples = rows.samples.sliding(None).with_bandwidth(fit.bandwidth).excerpts(_SAMPLES)
    friction = replace(fit.friction, presliding=None)
    speed = (config.standstill_speed or _AT_REST) * np.abs(rows.samples.dq).max(axis=0)
    runs = [(run.start, run.stop) for run in samples.runs]
    zero = RestFriction(speed=speed, torque=np.zeros(samples.n))
    still = zero.resting(samples.dq)
    direction = still * samples.recorded(last_direction(samples.dq, speed, runs))

    def residual(rest: RestFriction | None) -> Array:
        torque = predicted_torque(rows.base, friction, fit.base_values, fit.friction_parameters, samples, rest)
        return still * (samples.measured - torque)

    plain, left = residual(None), residual(zero)
    label = groups(samples, GROUPS)
    masks = [(label == k)[:, None] for k in np.unique(label)]
    rho = np.stack([_coefficient(~held * direction, left) for held in masks])
    count = np.array([np.sum(held * still, axis=0) for held in masks])
    before = Score(squares=np.array([np.sum(held * plain**2, axis=0) for held in masks]), count=count)
    squares = [np.sum(held * (left - direction * r) ** 2, axis=0) for held, r in zip(masks, rho, strict=True)]
    after = Score(squares=np.array(squares), count=count)
    chosen = before.joints_lose_to(after) & (still.mean(axis=0) > _SHARE)
    decision = Decision(
        subject='friction at rest',
        chosen=f'from the last direction for {int(chosen.sum())} of {samples.n} joints' if chosen.any() else 'none',
        alternatives=(
            Alternative(name='friction model', error=before.rmse),
            Alternative(name='last direction', error=after.rmse),
        ),
    )
    if not chosen.any():
        return fit, decision
    found = np.where(chosen, _coefficient(direction, left), 0.0)
    return replace(fit, rest=RestFriction(speed=np.where(chosen, speed, 0.0), torque=found)), decision


def _coefficient(column: Array, values: Array) -> Array:
    """Return the least-squares coefficient of a column, joint by joint."""
    return np.asarray(np.sum(column * values, axis=0) / np.maximum(np.sum(column**2, axis=0), 1e-12))

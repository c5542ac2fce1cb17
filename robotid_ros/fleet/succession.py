# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""A new recording judged by what was known of the arm before it: what changed, and why."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robotid_ros.data import Dataset
from robotid_ros.errors import RobotIdError
from robotid_ros.identification import IdentificationResult, TorquePredictor, validate
from robotid_ros.identification.payload import identify_payload
from robotid_ros.model import RobotModel
from robotid_ros.report.subject import judged

_RATIO = 3.0  # times the usual error of the arm: grease that is warmer or colder makes less
_LEAST = 3.0  # % of the torque; below it nothing is worth looking at


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """How well the arm's previous result predicts a recording.

    Attributes
    ----------
    error : float
        Of the torque, by the previous result [%].
    usual : float
        Error that results of this arm leave of the recordings they were made from [%].
    cause : str
        Why it predicts it badly; empty where it does not.
    """

    error: float
    usual: float
    cause: str = ''

    @property
    def score(self) -> float:
        """How far beyond what is usual."""
        return self.error / max(_RATIO * self.usual, _LEAST)


def own_error(result: IdentificationResult) -> float:
    """Return the error of a result on the recording it was made from, or on what judged it [%]."""
    return float(judged(result)[1].relative_error_total)


def judge(
    datasets: Sequence[Dataset],
    model: RobotModel,
    previous: IdentificationResult,
    own: IdentificationResult | None,
    usual: float,
) -> Finding:
    """Return how well a previous result predicts a recording, and the cause where it does not.

    The cause is the smallest change that explains it: a signal that no model explains, friction, a payload, and where
    none of these does, another arm or another mount. ``own`` is the recording's own result.
    """
    limit = max(_RATIO * usual, _LEAST)
    error = float(validate(previous, model, datasets).relative_error_total)
    if error <= limit:
        return Finding(error=error, usual=usual)
    said = f'{error:.1f} % of the torque is not what the arm did before (usually {usual:.1f} %)'
    if own is None or own_error(own) > limit:
        return Finding(error=error, usual=usual, cause=f'{said}, and no model explains it: {_signal(previous, own)}')
    try:
        if _with_friction_of(own, datasets, model, previous) <= limit:
            return Finding(error=error, usual=usual, cause=f'{said}: its friction changed')
        payload = identify_payload(datasets, model, previous)
        left = float(np.linalg.norm(payload.rmse_with) / max(float(np.linalg.norm(payload.rmse_without)), 1e-300))
        if error * left <= limit:
            return Finding(error=error, usual=usual, cause=f'{said}: its payload changed by {payload.free[9]:+.2g} kg')
    except RobotIdError:  # what cannot be computed explains nothing
        pass
    cause = f'{said}: another arm, mount or configuration, since neither payload nor friction explains it'
    return Finding(error=error, usual=usual, cause=cause)


def _signal(previous: IdentificationResult, own: IdentificationResult | None) -> str:
    """Name the joint whose signals are worse than before."""
    if own is None:
        return 'a sensor'
    now, before = judged(own)[1], judged(previous)[1]
    worst = int(np.argmax(np.square(now.rmse) - np.square(before.rmse[: len(now.rmse)])))
    return (
        f"the torque or position signal of joint '{now.joint_names[worst]}' ({now.relative_error[worst]:.0f} % of it "
        f'unexplained, {before.relative_error[worst]:.0f} % before)'
    )


def _with_friction_of(
    own: IdentificationResult, datasets: Sequence[Dataset], model: RobotModel, previous: IdentificationResult
) -> float:
    """Return the error of the previous result with friction of its own [%]."""
    old, new = TorquePredictor(model, previous), TorquePredictor(model, own)
    missed, whole = 0.0, 0.0
    for dataset in new.prepared(datasets):
        load = old.rigid_torque(dataset.q, dataset.dq, dataset.ddq)
        rest = dataset.tau - load - new.friction_torque(dataset.dq, load, dataset.q)
        missed, whole = missed + float(np.sum(rest**2)), whole + float(np.sum(dataset.tau**2))
    return 100.0 * float(np.sqrt(missed / max(whole, 1e-300)))

# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Whether each joint of an identified model can be used, and what to do where it cannot."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array, BoolArray
from robotid_ros.identification.metrics import Metrics

_WRONG = 50.0  # % of a joint's torque: a model that leaves more than half unexplained is of no use
_NOISE = 1.5  # times the noise of the torque signal: a smaller error is as good as the recording allows
_STILL = 0.03  # rad or m: the friction of a joint that moves less cannot be identified


@dataclass(frozen=True, slots=True, kw_only=True)
class JointVerdict:
    """Verdict of one joint.

    Attributes
    ----------
    joint : str
    usable : bool
    reason : str
        Why it is not usable, or a remark; may be empty.
    advice : str
        What to do next.
    """

    joint: str
    usable: bool
    reason: str = ''
    advice: str = ''

    def __str__(self) -> str:
        return f'{self.joint}: {self.reason}; {self.advice}' if self.advice else f'{self.joint}: {self.reason}'

    def to_dict(self) -> dict[str, object]:
        """Return plain values."""
        return {'usable': self.usable, 'reason': self.reason, 'advice': self.advice}


def moved(q: Array) -> BoolArray:
    """Return which joints moved enough to be identified, shape (n,), from positions (N, n)."""
    return np.asarray(np.ptp(q, axis=0) > _STILL)


def judge_joints(
    metrics: Metrics,
    noise: Array,
    moving: BoolArray,
    faults: Sequence[tuple[str, str] | None],
    limit: Array | None = None,
    *,
    judged_by: str = 'training',
) -> tuple[JointVerdict, ...]:
    """Return the verdict of each joint.

    Parameters
    ----------
    metrics : Metrics
        Errors on the data that judge: validation where there is some, training otherwise.
    noise : ndarray, shape (n,)
        Root mean square of what the torque as recorded has above the filter's cutoff [N m].
    moving : ndarray of bool, shape (n,)
    faults : sequence of (reason, advice) or None, length n
        Fault of the measured torque of each joint.
    limit : ndarray, shape (n,), optional
        Largest acceptable torque error [N m].
    judged_by : str
        Name of the data that judge, for the sentences.
    """
    result = []
    for j, joint in enumerate(metrics.joint_names):
        fault, usable = faults[j], False
        error, relative = float(metrics.rmse[j]), float(metrics.relative_error[j])
        if not moving[j]:
            reason = 'it did not move, so that its friction and rotor inertia are not identified'
            advice = 'excite it, or do not use its friction'
        elif fault is not None:
            reason, advice = fault
        elif limit is not None and error > limit[j]:
            reason = f'its torque error is {error:.3g} N m in {judged_by}, above the threshold of {limit[j]:.3g}'
            advice = 'excite the arm better, or choose another friction model'
        elif relative > _WRONG and error > _NOISE * noise[j]:
            reason = f'the model leaves {relative:.0f} % of its torque unexplained in {judged_by}'
            advice = 'check its torque signal; excite it more, or over more of its range'
        elif relative > _WRONG:
            usable, reason = True, f'its torque is mostly noise ({noise[j]:.3g} N m of {error:.3g} N m error)'
            advice = 'average over more periods'
        else:
            usable, reason, advice = True, '', ''
        result.append(JointVerdict(joint=joint, usable=usable, reason=reason, advice=advice))
    return tuple(result)


def overall(
    joints: Sequence[JointVerdict],
    metrics: Metrics,
    doubt: str,
    still_open: Sequence[str] = (),
    *,
    base: int = 0,
    judged_by: str,
) -> tuple[bool, str]:
    """Return whether a result can be used, and the sentence that says it.

    A result with joints that cannot be used is usable for the others, as long as these carry most of the torque.

    Parameters
    ----------
    joints : sequence of JointVerdict
    metrics : Metrics
        On the data that judge.
    doubt : str
        What is wrong with all joints, or empty.
    still_open : sequence of str
        Names of the base parameters that no sample depends on, although every joint moved.
    base : int
        Number of base parameters.
    judged_by : str
    """
    if doubt:
        return False, doubt
    if still_open:
        listed = ', '.join(still_open[:3]) + (', ...' if len(still_open) > 3 else '')
        return False, f'the data leave {len(still_open)} of {base} base parameters open: {listed}; excite all joints'
    wrong = [verdict for verdict in joints if not verdict.usable]
    total = metrics.relative_error_total
    if total > _WRONG:
        hint = ': is it the same arm, in the same units?' if judged_by != 'training' else ''
        known = '; '.join(str(verdict) for verdict in wrong)
        text = f'the model leaves {total:.0f} % of the torque unexplained in {judged_by}{hint}'
        return False, f'{text}; {known}' if known else text
    if not wrong:
        return True, '; '.join(str(verdict) for verdict in joints if verdict.reason)
    listed = '; '.join(str(verdict) for verdict in wrong)
    if 2 * len(wrong) > len(joints):
        return False, listed
    return True, f'usable except {listed}'

# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Whether each joint of an identified model can be used, and what to do where it cannot.

How well a predicted torque matches the measured one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, BoolArray, freeze_fields
from robotid_ros.errors import IdentificationError
from robotid_ros.reading import read_bool
from robotid_ros.signals.repetition import LEAST_MOTION


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
    left_of_variation : float
        What is left of what the torque varies by, see :func:`left_of_variation` [%]; not a number where nobody asked.
    """

    joint_names: tuple[str, ...]
    rmse: Array
    relative_error: Array
    relative_error_total: float
    samples: int
    left_of_variation: float = float('nan')

    def __post_init__(self) -> None:
        n = len(self.joint_names)
        freeze_fields(self, IdentificationError, {'rmse': (n,), 'relative_error': (n,)})

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
            **({'left_of_variation': float(self.left_of_variation)} if np.isfinite(self.left_of_variation) else {}),
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
            left_of_variation=float(data.get('left_of_variation', np.nan)),
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
        left_of_variation=left_of_variation(measured, predicted),
    )


_WRONG = 50.0  # % of a joint's torque: a model that leaves more than half unexplained is of no use
_NOISE = 1.5  # times the noise of the torque signal: a smaller error is as good as the recording allows
_FEEDS = 30.0  # % of the torque: what is left to the controller is a third of what it had to do
KNOWN = 10.0  # % of a parameter, and of the torque at rest: an arm compensated so far stands still by its friction
_STANDS_OUT = 4.0  # standard deviations
_NOTHING = 1e3  # %: an error of a torque that is none
_BEATEN, _MATTERS = 1.05, 1.0  # times the plain fit's error, and % of the torque beside it: less is chance
STILL = 0.05  # rad or m: a joint that moves less holds its position, and its friction cannot be identified


COMPARE = 'compare payload, mount and torque signals with what was said of them, and excite the arm more'


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

    def to_dict(self) -> dict[str, object]:
        """Return plain values."""
        return {'usable': self.usable, 'reason': self.reason, 'advice': self.advice}


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """Whether a model is good for one use.

    Attributes
    ----------
    name : str
    good : bool
    number : float
        What decides [N m, or %].
    text : str
        What the number is.
    """

    name: str
    good: bool
    number: float
    text: str

    def to_dict(self) -> dict[str, object]:
        """Return plain values."""
        return {'good': self.good, 'number': float(f'{self.number:.6g}'), 'text': self.text}

    @classmethod
    def from_dict(cls, name: str, data: Mapping[str, Any]) -> 'Use':
        """Return the use that :meth:`to_dict` wrote."""
        return cls(name=name, good=read_bool(data, 'good'), number=float(data['number']), text=str(data['text']))


def good_for(
    metrics: Metrics,
    consistent: float,
    gravity: tuple[Array, Array],
    parameters: tuple[int, int],
    usable: bool,
    elsewhere: float = 0.0,
) -> tuple[Use, ...]:
    """Return what a model can be used for.

    Parameters
    ----------
    metrics : Metrics
        On the data that judge.
    consistent : float
        What the physically consistent parameters leave of the torque there [%].
    gravity : tuple of ndarray, shape (n,)
        Root-mean-square error of the torque at rest, and that torque itself [N m].
    parameters : tuple of int
        How many base parameters are known to 10 %, and how many there are.
    usable : bool
    elsewhere : float
        What the parameters leave open of the torque on another motion, where none judged [%]. It adds to the error on
        the data that judge as what is independent does, see :func:`error_elsewhere`.
    """
    error, torque = gravity
    worst = int(np.argmax(error))
    share = 100.0 * float(np.linalg.norm(error)) / max(float(np.linalg.norm(torque)), 1e-300)
    left = metrics.relative_error_total
    total, consistent = error_elsewhere(left, elsewhere), error_elsewhere(consistent, elsewhere)
    push = _STANDS_OUT * metrics.rmse * total / max(left, 1e-300)
    size = 100.0 * metrics.rmse / np.maximum(metrics.relative_error, 1e-300)  # root mean square of the torque
    felt = 100.0 * float(np.linalg.norm(push)) / max(float(np.linalg.norm(size)), 1e-300)
    names = metrics.joint_names
    known, count = parameters
    return (
        Use(
            name='gravity compensation',
            good=usable and share < KNOWN,
            number=float(error.max()),
            text=f'error at rest up to {error.max():.3g} N m ({names[worst]}) between the joint limits, '
            + (f'{share:.3g} % of the torque there' if share < _NOTHING else 'where gravity asks for next to nothing'),
        ),
        Use(
            name='feed-forward',
            good=usable and total < _FEEDS,
            number=total,
            text=f'{total:.3g} % of the torque is left to the controller',
        ),
        Use(
            name='contact detection',
            good=usable and felt < 100.0,
            number=float(push.max()),
            text='smallest torque that stands out: '
            + ', '.join(f'{name} {each:.2g}' for name, each in zip(names, push, strict=True))
            + ' N m',
        ),
        Use(
            name='simulation',
            good=usable and consistent < _FEEDS,
            number=consistent,
            text=f'bodies that can exist leave {consistent:.3g} % of the torque unexplained',
        ),
        Use(
            name='parameters',
            good=usable and 2 * known >= count,
            number=100.0 * known / max(count, 1),
            text=f'{known} of {count} base parameters are known to {KNOWN:g} %'
            + ('; the model predicts torques, it identifies no single parameter' if known == 0 else ''),
        ),
    )


def error_elsewhere(held_out: float, elsewhere: float) -> float:
    """Return the error to be expected on another motion, sqrt(h^2 + s^2) [%], relative to the torque there.

    Parameters
    ----------
    held_out : float
        h, in states of this motion that were left out: what the model lacks, and the noise [%].
    elsewhere : float
        s, what the parameters leave open on another motion [%].
    """
    return float(np.hypot(held_out, elsewhere))


def of_another_motion(held_out: float, elsewhere: float, varies: float) -> tuple[str, bool, str]:
    """Return what to expect of a motion that nobody showed, whether that is of no use, and what to do where it is.

    Parameters
    ----------
    held_out, elsewhere : float
        Of :func:`error_elsewhere` [%].
    varies : float
        Of :func:`left_of_variation`, in states of this motion that were left out [%].

    Returns
    -------
    said : str
        The error to be expected, and of what it is made.
    refused : bool
        More than half of the torque, or of what it varies by, is left.
    advice : str
        What to do about it.
    """
    left, flat = error_elsewhere(held_out, elsewhere), of_a_constant(varies)
    said = (
        f'no other motion judged the model: on one, {left:.3g} % of the torque is to be expected unexplained; that is '
        f'{held_out:.3g} % in states that were left out, and {elsewhere:.3g} % by which the parameters are uncertain'
    )
    if flat:
        said += f'; {flat}'
    advice = COMPARE
    if flat or elsewhere > held_out:
        advice = (
            'the motion is too short, or too much alike: record a longer, varied one, or give another with --validate'
        )
    return said, bool(flat) or left > _WRONG, advice


def of_a_constant(varies: float, where: str = '') -> str:
    """Return what a model is that leaves so much of what the torque varies by [%]; empty where that is half at most."""
    if not varies > _WRONG:
        return ''
    return f'of what the torque varies by{where}, the model leaves {varies:.0f} %: it tells hardly more than a constant'


def left_of_variation(measured: Array, predicted: Array) -> float:
    """Return what a model leaves of what the torque varies by, both without the noise of the signal [%].

        100 sqrt(sum_j S(tau_j - p_j) / sum_j S(tau_j - mean tau_j)),   S(x) = mean x_i^2 - mean (x_{i+1} - x_i)^2 / 2

    A constant leaves all of it, however much of the torque itself it is. Noise that differs from one sample to the
    next is half of the mean square successive difference (von Neumann, Kent, Bellinson and Hart, Annals of Mathematical
    Statistics 12 (1941), 153-162).

    Parameters
    ----------
    measured, predicted : ndarray, shape (N, n)
        tau and p, in the order in which they were recorded [N m].
    """

    def smooth(values: Array) -> float:
        square = np.mean(values**2, axis=0) - 0.5 * np.mean(np.diff(values, axis=0) ** 2, axis=0)
        return float(np.maximum(square, 0.0).sum())

    whole = smooth(measured - measured.mean(axis=0))
    return 100.0 * float(np.sqrt(smooth(measured - predicted) / whole)) if whole > 0.0 else 0.0


def good_for_nothing(uses: Sequence[Use], remedy: str = COMPARE) -> str:
    """Return that no torque of a model is good for any use, with the numbers; nothing where one is.

    Parameters are no such use: they may be well known and leave the torque unexplained. A right model of a noisy signal
    is good for gravity compensation, whose error is a mean.
    """
    torques = [use for use in uses if use.name != 'parameters']
    if any(use.good for use in torques):
        return ''
    (left,) = (use.number for use in uses if use.name == 'feed-forward')
    return (
        f'the model is good for no use, it leaves {left:.0f} % of the torque unexplained: '
        + '; '.join(f'{use.name}: {use.text}' for use in torques)
        + f'; {remedy}'
    )


def beaten_by_plain(error: float, least: float) -> str:
    """Return that friction of the wrong sign predicts unseen data better, and what to do; nothing where it does not.

    A model of friction that brakes has to predict about as well as plain least squares with friction that may drive,

        E <= 1.05 P,   or   E^2 - P^2 <= (1 %)^2,

    else the torques have the wrong sign, or are those of something else.

    Parameters
    ----------
    error, least : float
        E of the model and P of plain least squares, relative to the torque, on the data that judge [%].
    """
    if error <= _BEATEN * least or error**2 - least**2 <= _MATTERS**2:
        return ''
    return (
        f'on the data that judge, the model leaves {error:.3g} % of the torque, and plain least squares whose friction '
        f'would drive a joint {least:.3g} %; check the signs of the torques'
    )


def known_parameters(values: Array, std: Array) -> tuple[int, int]:
    """Return how many parameters are known to 10 %, and how many there are."""
    return int((100.0 * std <= KNOWN * np.abs(values)).sum()), len(values)


def moved(q: Array) -> BoolArray:
    """Return which joints moved enough to be identified, shape (n,), from positions (N, n).

    That is by more than 0.05 rad (or m), or in a small device by a fifth of what moves most.
    """
    reach = np.ptp(q, axis=0)
    return np.asarray(reach > np.clip(0.2 * reach.max(initial=0.0), LEAST_MOTION, STILL))


def judge_joints(
    metrics: Metrics,
    noise: Array,
    moving: BoolArray,
    faults: Sequence[tuple[str, str] | None],
    limit: Array | None = None,
    in_motion: Array | None = None,
    *,
    judged_by: str = 'training',
) -> tuple[JointVerdict, ...]:
    """Return the verdict of each joint.

    Parameters
    ----------
    metrics : Metrics
        Errors on the data that judge: validation where there is some, else states that were held out.
    noise : ndarray, shape (n,)
        Root mean square of what the torque as recorded has above the filter's cutoff [N m].
    moving : ndarray of bool, shape (n,)
    faults : sequence of (reason, advice) or None, length n
        Fault of the measured torque of each joint.
    limit : ndarray, shape (n,), optional
        Largest acceptable torque error [N m].
    in_motion : ndarray, shape (n,), optional
        The torque error that is compared with it, with the weights of the fit [N m]; by default that of the metrics,
        in which samples at rest count fully.
    judged_by : str
        Name of the data that judge, for the sentences.
    """
    result, where = [], 'states that were left out' if judged_by == 'held_out' else judged_by
    for j, joint in enumerate(metrics.joint_names):
        fault, usable = faults[j], False
        error, relative = float(metrics.rmse[j]), float(metrics.relative_error[j])
        if not moving[j]:
            reason = 'it did not move, so that its friction and rotor inertia are not identified'
            advice = 'excite it, or do not use its friction'
        elif fault is not None:
            reason, advice = fault
        elif limit is not None and (error if in_motion is None else in_motion[j]) > limit[j]:
            told = f'{error:.3g} N m' if in_motion is None else f'{in_motion[j]:.3g} N m in motion ({error:.3g} in all)'
            reason = f'its torque error is {told} in {where}, above the threshold of {limit[j]:.3g}'
            advice = 'excite the arm better, or choose another friction model'
        elif relative > _WRONG and error > _NOISE * noise[j]:
            reason = f'the model leaves {relative:.0f} % of its torque unexplained in {where}'
            advice = 'check its torque signal; excite it more, or over more of its range'
        elif relative > _WRONG:
            usable, reason = True, f'its torque is mostly noise, {noise[j]:.3g} N m beside an error of {error:.3g} N m'
            advice = 'average over more periods of a motion that repeats'
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
    cause: str = '',
) -> tuple[bool, str]:
    """Return whether a result can be used, and the sentence that says it.

    A result with joints that cannot be used is usable for the others, as long as these are half of the joints at least.

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
    cause : str
        What may explain that the model does not explain the torque, or empty.
    """
    total = metrics.relative_error_total
    if doubt:
        rest = f'; even so, {total:.0f} % of the torque is left unexplained' if total > _WRONG else ''
        return False, doubt + rest + (f': {cause}' if rest and cause else '')
    if still_open:
        listed = ', '.join(still_open[:3]) + (', ...' if len(still_open) > 3 else '')
        return False, f'the data leave {len(still_open)} of {base} base parameters open: {listed}; excite all joints'
    wrong = [verdict for verdict in joints if not verdict.usable]
    if total > _WRONG:
        hint = f': {cause}' if cause else ''
        if not cause and judged_by == 'validation':
            hint = ': is it the same arm, in the same units?'
        known = _told(wrong)
        text = f'the model leaves {total:.0f} % of the torque unexplained in {judged_by}{hint}'
        return False, f'{text}; {known}' if known else text
    if not wrong:
        return True, _told([verdict for verdict in joints if verdict.reason])
    if 2 * len(wrong) > len(joints):
        return False, _told(wrong)
    return True, f'usable except {_told(wrong)}'


def _told(verdicts: Sequence[JointVerdict]) -> str:
    """Return what is said of some joints, an advice once for all of whom it holds."""
    found: dict[str, list[str]] = {}
    for verdict in verdicts:
        found.setdefault(verdict.advice, []).append(f'{verdict.joint}: {verdict.reason}')
    return '; '.join('; '.join(filter(None, (*said, advice))) for advice, said in found.items())

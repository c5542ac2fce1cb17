# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Checks of recordings against the robot description: degrees, joints that should stand, unit and sign of torques."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from robotid_ros.arrays import Array, BoolArray
from robotid_ros.data.dataset import Dataset
from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.errors import IdentificationError
from robotid_ros.friction import friction_model
from robotid_ros.identification.config import AT_REST
from robotid_ros.identification.information import Rows, reweighted, solve, solved
from robotid_ros.identification.judge import groups
from robotid_ros.identification.prior import is_placeholder
from robotid_ros.identification.samples import ENOUGH, joint_columns
from robotid_ros.identification.setup import SAY
from robotid_ros.identification.terms import PLAIN, Terms
from robotid_ros.identification.verdict import STILL, moved
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.model.urdf_tree import MOVING, parse_urdf
from robotid_ros.signals import check_motor_side, prior_factors
from robotid_ros.signals.sample_times import late_stamps_remark, velocity_remark
from robotid_ros.signals.screening import steps_remark

_TURNS = 4.0 * np.pi  # rad: few arms turn a joint twice; 13 degrees are a small motion
_OFF, _WRONG, _FAR = 3.0, 5.0, 10.0
"""Factors: what is off by more than errors are; what contradicts a description in the median of the joints, or a speed
limit; an order of magnitude, by which constants differ from motor to motor, and errors of masses, or efforts and their
limits, do not. The masses of a single link may be anything, but not two orders of magnitude off."""
_SLIGHT = 0.02  # of the power that drives a joint, of samples at an extreme, of the largest gravity: as good as none
_LEVEL, _BESIDE = 0.001, 0.25  # of a torque's range: what counts as one value, and as near its end


def require_radians(datasets: Sequence[Dataset], model: RobotModel) -> None:
    """Refuse positions in degrees.

    That is certain where a revolute joint turns more than twice, leaving its range by more than that range
    or exceeding its speed limit five times, and everything fits once it is divided by 57.3.

    Parameters
    ----------
    datasets : sequence of Dataset
    model : RobotModel
        Gives the limits; infinite or empty ones are ignored.

    Raises
    ------
    IdentificationError
        With the name of a joint that shows it.
    """
    limits = model.limits
    revolute = model.revolute
    ranged = revolute & (limits.upper > limits.lower) & np.isfinite(limits.upper - limits.lower)
    span = np.where(ranged, limits.upper - limits.lower, np.inf)
    paced = revolute & (limits.velocity > 0.0) & np.isfinite(limits.velocity)
    for dataset in datasets:
        columns = joint_columns(dataset, model)
        low, high = dataset.q[:, columns].min(axis=0), dataset.q[:, columns].max(axis=0)
        speed = np.abs(dataset.dq[:, columns]).max(axis=0)
        beyond = ranged & (np.maximum(limits.lower - low, high - limits.upper) > span)
        fast = paced & (speed > _WRONG * limits.velocity)
        suspect = (beyond | fast) & (high - low > _TURNS)
        scale = np.pi / 180.0
        within = ~ranged | ((scale * low > limits.lower - 0.1 * span) & (scale * high < limits.upper + 0.1 * span))
        within &= ~paced | (scale * speed < 1.5 * limits.velocity)
        if not (suspect.any() and within[revolute].all()):
            continue
        j = int(np.flatnonzero(suspect)[0])
        allowed = f'from {limits.lower[j]:.4g} to {limits.upper[j]:.4g} rad' if ranged[j] else 'any turn'
        raise IdentificationError(
            f'joint {model.joint_names[j]}: expected positions in rad, got {low[j]:.4g} to {high[j]:.4g} at up to '
            f'{speed[j]:.4g} per second, where the description allows {allowed} at {limits.velocity[j]:.4g} rad/s; '
            'divided by 57.3 every joint is within its limits: the positions are in degrees, convert them'
        )


def held_joints(model: RobotModel) -> tuple[str, ...]:
    """Return the joints of the description that the model holds at zero although they carry it or a part of it."""
    if model.source is None:
        return ()
    joints = [joint for below in parse_urdf(model.source).children.values() for joint in below]
    parents = {joint.child: joint.parent for joint in joints}
    carried = {link.name for links in model.attached for link in links}
    link = parents.get(model.link_names[0])
    while link is not None:
        carried.add(link)
        link = parents.get(link)
    return tuple(
        joint.name
        for joint in joints
        if joint.kind in MOVING and joint.name not in model.joint_names and joint.child in carried
    )


def require_held(joints: Sequence[str], position: Array, model: RobotModel) -> tuple[str, ...]:
    """Refuse motion of joints that the model holds at zero; return a note for each that stands elsewhere.

    The inertia and the gravity of what such a joint moves act on all joints before it, and its acceleration and tilt
    on all behind it, which the model of a subset of the joints has no parameters for.

    Parameters
    ----------
    joints : sequence of str
        All that were recorded.
    position : ndarray, shape (N, len(joints))
        [rad or m]
    model : RobotModel

    Raises
    ------
    IdentificationError
        If one of them moves.
    """
    held = set(held_joints(model))
    notes = []
    for k, joint in enumerate(joints):
        known = position[:, k][np.isfinite(position[:, k])]
        if joint not in held or not len(known):
            continue
        sway, place = float(np.ptp(known)), float(np.median(known))
        if sway > STILL:
            raise IdentificationError(
                f'joint {joint} moves by {sway:.3g} rad (or m) in the recording, and acts on the joints that are '
                f'identified ({", ".join(model.joint_names)}); identify it with them, or record while it stands still'
            )
        if abs(place) > STILL:
            notes.append(
                f'joint {joint} stands at {place:.3g} rad (or m), the model has it at zero: the parameters hold for '
                'this posture of it only'
            )
    return tuple(notes)


def remarks(datasets: Sequence[Dataset], model: RobotModel) -> tuple[str, ...]:
    """Return a sentence for each thing in training data that looks wrong but is not certain.

    Raises
    ------
    IdentificationError
        If a joint that the model holds at zero moves.
    """
    found: dict[str, None] = dict.fromkeys(_one_way(datasets, model))
    for dataset in datasets:
        found |= dict.fromkeys(require_held(dataset.joint_names, dataset.q, model))
        found |= dict.fromkeys(_beyond_limits(dataset, model))
        screening = dataset.provenance.get('screening', {})
        remark = dataset.provenance.get('remark') or late_stamps_remark(screening)
        unused = dataset.provenance.get('filtering', {}).get('warnings', ())
        said = [text for text in (remark, velocity_remark(screening), steps_remark(screening), *unused) if text]
        name = dataset.provenance.get('recording', {}).get('file') or ', '.join(dataset.sources)  # these name each run
        found |= dict.fromkeys(f'{name}: {text}' for text in said)
    return tuple(found)


def _one_way(datasets: Sequence[Dataset], model: RobotModel) -> list[str]:
    """Return a note on joints that move and never turn round, if there are some."""
    q, dq = (_thinned(datasets, model, name) for name in ('q', 'dq'))
    if not len(dq):
        return []
    back = np.minimum(-dq.min(axis=0), dq.max(axis=0))
    names = [model.joint_names[j] for j in np.flatnonzero(moved(q) & (back <= AT_REST * np.abs(dq).max(axis=0)))]
    if not names:
        return []
    return [
        (
            f'{", ".join(names)}: moved in one direction only; its Coulomb friction cannot be told from an offset, and '
            'the model may be wrong in the other direction: record a motion that turns round'
        )
    ]


class Size(NamedTuple):
    """What the size of measured torques says beside the description."""

    doubt: str  # why no controller may be fed by them, or empty
    cause: str  # what may explain that no model of bodies does, or empty
    notes: tuple[str, ...]  # what looks wrong, but is not certain


def torque_size(datasets: Sequence[Dataset], model: RobotModel) -> Size:
    """Compare measured torques with those of the description, or where that has no masses, with its effort limits.

    A torque in mN m, a current, or the torque of a motor before its gear fits as well as one of the joint in N m. The
    factor k_j of each joint's torque over the description's tells (:func:`robotid_ros.signals.prior_factors`):

    - most joints are off by three times and, in the median, by five: a doubt, for published descriptions of one arm
      differ by a factor of two at most. Not all have to be, since constants and gears differ from motor to motor. One
      joint alone has to be off by a hundred times;
    - most factors are negative: a doubt, which states left out do not show: a linear model has negative masses then;
    - factors differ by ten times: a cause, should the model fail. So are currents whose constants nobody gave, whatever
      the configuration calls them; where a model of bodies explains them, other masses are as good a cause;
    - else, what is off in single joints is noted.

    Torques beyond all effort limits are a doubt, those beyond some are noted. Whether the efforts are in one unit at
    all, the search for the set-up asks (:mod:`robotid_ros.identification.setup_search`).

    Parameters
    ----------
    datasets : sequence of Dataset
        In the coordinates of the set-up that was found.
    model : RobotModel
        The arm as it stands and is driven.
    """
    stated = all(dataset.effort and 'unknown' not in dataset.effort for dataset in datasets)
    share = _share_of_efforts(datasets, model)
    beyond, perhaps = _beyond_efforts(share)
    if is_placeholder(model):
        text = (
            'the description has no masses that the efforts could be compared with: they are taken as joint torques in '
            'N m; if they are currents or motor torques, give effort, torque_constants and gear_ratios in the '
            'configuration'
        )
        if len(share):
            text += f"; their root mean square is at most {100.0 * share.max():.2g} % of a joint's limit"
        return Size(beyond, '', perhaps if stated else (*perhaps, text))
    factors = _of_description(datasets, model)
    signed = factors[np.isfinite(factors)]
    known = np.abs(signed)
    if not len(known):
        return Size(beyond, '', perhaps)
    if 2 * np.sum(signed < 0.0) > len(signed):
        text = (
            'the efforts of most joints have the opposite sign of what the masses of the description need: turn their '
            'signs or those of their constants, or set gravity where the arm is mounted otherwise than described; '
            'where springs bear it, take the inertials out of the description'
        )
        return Size(text, '', ())
    cause = ''
    if known.max() > _FAR * known.min():
        cause = (
            f'the efforts are {known.min():.2g} to {known.max():.2g} times what the masses of the description need, '
            'differently in each joint: they may be currents, or torques of motors before their gears, whatever was '
            f'said; {SAY}'
        )
    off = 2 * max(np.sum(known < 1.0 / _OFF), np.sum(known > _OFF)) > len(known)
    size = float(np.exp(np.median(np.log(known))))
    wrong = _WRONG if len(known) > 1 else _FAR**2
    if off and not 1.0 / wrong < size < wrong:
        what, or_else = 'currents, or torques of motors before their gears', ''
        if size > 1.0:
            what = 'torques in another unit, mN m'
            or_else = '; or these are masses of links without motors: then take the inertials out of the description'
        doubt = (
            f'the efforts of most joints are {size:.2g} times what the masses of the description need: they may be '
            f'{what}; {SAY}{or_else}'
        )
        return Size(doubt, cause, ())
    return Size(beyond, cause, (*perhaps, *check_motor_side(factors, model.joint_names)))


def _beyond_efforts(share: Array) -> tuple[str, tuple[str, ...]]:
    """Return a doubt about torques far beyond all effort limits, or a note on those beyond some, which may be wrong."""
    far = share[share > _FAR]
    if not len(far):
        return '', ()
    text = (
        f'the measured torque is {np.median(far):.2g} times the effort limits of the description: expected N m; is it '
        'in mN m?'
    )
    return (text, ()) if len(far) == len(share) else ('', (text,))


def _of_description(datasets: Sequence[Dataset], model: RobotModel) -> Array:
    """Return the factors of torques over the description's, shape (n,), NaN where the data do not determine them.

    Where accelerations are too noisy for that, gravity alone may tell, which needs positions only.
    """
    q, dq, ddq, torque = (_thinned(datasets, model, name) for name in ('q', 'dq', 'ddq', 'tau_filtered'))
    gravity = inverse_dynamics(model, q, np.zeros_like(q), np.zeros_like(q))
    size = gravity.std(axis=0)
    gravity[:, size < _SLIGHT * size.max()] = 0.0  # of an axis that is vertical but for digits
    whole, alone = (prior_factors(torque, each, dq, ddq) for each in (inverse_dynamics(model, q, dq, ddq), gravity))
    return np.where(np.isfinite(whole), whole, alone)


def _share_of_efforts(datasets: Sequence[Dataset], model: RobotModel) -> Array:
    """Return the root mean squares of torques over the effort limits of the joints that have one."""
    effort = model.limits.effort
    torque = np.concatenate([d.tau[:, joint_columns(d, model)] for d in datasets])
    limited = (effort > 0.0) & np.isfinite(effort)
    return np.asarray(np.sqrt(np.mean(torque[:, limited] ** 2, axis=0)) / effort[limited])


def joint_faults(rows: Rows) -> list[tuple[str, str] | None]:
    """Return what is wrong with each joint's measured torque, with an advice, that can be told without masses.

    - Not recorded: the torque is zero, or another number, throughout.
    - Friction, fitted without bounds, drives the joint, and held-out torque is better predicted by it.
    - Saturated: the torque stays at one extreme while that of the model varies.
    """
    samples = rows.samples
    friction = friction_model(PLAIN)
    info = rows.information(friction)
    found = solved(info, reweighted(info, None, np.ones(samples.n)), None)
    own = found[info.base :].reshape(samples.n, -1)
    columns = friction.columns(samples.dq, np.zeros((samples.n, 0)))
    power = np.mean(samples.dq * np.einsum('Nnk,nk->Nn', columns[:, :, :2], own[:, :2]), axis=0)
    model = rows.torque(found[: info.base]) + np.einsum('Nnk,nk->Nn', columns, own)
    drives = power < -_SLIGHT * np.mean(np.abs(samples.dq * samples.target), axis=0)
    if drives.any():  # it may just not be determined: by a joint that never turns round, or hardly any friction
        few = samples.excerpts(ENOUGH)
        terms = Terms.plain(rows.base, samples.n)
        bench = terms.bench(few, groups(few))
        drives &= bench.linear(friction)[0].joints_contradicted_by(bench.linear(None)[0])
    moving, faults = moved(samples.q), []
    at_rest = np.abs(samples.dq) <= AT_REST * np.abs(samples.dq).max(axis=0)
    for j in range(samples.n):
        torque, fault = samples.measured[:, j], None
        if moving[j] and np.ptp(torque) == 0.0:
            size = f'{torque[0]:.3g}' if torque[0] else 'zero'
            fault = f'its torque is {size} throughout', 'record its effort or current'
        elif moving[j] and drives[j]:
            fault = (
                f'its friction would drive it with {-power[j]:.3g} W',
                'check its torque signal; excite it more, or over more of its range',
            )
        elif moving[j] and (share := _clipped(*(each[~at_rest[:, j]] for each in (torque, model[:, j])))) > 0.0:
            fault = (
                f'its torque stands at one extreme in {100.0 * share:.0f} % of the samples: it is saturated',
                'move it more slowly, or raise the limit of the drive or of the signal',
            )
        faults.append(fault)
    return faults


def open_parameters(rows: Rows) -> BoolArray:
    """Return which base parameters no sample depends on, shape (b,).

    The friction has no offset here: on a vertical slide, gravity and an offset are one parameter, which the data
    determine.
    """
    info = rows.information(friction_model(PLAIN)).first(2)
    solution = solve(*info.normal(1.0 / info.power), info.base, None)
    return np.asarray(~solution.determined[: info.base])


def _clipped(torque: Array, model: Array) -> float:
    """Return the share of samples, (N,), that stand at a limit near an extreme, 0 where the torque ends as signals do.

    One value occurs there far more often than any other one near it, and hardly any lies beyond, as where resampling
    overshoots. Quantised torque has levels, of which the last ones are seldom. The crest of a smooth torque, whose
    samples grow as the root of the depth below it, has as many in the next six parts as in the first two. And where a
    torque stands still near its extreme for a reason, as in steady motion, the model's does too.
    """
    if not len(torque):  # a joint whose recorded velocity is zero throughout
        return 0.0
    span = float(np.ptp(torque))
    for distance in (torque.max() - torque, torque - torque.min()):
        level = np.floor(distance / max(_LEVEL * span, 1e-300)).astype(int)
        pairs = np.convolve(np.bincount(level[level * _LEVEL < _BESIDE], minlength=2), [1, 1], 'valid')
        first = int(np.argmax(pairs))  # a value may lie between two levels
        at, beyond = (level == first) | (level == first + 1), np.count_nonzero(level < first)
        other = np.max(np.delete(pairs, np.s_[max(first - 1, 0) : first + 2]), initial=0)
        beside = max(other, np.count_nonzero((level > first + 1) & (level < first + 8)))
        often = at.sum() > max(_OFF * beside, _OFF * beyond, _SLIGHT * len(torque))
        if often and beside and np.std(model[at]) > _OFF * _LEVEL * span:
            return float(at.mean())
    return 0.0


def _thinned(datasets: Sequence[Dataset], model: RobotModel, name: str) -> Array:
    """Return a signal of all datasets in the order of the model's joints, of no more samples than it takes."""
    parts = []
    for dataset in datasets:
        some = slice(None, None, 1 + len(datasets) * len(dataset) // ENOUGH)
        parts.append(getattr(dataset, name)[some][:, joint_columns(dataset, model)])
    return np.concatenate(parts)


def _beyond_limits(dataset: Dataset, model: RobotModel) -> list[str]:
    """Return a note for each joint beyond its limits: another unit, another arm, or another zero position."""
    notes = []
    for j, column in enumerate(joint_columns(dataset, model)):
        position = dataset.q[:, column]
        low, high = float(model.limits.lower[j]), float(model.limits.upper[j])
        beyond = max(low - float(position.min()), float(position.max()) - high)
        if high > low and beyond > 0.1 * (high - low):
            unit = 'rad' if model.joint_types[j] == 'revolute' else 'm'
            notes.append(
                f'joint {model.joint_names[j]} went from {position.min():.4g} to {position.max():.4g} {unit}, its '
                f'limits are {low:.4g} to {high:.4g} {unit}; are the positions in {unit}, and of this arm?'
            )
    return notes

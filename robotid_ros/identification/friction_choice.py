# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A friction model by its name, or of a few the one that predicts held-out states best; and a torque ripple."""

from dataclasses import dataclass, replace

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.friction import FrictionModel, friction_model
from robotid_ros.identification.bench import Bench
from robotid_ros.identification.decision import Alternative, Decision
from robotid_ros.identification.information import BaseRegressor, gather
from robotid_ros.identification.judge import GROUPS, Score, groups
from robotid_ros.identification.ripple import strongest_ripple, with_ripple
from robotid_ros.identification.samples import Samples
from robotid_ros.identification.separable import separable_least_squares
from robotid_ros.identification.terms import PLAIN, Terms

_NAMED = (PLAIN, 'coulomb_viscous+load+offset', 'stribeck+offset', 'stribeck+load+offset', 'daemi_heimann+offset')


@dataclass(frozen=True, slots=True, kw_only=True)
class FrictionChoice:
    """A chosen friction model, its shape parameters and the decisions.

    Attributes
    ----------
    friction : FrictionModel
        With the width of its sign.
    shape : ndarray, shape (n, s)
    decisions : tuple of Decision
    """

    friction: FrictionModel
    shape: Array
    decisions: tuple[Decision, ...]


def named_friction(base: BaseRegressor, samples: Samples, name: str, *, smooth: bool) -> FrictionChoice:
    """Return a friction model by its name, or for 'auto' the best of a few, with its shape parameters.

    Parameters
    ----------
    base : BaseRegressor
    samples : Samples
        A few thousand at most.
    name : str
    smooth : bool
        Take a smooth sign for all joints where it predicts better.
    """
    rigid = base.regressor(samples.q, samples.dq, samples.ddq)
    filtered, recorded = samples.passed(rigid)
    label, tried = groups(samples, GROUPS), []
    if name != 'auto' and not friction_model(name).shape_names and not smooth:
        decision = Decision(subject='friction', chosen=f'{name}, as asked')
        return FrictionChoice(friction=friction_model(name), shape=np.zeros((samples.n, 0)), decisions=(decision,))
    best: tuple[Score, FrictionModel, Array, str] | None = None
    for each in _NAMED if name == 'auto' else (name,):
        for scale in (False, True) if smooth else (False,):
            fit = separable_least_squares(rigid, samples, friction_model(each), fit_scale=scale, filtered=filtered)
            columns = samples.friction_columns(fit.friction, fit.shape, rigid @ fit.base_values)
            own, own_recorded = samples.passed(columns)
            score, _, _ = Bench.of_rows(samples, label, filtered, own, recorded, own_recorded).linear(fit.friction)
            text = f'{each}, {"smooth" if scale else "exact"} sign'
            tried.append(Alternative(name=text, error=score.rmse))
            if best is None or best[0].loses_to(score):
                best = score, fit.friction, fit.shape, text
    assert best is not None
    decision = Decision(subject='friction', chosen=best[3], alternatives=tuple(tried))
    return FrictionChoice(friction=best[1], shape=best[2], decisions=(decision,))


def with_ripple_shown(terms: Terms, samples: Samples) -> tuple[Terms, Decision]:
    """Return terms with a torque ripple in the joints whose held-out torque shows one, and the choice.

    Among a thousand frequencies one fits anything: they are found again without each group that is held out.

    Parameters
    ----------
    terms : Terms
    samples : Samples
        To compare by, with the terms' past.
    """
    limit = min(min(2.0 * run.narrowest, 0.2 * run.rate) for run in samples.runs)
    label = groups(samples, GROUPS)
    rigid = terms.base.regressor(samples.q, samples.dq, samples.ddq)
    own = terms.own(samples, rigid)
    (rigid, rigid_recorded), (own, own_recorded) = samples.passed(rigid), samples.passed(own)
    bench = Bench.of_rows(samples, label, rigid, own, rigid_recorded, own_recorded)
    none, prior, precision = terms.judged(bench, samples)
    values = terms.solved(bench.total, precision, prior)
    linear = values[rigid.shape[2] :].reshape(samples.n, -1)
    residual = samples.target - rigid @ values[: rigid.shape[2]] - np.einsum('Nnk,nk->Nn', own, linear)
    whole, *without = strongest_ripple(samples, residual, own, limit, label)
    tried, text = [Alternative(name='none', error=none.rmse)], 'none'

    def wave(found: Array) -> tuple[Array, Array]:
        rippled = with_ripple(terms.friction, found, limit)
        waves = samples.passed(samples.friction_columns(rippled, terms.shape, samples.target)[..., -2:])
        fit, judge = (np.concatenate(pair, axis=2) for pair in zip((own, own_recorded), waves, strict=True))
        return fit, judge

    def nested(joints: Array, name: str) -> Score:
        fit, judge = wave(np.where(joints, whole, 0.0))
        rippled = replace(terms, friction=with_ripple(terms.friction, np.where(joints, whole, 0.0), limit))
        every = Bench.of_rows(samples, label, rigid, fit, rigid_recorded, judge)
        _, prior, precision = rippled.judged(every, samples)
        squares = []
        for k, found in enumerate(without):
            fit, judge = wave(np.where(joints, found, 0.0))
            rest, held = np.flatnonzero(label != k), np.flatnonzero(label == k)
            info = gather(rigid[rest], fit[rest], samples.target[rest], samples.weight[rest])
            judged = gather(rigid_recorded[held], judge[held], samples.measured[held], samples.weight[held])
            squares.append(judged.residual_squares(rippled.solved(info, precision, prior)))
        score = Score(squares=np.array(squares), count=none.count)
        tried.append(Alternative(name=name, error=score.rmse))
        return score

    joints = whole > 0.0
    if joints.any():
        joints = none.joints_lose_to(nested(joints, 'in every joint')) & joints
    if joints.any() and none.loses_to(nested(joints, 'in these joints')):
        frequency = np.where(joints, whole, 0.0)
        terms = replace(terms, friction=with_ripple(terms.friction, frequency, limit))
        text = ', '.join(f'joint {j + 1} at {frequency[j]:.0f}/rad' for j in np.flatnonzero(joints).tolist())
    return terms, Decision(subject='torque ripple', chosen=text, alternatives=tuple(tried))

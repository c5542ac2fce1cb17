# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Choices before the fit: bandwidth, cutoff and delays of the signals, and the friction model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from robotid_ros.data.dataset import Dataset
from robotid_ros.data.strokes import FrictionStrokes
from robotid_ros.dynamics import BaseParameters
from robotid_ros.errors import IdentificationError
from robotid_ros.friction import friction_model
from robotid_ros.friction.terms import BREAKAWAY_SPEED
from robotid_ros.identification.config import IdentificationConfig
from robotid_ros.identification.decision import Alternative, Decision
from robotid_ros.identification.friction_choice import (
    FrictionChoice,
    add_presliding,
    add_ripple,
    add_spring,
    choose_friction,
    fit_friction_shape,
)
from robotid_ros.identification.prior import Prior
from robotid_ros.identification.rows import Rows
from robotid_ros.identification.samples import Samples, as_samples
from robotid_ros.identification.signal_choice import choose_bandwidth, choose_cutoff, choose_delay, like_training
from robotid_ros.identification.stroke_friction import choose_stroke_model, stroke_friction, tells_static
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.progress import Progress, silent

_SEARCH_SAMPLES = 3000
_RIPPLE_SAMPLES = 2000
_PRESLIDING = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)  # of a joint's range: 0.2 to 60 mrad of two radians


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """Training data with the choices that concern its signals.

    Attributes
    ----------
    datasets : tuple of Dataset
    samples : Samples
        With the bandwidth of the torque signal.
    cutoff : float or None
        Chosen for all recordings [Hz]; None where nothing was chosen.
    delay : float
        Of the torque, taken out of all recordings [s].
    decisions : tuple of Decision
    """

    datasets: tuple[Dataset, ...]
    samples: Samples
    cutoff: float | None
    delay: float
    decisions: tuple[Decision, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The rows of the training data, the chosen friction and, where there are some, friction data."""

    rows: Rows
    choice: FrictionChoice
    strokes: FrictionStrokes | None = None


def samples_of_datasets(datasets: Sequence[Dataset], model: RobotModel, config: IdentificationConfig) -> Samples:
    """Return datasets as samples, weighted at rest as configured."""
    return as_samples(
        datasets, model, standstill_speed=config.standstill_speed, standstill_weight=config.standstill_weight
    )


def prepare(
    datasets: Sequence[Dataset],
    model: RobotModel,
    base: BaseParameters,
    config: IdentificationConfig,
    report: Progress = silent,
) -> Data:
    """Choose the bandwidth of the torque, the cutoff and the delays, and return the samples."""
    plain = partial(samples_of_datasets, model=model, config=config)
    decisions: list[Decision] = []
    bandwidth = config.torque_bandwidth if config.torque_bandwidth > 0.0 else None
    if config.automatic and config.torque_bandwidth == 0.0:
        report(0.02, 'find the bandwidth of the torque')
        bandwidth, decision = choose_bandwidth(base, plain(datasets))
        decisions.append(decision)

    def samples_of(some: Sequence[Dataset]) -> Samples:
        return plain(some).with_bandwidth(bandwidth)

    report(0.08, 'choose the cutoff')
    listed, choice = choose_cutoff(datasets, base, samples_of)
    cutoff = None
    if choice is not None:
        decisions.append(choice)
        cutoff = max(dataset.cutoff for dataset in listed if dataset.unfiltered is not None)
    delay = 0.0
    if config.automatic:
        report(0.15, 'look for a delay of the torque')
        delay, decision = choose_delay(listed, base, samples_of)
        listed = like_training(listed, None, delay)
        decisions.append(decision)
    return Data(
        datasets=tuple(listed), samples=samples_of(listed), cutoff=cutoff, delay=delay, decisions=tuple(decisions)
    )


def choose_model(
    base: BaseParameters,
    samples: Samples,
    config: IdentificationConfig,
    report: Progress,
    strokes: FrictionStrokes | None = None,
) -> Chosen:
    """Choose the friction model, its springs and its torque ripple."""
    report(0.2, 'choose the friction model')
    rows = Rows(base, samples.coarse())
    name = config.friction
    if name == 'auto' and config.estimator == 'bee-colony':
        name = 'daemi_heimann'  # the model the method was published for
    ripple = name == 'auto' or name != without_ripple(name)
    name = without_ripple(name)
    few = _few(rows.samples)
    rigid = base.regressor(few.q, few.dq, few.ddq)
    if strokes is not None:
        choice = _choice_by_strokes(name, strokes)
    elif name == 'auto':
        choice = choose_friction(rigid, few, progress=lambda share, text: report(0.2 + 0.4 * share, text))
    elif not friction_model(name).shape_names and not config.automatic:
        as_asked = Decision(subject='friction', chosen=f'{name}, as asked')
        choice = FrictionChoice(friction=friction_model(name), shape=np.zeros((few.n, 0)), decisions=(as_asked,))
    else:
        choice = fit_friction_shape(rigid, few, name, smooth=config.automatic)
    if config.friction == 'auto' and strokes is None:
        report(0.6, 'look for friction that builds up after a reversal')
        range_ = np.ptp(few.q, axis=0)
        slides = {share: _few(samples.sliding(share * range_).coarse()).slide for share in _PRESLIDING}
        choice = add_presliding(base, few, {share: each for share, each in slides.items() if each is not None}, choice)
        rows = Rows(base, samples.sliding(choice.friction.presliding).coarse())
        few = _few(rows.samples)
        report(0.61, 'look for springs')
        choice = add_spring(base, few, choice)
    if ripple:
        report(0.62, 'look for a torque ripple')
        choice = add_ripple(base, few.excerpts(_RIPPLE_SAMPLES), choice)
    return Chosen(rows=rows, choice=choice, strokes=strokes)


def _few(samples: Samples) -> Samples:
    """Return samples by which friction models are compared."""
    return samples.thinned(_SEARCH_SAMPLES) if samples.open else samples.excerpts(_SEARCH_SAMPLES)


def _choice_by_strokes(name: str, strokes: FrictionStrokes) -> FrictionChoice:
    """Return the friction model asked for, or the one that describes the strokes best, with its shape."""
    alternatives: tuple[Alternative, ...] = ()
    if name == 'auto':
        best, tried = choose_stroke_model(strokes)
        alternatives = tuple(Alternative(name=each, error=error) for each, error in tried)
        name = f'{best}+offset'
    friction = friction_model(name)
    found = stroke_friction(friction, strokes)
    if not tells_static(friction, found, strokes):
        raise IdentificationError(
            f'the friction data do not determine the static friction of {name}: they need strokes below '
            f'{BREAKAWAY_SPEED:g} rad/s of every joint (sweep_slowest); or choose a model without, coulomb_viscous '
            'for example'
        )
    still = [joint for j, joint in enumerate(strokes.joint_names) if not (strokes.joint == j).any()]
    if still and friction.shape_names:
        raise IdentificationError(
            f'the friction data have no stroke of {", ".join(still)}, which {name} needs for its '
            f'{friction.shape_names[0]}; sweep all joints, or choose a model without, coulomb_viscous for example'
        )
    text = f'{friction.name}, by {strokes.count} strokes of {len(strokes.joint_names) - len(still)} joints'
    decision = Decision(subject='friction', chosen=text, alternatives=alternatives)
    return FrictionChoice(friction=friction, shape=found.shape, decisions=(decision,))


def stroke_prior(chosen: Chosen, variance: float = 1.0) -> Prior | None:
    """Return the friction parameters of the strokes as a prior, for rows of this variance; None without strokes.

    The normal equations count correlated samples as independent ones; the strokes are weighted in the same proportion.
    """
    if chosen.strokes is None:
        return None
    found = stroke_friction(chosen.choice.friction, chosen.strokes)
    weight = variance / chosen.rows.samples.independent_per_sample
    return Prior.of_strokes(replace(found, weight=weight), len(chosen.rows.base.independent))


def without_ripple(name: str) -> str:
    """Return a friction model's name without the option ``ripple``, whose frequencies are found in the data."""
    return '+'.join(part for part in name.split('+') if part != 'ripple')

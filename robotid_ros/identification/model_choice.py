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

from robotid_ros.arrays import Array, IntArray
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
from robotid_ros.identification.judge import GROUPS, Score, groups
from robotid_ros.identification.prior import Prior
from robotid_ros.identification.rows import Rows
from robotid_ros.identification.samples import Samples, as_samples
from robotid_ros.identification.signal_choice import (
    Beside,
    choose_bandwidth,
    choose_cutoff,
    choose_delay,
    like_training,
    shifted_alike,
)
from robotid_ros.identification.stroke_friction import choose_stroke_model, stroke_friction, tells_static
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.progress import Progress, silent

_SEARCH_SAMPLES = 3000
_RIPPLE_SAMPLES = 2000
_JUDGED = 30_000  # samples, in stretches, of which signals and friction together see every tenth at least


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """Training data with the choices that concern its signals.

    Attributes
    ----------
    datasets : tuple of Dataset
    samples : Samples
        With the bandwidth of the torque signal.
    bandwidth : float or None
        Of the torque signal [Hz]; None where it is not limited.
    cutoff : float or None
        Chosen for all recordings [Hz]; None where nothing was chosen.
    delay : float
        Of the torque, taken out of all recordings [s].
    decisions : tuple of Decision
    """

    datasets: tuple[Dataset, ...]
    samples: Samples
    bandwidth: float | None
    cutoff: float | None
    delay: float
    decisions: tuple[Decision, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The rows of the training data, the chosen friction and, where there are some, friction data."""

    rows: Rows
    choice: FrictionChoice
    strokes: FrictionStrokes | None = None

    @property
    def beside(self) -> Beside:
        """The friction, for judging signals."""
        return Beside(base=self.rows.base, friction=self.choice.friction, shape=self.choice.shape)


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
        bandwidth, decision = choose_bandwidth(Beside.plain(base, model.n), plain(datasets))
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
        delay, decision = choose_delay(listed, Beside.plain(base, model.n), samples_of)
        listed = like_training(listed, None, delay)
        decisions.append(decision)
    return Data(
        datasets=tuple(listed),
        samples=samples_of(listed),
        bandwidth=bandwidth,
        cutoff=cutoff,
        delay=delay,
        decisions=tuple(decisions),
    )


def choose_signals_and_model(
    datasets: Sequence[Dataset],
    model: RobotModel,
    base: BaseParameters,
    config: IdentificationConfig,
    report: Progress = silent,
    strokes: FrictionStrokes | None = None,
) -> tuple[Data, Chosen]:
    """Choose bandwidth, cutoff and delay of the torque, and the friction beside them.

    Friction that builds up after a reversal looks like a torque that is late or slow, and bandwidth and delay are found
    beside friction that knows no past. Where there are any, the friction is chosen without them too, and they are
    looked for again beside that. They have to predict better than friction alone: a bandwidth by the rule, a delay by
    what contradicts a description.
    """
    data = prepare(datasets, model, base, config, report)
    chosen = choose_model(base, data.samples, config, report, strokes)
    given = max(config.torque_bandwidth, 0.0) or None
    told = (data.bandwidth, data.delay)
    if strokes is not None or config.friction != 'auto' or not config.automatic or told == (given, 0.0):
        return data, chosen
    still = like_training(datasets, data.cutoff, 0.0)
    report(0.65, 'look for bandwidth and delay beside the friction')
    plain = partial(samples_of_datasets, model=model, config=config)

    def way(bandwidth: float | None, delay: float) -> tuple[Data, Chosen]:
        listed = like_training(still, None, delay)
        samples = plain(listed).with_bandwidth(bandwidth)
        one = replace(data, datasets=tuple(listed), samples=samples, bandwidth=bandwidth, delay=delay)
        return one, choose_model(base, samples, config, silent)

    ways = {(given, 0.0): way(given, 0.0), told: (data, chosen)}
    beside = ways[given, 0.0][1].beside
    bandwidth = choose_bandwidth(beside, plain(still))[0] if config.torque_bandwidth == 0.0 else given
    again = bandwidth, choose_delay(still, beside, lambda some: plain(some).with_bandwidth(bandwidth))[0]
    if again not in ways:
        ways[again] = way(*again)
    scores: dict[tuple[float | None, float], Score] = {}
    label: IntArray | None = None
    for signals, (_, one) in ways.items():
        seen = plain(shifted_alike(still, signals[1])).with_bandwidth(signals[0])
        few = one.beside.past(seen).excerpts(_JUDGED).thinned(_SEARCH_SAMPLES)
        label = groups(few, GROUPS) if label is None else label
        scores[signals] = one.beside.score(few, label)[0]
    none, *others = scores
    best = min(others, key=lambda each: scores[each].value)
    proven = scores[none].contradicted_by(scores[best]) if best[1] else scores[none].loses_to(scores[best])
    best = best if proven else none
    decision = Decision(
        subject='signals beside the friction',
        chosen=_signals(*best),
        alternatives=tuple(Alternative(name=_signals(*each), error=score.rmse) for each, score in scores.items()),
    )
    return replace(ways[best][0], decisions=(*data.decisions, decision)), ways[best][1]


def _signals(bandwidth: float | None, delay: float) -> str:
    slow = 'bandwidth not limited' if bandwidth is None else f'bandwidth {bandwidth:.3g} Hz'
    return f'{slow}, delay {1e3 * delay:.3g} ms'


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
        choice = add_presliding(base, few, partial(_slide, samples), choice)
        rows = Rows(base, samples.sliding(choice.friction.presliding).coarse())
        few = _few(rows.samples)
        report(0.61, 'look for springs')
        choice = add_spring(base, few, choice)
    if ripple:
        report(0.62, 'look for a torque ripple')
        choice = add_ripple(base, few.excerpts(_RIPPLE_SAMPLES), choice)
    return Chosen(rows=rows, choice=choice, strokes=strokes)


def _slide(samples: Samples, distance: Array) -> Array:
    """Return what takes the place of the sign of the speed, at the samples by which friction models are compared."""
    few = _few(samples.sliding(distance).coarse())
    return np.full_like(few.q, np.nan) if few.slide is None else few.slide


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

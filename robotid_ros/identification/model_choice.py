# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""From recordings to the rows of the torque model: what is a fact about the signals, and the friction."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from robotid_ros.data.dataset import Dataset
from robotid_ros.data.strokes import FrictionStrokes
from robotid_ros.dynamics import BaseParameters
from robotid_ros.errors import IdentificationError
from robotid_ros.friction import friction_model
from robotid_ros.friction.terms import BREAKAWAY_SPEED
from robotid_ros.identification.config import IdentificationConfig
from robotid_ros.identification.decision import Alternative, Decision
from robotid_ros.identification.friction_choice import FrictionChoice, named_friction, with_ripple_shown
from robotid_ros.identification.prior import Prior, description_prior
from robotid_ros.identification.rows import Rows
from robotid_ros.identification.samples import Samples, as_samples
from robotid_ros.identification.signal_choice import (
    choose_bandwidth,
    choose_cutoff,
    choose_delay,
    like_training,
    usual_cutoff,
    with_cutoff,
)
from robotid_ros.identification.stroke_friction import choose_stroke_model, stroke_friction, tells_static
from robotid_ros.identification.terms import Terms
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.progress import Progress, silent

_FEW, _FEWER = 6000, 3000  # samples by which linear terms, and shapes, are compared


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """Training data with the choices that concern its signals.

    Attributes
    ----------
    datasets : tuple of Dataset
    samples : Samples
        With the bandwidth of the torque signal.
    cutoff : float or None
        For all recordings [Hz]; None where none was filtered.
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
    """The rows of the training data, the friction, its weights and, where there are some, friction data."""

    rows: Rows
    choice: FrictionChoice
    strokes: FrictionStrokes | None = None
    terms: Terms | None = None


def samples_of_datasets(datasets: Sequence[Dataset], model: RobotModel, config: IdentificationConfig) -> Samples:
    """Return datasets as samples, weighted at rest as configured."""
    return as_samples(
        datasets, model, standstill_speed=config.standstill_speed, standstill_weight=config.standstill_weight
    )


def few_of(samples: Samples, at_most: int = _FEW) -> Samples:
    """Return samples by which models are compared."""
    samples = samples.coarse()
    return samples.thinned(at_most) if samples.open else samples.excerpts(at_most)


def choose_signals_and_model(
    datasets: Sequence[Dataset],
    model: RobotModel,
    base: BaseParameters,
    config: IdentificationConfig,
    report: Progress = silent,
    strokes: FrictionStrokes | None = None,
) -> tuple[Data, Chosen]:
    """Choose bandwidth and delay of the torque beside the friction, and the friction.

    Where nothing else is asked for, all friction terms there are take part, weighted by evidence. A friction model by
    its name, or one that friction data chose, takes part as it is, and signals are looked for beside plain friction.
    """
    cutoff = usual_cutoff(datasets)
    listed = with_cutoff(datasets, cutoff)
    plain = partial(samples_of_datasets, model=model, config=config)
    samples = plain(listed)
    weighted = strokes is None and config.friction == 'auto' and config.estimator in ('auto', 'physical')
    terms = Terms.plain(base, model.n)
    if weighted:
        described = description_prior(model, base, rotor_inertia=config.rotor_inertia)
        terms = Terms.all(base, described, samples)
        terms = terms.seen(few_of(terms.past(samples)))
    decisions: list[Decision] = []
    if weighted and cutoff is not None:
        report(0.03, 'choose the cutoff')
        chosen, decision = choose_cutoff(datasets, cutoff, terms, lambda some: terms.past(plain(some)).thinned(_FEWER))
        decisions.append(decision)
        if chosen != cutoff:
            cutoff, listed = chosen, with_cutoff(datasets, chosen)
            samples = plain(listed)
            terms = terms.seen(few_of(terms.past(samples)))
    bandwidth = config.torque_bandwidth if config.torque_bandwidth > 0.0 else None
    delay, still = 0.0, listed

    def late(bandwidth: float | None) -> tuple[float, Decision]:
        return choose_delay(
            still, terms, lambda some: few_of(terms.past(plain(some)).with_bandwidth(bandwidth), _FEWER)
        )

    if config.automatic:
        report(0.05, 'look for a delay of the torque')
        delay, decision = late(bandwidth)
        listed = like_training(still, None, delay)
        samples = plain(listed)
        if config.torque_bandwidth == 0.0:
            report(0.2, 'find the bandwidth of the torque')
            bandwidth, found = choose_bandwidth(terms, few_of(terms.past(samples)))
            decisions.append(found)
        if bandwidth is not None and config.torque_bandwidth == 0.0:  # a slow torque hides how late it is
            delay, decision = late(bandwidth)
            listed = like_training(still, None, delay)
            samples = plain(listed)
        decisions.append(decision)
    samples = samples.with_bandwidth(bandwidth)
    data = Data(datasets=tuple(listed), samples=samples, cutoff=cutoff, delay=delay, decisions=tuple(decisions))
    report(0.45, 'choose the friction')
    if not weighted:
        return data, _named(base, samples, config, strokes)
    few = few_of(terms.past(samples), _FEWER)
    terms = terms.seen(few_of(terms.past(samples)))
    report(0.5, 'look for a torque ripple')
    terms, decision = with_ripple_shown(terms, few)
    text = f'{terms.friction.name}, weighted by evidence'
    choice = FrictionChoice(
        friction=terms.friction, shape=terms.shape, decisions=(Decision(subject='friction', chosen=text), decision)
    )
    return data, Chosen(rows=Rows(base, terms.past(samples).coarse()), choice=choice, terms=terms)


def _named(
    base: BaseParameters, samples: Samples, config: IdentificationConfig, strokes: FrictionStrokes | None
) -> Chosen:
    """Return a friction model by its name, one that friction data chose, or the best of a few."""
    name = config.friction
    if name == 'auto' and config.estimator == 'bee-colony':
        name = 'daemi_heimann'  # the model the method was published for
    ripple, name = name != without_ripple(name), without_ripple(name)
    few = few_of(samples, _FEWER)
    if strokes is not None:
        choice = _choice_by_strokes(name, strokes)
    else:
        choice = named_friction(base, few, name, smooth=config.automatic)
    if ripple:
        terms, decision = with_ripple_shown(Terms(base=base, friction=choice.friction, shape=choice.shape), few)
        choice = replace(choice, friction=terms.friction, decisions=(*choice.decisions, decision))
    return Chosen(rows=Rows(base, samples.coarse()), choice=choice, strokes=strokes)


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

# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""From recordings to the rows of the torque model: what is a fact about the signals, and the friction.

A friction model by its name, or of a few the one that predicts held-out states best; and a torque ripple.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.dataset import Dataset
from robotid_ros.data.strokes import FrictionStrokes
from robotid_ros.dynamics import BaseParameters
from robotid_ros.errors import IdentificationError
from robotid_ros.friction import FrictionModel, friction_model
from robotid_ros.friction.terms import BREAKAWAY_SPEED
from robotid_ros.identification.config import IdentificationConfig
from robotid_ros.identification.information import Rows
from robotid_ros.identification.judge import Alternative, Bench, Decision, Score, groups
from robotid_ros.identification.prior import Prior, description_prior
from robotid_ros.identification.samples import ENOUGH, EXCERPTS, Samples, redundant, samples_of_datasets
from robotid_ros.identification.separable import separable_least_squares
from robotid_ros.identification.setup import SetUp
from robotid_ros.identification.signal_choice import (
    choose_bandwidth,
    choose_cutoff,
    choose_delay,
    choose_lag,
    like_training,
    usual_cutoff,
    with_cutoff,
)
from robotid_ros.identification.stroke_friction import choose_stroke_model, stroke_friction, tells_static
from robotid_ros.identification.terms import PLAIN, Terms
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.progress import Progress, silent
from robotid_ros.signals.filtering import passed_share

_NAMED = (PLAIN, 'coulomb_viscous+load+offset', 'stribeck+offset', 'stribeck+load+offset', 'daemi_heimann+offset')
_FREQUENCIES = (20.0, 1000.0)  # 1/rad: 2 N of a gear of 10 to 4 N of one of 250
_PERIODS = 3.0  # in the joint's range at least: a slower wave is a trend, which ends where the range does
_BLOCK = 250  # frequencies computed at a time
_PER_PERIOD = 12.0  # samples in one of the narrowest low-pass, to look for a ripple


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Training data, the rows of the torque model along them, its friction, and all choices so far.

    Attributes
    ----------
    datasets : tuple of Dataset
    setup : SetUp
        How the recordings differ from the description; taken out of all of them.
    model : RobotModel
        The arm as it stands and is driven in that set-up.
    rows : Rows
    terms : Terms
        The friction with the width of its sign and its shape; with weights, unless it is a model by its name.
    decisions : tuple of Decision
    cutoff : float or None
        For all recordings [Hz]; None where none was filtered.
    delay : float
        Of the torque, taken out of all recordings [s].
    strokes : FrictionStrokes or None
        Friction data.
    """

    datasets: tuple[Dataset, ...]
    setup: SetUp
    model: RobotModel
    rows: Rows
    terms: Terms
    decisions: tuple[Decision, ...]
    cutoff: float | None = None
    delay: float = 0.0
    strokes: FrictionStrokes | None = None

    @property
    def friction(self) -> FrictionModel:
        """The model of the friction."""
        return self.terms.friction

    @property
    def shape(self) -> Array:
        """Shape parameters of the friction, shape (n, s)."""
        return self.terms.shape

    def stroke_prior(self, variance: float = 1.0) -> Prior | None:
        """Return the friction parameters of the strokes as a prior, for rows of this variance; None without strokes.

        The normal equations count correlated samples as independent ones; the strokes are weighted in the same
        proportion.
        """
        if self.strokes is None:
            return None
        found = stroke_friction(self.friction, self.strokes)
        weight = variance / self.rows.samples.independent_per_sample
        return Prior.of_strokes(replace(found, weight=weight), len(self.rows.base.independent))


def named_friction(
    base: BaseParameters, samples: Samples, name: str, *, smooth: bool
) -> tuple[FrictionModel, Array, Decision]:
    """Return a friction model by its name, or for 'auto' the best of a few, its shape parameters, and the choice.

    Parameters
    ----------
    base : BaseParameters
    samples : Samples
        A few thousand at most.
    name : str
    smooth : bool
        Take a smooth sign for all joints where it predicts better.
    """
    rigid = base.regressor(samples.q, samples.dq, samples.ddq)
    both = samples.passed(rigid)
    label, tried = groups(samples), []
    if name != 'auto' and not friction_model(name).shape_names and not smooth:
        decision = Decision(subject='friction', chosen=f'{name}, as asked')
        return friction_model(name), np.zeros((samples.n, 0)), decision
    best: tuple[Score, FrictionModel, Array, str] | None = None
    for each in _NAMED if name == 'auto' else (name,):
        for scale in (False, True) if smooth else (False,):
            model = friction_model(each)
            model, values, own, _ = separable_least_squares(rigid, samples, model, fit_scale=scale, filtered=both[0])
            shape = own[:, len(model.signed) :]
            columns = samples.friction_columns(model, shape, rigid @ values)
            score, _ = Bench.of_rows(samples, label, both, samples.passed(columns)).linear(model)
            text = f'{each}, {"smooth" if scale else "exact"} sign'
            tried.append(Alternative(name=text, error=score.rmse))
            if best is None or best[0].loses_to(score):
                best = score, model, shape, text
    assert best is not None
    decision = Decision(subject='friction', chosen=best[3], alternatives=tuple(tried))
    return best[1], best[2], decision


def with_ripple_shown(terms: Terms, samples: Samples) -> tuple[Terms, Decision]:
    """Return terms with a torque ripple in the joints whose held-out torque shows one, and the choice.

    Parameters
    ----------
    terms : Terms
    samples : Samples
        To compare by, with the terms' past.
    """
    limit = min(min(2.0 * run.narrowest, 0.2 * run.rate) for run in samples.runs)
    label = groups(samples)
    plain = terms.base.regressor(samples.q, samples.dq, samples.ddq)
    rigid, own = samples.passed(plain), samples.passed(terms.own(samples, plain))
    bench = Bench.of_rows(samples, label, rigid, own)
    none, prior, precision = terms.judged(bench, samples)
    values, base = terms.solved(bench.total, precision, prior), plain.shape[2]
    linear = values[base:].reshape(samples.n, -1)
    residual = samples.target - rigid[0] @ values[:base] - np.einsum('Nnk,nk->Nn', own[0], linear)
    frequency = strongest_ripple(samples, residual, own[0], limit)
    if not frequency.any():
        return terms, Decision(subject='torque ripple', chosen='none')
    rippled = replace(terms, friction=with_ripple(terms.friction, frequency, limit))
    waves = samples.passed(samples.friction_columns(rippled.friction, terms.shape, samples.target)[..., -2:])
    wavy = np.concatenate([own[0], waves[0]], axis=2), np.concatenate([own[1], waves[1]], axis=2)
    new, _, _ = rippled.judged(Bench.of_rows(samples, label, rigid, wavy), samples)
    shown = none.joints_contradicted_by(new) & (frequency > 0.0)
    if shown.any():
        terms = replace(terms, friction=with_ripple(terms.friction, np.where(shown, frequency, 0.0), limit))
    text = ', '.join(f'joint {j + 1} at {frequency[j]:.0f}/rad' for j in np.flatnonzero(shown).tolist())
    alternatives = (Alternative(name='none', error=none.rmse), Alternative(name='in every joint', error=new.rmse))
    return terms, Decision(subject='torque ripple', chosen=text or 'none', alternatives=alternatives)


def strongest_ripple(samples: Samples, residual: Array, own: Array, limit: float) -> Array:
    """Return the frequency at which two ripple columns explain most of each joint's residual.

    The grid is as fine as the joint's range of motion allows. Among a thousand frequencies one fits anything a little,
    so that a ripple has to be worth more than that.

    Parameters
    ----------
    samples : Samples
    residual : ndarray, shape (N, n)
        Of the torque as filtered [N m].
    own : ndarray, shape (N, n, k)
        Friction columns, filtered alike: what these explain does not count.
    limit : float
        Fastest ripple that counts [Hz].

    Returns
    -------
    ndarray, shape (n,)
        0 for a joint that moves too little for any [1/rad].
    """
    every = np.arange(len(samples)) if samples.rows is None else samples.rows
    samples = replace(samples, target=residual).coarse(_PER_PERIOD)
    own = own if samples.rows is None else own[np.searchsorted(every, samples.rows)]
    narrowest = np.concatenate([np.full(len(run), run.narrowest) for run in samples.runs])
    frequency = np.zeros(samples.n)
    for j in range(samples.n):
        spread, size = float(np.ptp(samples.q[:, j])), float(np.abs(samples.target[:, j]).max())
        slowest = max(_FREQUENCIES[0], 2.0 * np.pi * _PERIODS / max(spread, 1e-9))
        count = min(int((_FREQUENCIES[1] - slowest) * spread / 1.5), ENOUGH // 4)
        if count < 2 or not size:
            continue
        q, root = samples.q[:, j], np.sqrt(samples.weight[:, j])
        pace = np.abs(samples.dq[:, j]) / (2.0 * np.pi)
        columns = own[:, j] * root[:, None]
        columns = columns / np.maximum(np.abs(columns).max(axis=0), 1e-300)
        target = samples.target[:, j] / size * root
        target = root * (target - columns @ np.linalg.lstsq(columns, target, rcond=1e-5)[0])
        grid = np.linspace(slowest, _FREQUENCIES[1], count)
        # The grid is even, so that all blocks share these; half of the digits are enough to find a peak.
        turns = np.exp(1j * (grid[:_BLOCK, None] - grid[0]) * q).astype(np.complex64)
        paces = (pace / narrowest).astype(np.float32), (pace / limit).astype(np.float32)
        explained = []
        for start in range(0, count, _BLOCK):
            some = grid[start : start + _BLOCK, None].astype(np.float32)
            # A wave that is fast against the motion passes a filter as a tone of its own frequency does.
            passed = passed_share(some * paces[0]) / (1.0 + np.square(np.square(some * paces[1])))
            found = (passed * turns[: len(some)]) @ (target * np.exp(1j * grid[start] * q)).astype(np.complex64)
            explained.append(np.abs(found) ** 2 / np.maximum(passed**2 @ (root**2).astype(np.float32), 1e-30))
        frequency[j] = grid[np.argmax(np.concatenate(explained))]
    return frequency


def with_ripple(friction: FrictionModel, frequency: Array, limit: float) -> FrictionModel:
    """Return a friction model with a ripple added to some of its joints."""
    name = friction.name if 'ripple' in friction.name else f'{friction.name}+ripple'
    return friction_model(
        name,
        velocity_scale=friction.velocity_scale,
        ripple_frequency=frequency,
        ripple_limit=limit,
        middle=friction.middle,
        presliding=friction.presliding,
        lag=friction.lag,
    )


_MOST_SAMPLES = 60_000  # without redundant ones; of more, the choices look at stretches


def few_of(samples: Samples, at_most: int = ENOUGH) -> Samples:
    """Return samples by which models are compared."""
    samples = samples.coarse()
    return samples.thinned(at_most) if samples.open else samples.excerpts(at_most)


def choose_signals_and_model(
    datasets: Sequence[Dataset],
    model: RobotModel,
    base: BaseParameters,
    config: IdentificationConfig,
    setup: SetUp,
    report: Progress = silent,
    strokes: FrictionStrokes | None = None,
) -> Chosen:
    """Choose bandwidth and delay of the torque beside the friction, and the friction.

    Where nothing else is asked for, all friction terms there are take part, weighted by evidence. A friction model by
    its name, or one that friction data chose, takes part as it is, and signals are looked for beside plain friction.
    """
    cutoff = usual_cutoff(datasets)
    some = _some(datasets, cutoff)
    listed = with_cutoff(some, cutoff)
    plain = partial(samples_of_datasets, model=model, config=config)
    samples = plain(listed)
    weighted = strokes is None and config.friction == 'auto' and config.estimator in ('auto', 'physical')
    terms = Terms.plain(base, model.n)

    def few(whole: Samples, at_most: int = ENOUGH) -> Samples:
        return few_of(whole, at_most).sliding(terms.friction, whole)

    if weighted:
        described = description_prior(model, base, samples, rotor_inertia=config.rotor_inertia)
        terms = Terms.all(base, described, samples)
        terms = terms.seen(few(samples))
    decisions: list[Decision] = []
    if weighted and cutoff is not None:
        report(0.03, 'choose the cutoff')

        def spread(tried: Sequence[Dataset]) -> Samples:
            return (whole := plain(tried)).thinned(ENOUGH // 2).sliding(terms.friction, whole)

        chosen, decision = choose_cutoff(some, cutoff, terms, spread)
        decisions.append(decision)
        if chosen != cutoff:
            cutoff, listed = chosen, with_cutoff(some, chosen)
            samples = plain(listed)
            terms = terms.seen(few(samples))
    bandwidth = config.torque_bandwidth if config.torque_bandwidth > 0.0 else None
    delay = 0.0
    if config.automatic:
        report(0.05, 'look for a delay of the torque')
        delay, decision = choose_delay(
            listed, terms, lambda tried: few(plain(tried).with_bandwidth(bandwidth), ENOUGH // 2)
        )
        decisions.append(decision)
        samples = plain(listed := like_training(listed, None, delay))
        if config.torque_bandwidth == 0.0:
            report(0.2, 'find the bandwidth of the torque')
            bandwidth, decision = choose_bandwidth(terms, few(samples))
            decisions.append(decision)
    if weighted:
        report(0.3, 'look for friction that turns late')
        passed = samples.with_bandwidth(bandwidth)
        lag, decision = choose_lag(terms, few_of(passed, ENOUGH // 2), passed)
        decisions.append(decision)
        terms = terms.late(lag)
        if lag and config.torque_bandwidth == 0.0:  # friction that turns late looked like a slow torque
            bandwidth, decisions[-2] = choose_bandwidth(terms, few(samples))
    samples = samples.with_bandwidth(bandwidth)
    whole = samples
    if any(each is not part for each, part in zip(datasets, some, strict=True)):
        listed = like_training(datasets, cutoff, delay, thinned=True)
        whole = plain(listed).with_bandwidth(bandwidth)
    report(0.45, 'choose the friction')
    if weighted:
        terms = terms.seen(few(samples))
        report(0.5, 'look for a torque ripple')
        terms, decision = with_ripple_shown(terms, few(samples, ENOUGH // 2))
        text = f'{terms.friction.name}, weighted by evidence'
        decisions += [Decision(subject='friction', chosen=text), decision]
        rows = Rows(base, whole.coarse().sliding(terms.friction, whole))
    else:
        rows = Rows(base, whole.coarse())
        terms, found = _named(base, few_of(samples, ENOUGH // 2), config, strokes)
        decisions += found
    return Chosen(
        datasets=tuple(listed),
        setup=setup,
        model=model,
        rows=rows,
        terms=terms,
        decisions=tuple(decisions),
        cutoff=cutoff,
        delay=delay,
        strokes=strokes,
    )


def _some(datasets: Sequence[Dataset], cutoff: float | None) -> list[Dataset]:
    """Return as much of long recordings as choices are made by, with a cutoff [Hz] or as they are."""
    whole = sum(len(each) / each.rate for each in datasets)
    result = []
    for each in datasets:
        most = _MOST_SAMPLES * redundant(each.rate, each.cutoff if cutoff is None else cutoff)
        result.append(each.excerpts(most / each.rate * (len(each) / each.rate / whole), EXCERPTS))
    return result


def _named(
    base: BaseParameters, few: Samples, config: IdentificationConfig, strokes: FrictionStrokes | None
) -> tuple[Terms, list[Decision]]:
    """Return a friction model by its name, one that friction data chose, or the best of a few, and the choices."""
    name = config.friction
    if name == 'auto' and config.estimator == 'bee-colony':
        name = 'daemi_heimann'  # the model the method was published for
    ripple, name = name != without_ripple(name), without_ripple(name)
    if strokes is not None:
        friction, shape, decision = _by_strokes(name, strokes)
    else:
        friction, shape, decision = named_friction(base, few, name, smooth=config.automatic)
    terms = Terms(base=base, friction=friction, shape=shape)
    if not ripple:
        return terms, [decision]
    terms, found = with_ripple_shown(terms, few)
    return terms, [decision, found]


def _by_strokes(name: str, strokes: FrictionStrokes) -> tuple[FrictionModel, Array, Decision]:
    """Return the friction model asked for, or the one that describes the strokes best, its shape, and the choice."""
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
    return friction, found.shape, Decision(subject='friction', chosen=text, alternatives=alternatives)


def without_ripple(name: str) -> str:
    """Return a friction model's name without the option ``ripple``, whose frequencies are found in the data."""
    return '+'.join(part for part in name.split('+') if part != 'ripple')

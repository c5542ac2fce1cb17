# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""Folds of regions, what is chosen by them, and what the data leave open."""

from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import pytest
from identification_helpers import TWO_LINKS, dataset, fourier_motion, pinocchio_torque

from robotid_ros.data import Dataset, Recording, process_recording
from robotid_ros.dynamics import base_parameters
from robotid_ros.friction import friction_model
from robotid_ros.identification import IdentificationConfig, identify
from robotid_ros.identification.cross_validation import Folds
from robotid_ros.identification.prior import Prior
from robotid_ros.identification.samples import SampledRun, Samples, as_samples
from robotid_ros.identification.shrinkage import choose_prior
from robotid_ros.identification.signal_choice import choose_cutoff
from robotid_ros.model import RobotModel


def samples_of(data: Dataset) -> Samples:
    return as_samples([data], RobotModel.from_urdf(TWO_LINKS), standstill_speed=0.0, standstill_weight=1.0)


def test_regions_are_groups_of_neighbouring_positions() -> None:
    """One joint moves: its regions are intervals, of about one length, however often they are visited."""
    time = np.linspace(0.0, 20.0, 2001)
    moving = 0.8 * np.sin(0.9 * time) + 0.3 * np.sin(2.3 * time)
    q = np.stack([moving, 0.4 + 1e-5 * np.sin(40.0 * time)], axis=1)
    motion = (time, q, np.gradient(q, time, axis=0), np.zeros_like(q))
    folds = Folds.of_regions(samples_of(dataset(RobotModel.from_urdf(TWO_LINKS), motion, np.zeros_like(q))))
    assert set(folds.fold.tolist()) == {0, 1, 2, 3}
    within = [(moving[folds.fold == k].min(), moving[folds.fold == k].max()) for k in range(4)]
    within.sort()
    assert all(before[1] < after[0] for before, after in pairwise(within))
    lengths = [high - low for low, high in within]
    assert max(lengths) < 2.5 * min(lengths)
    assert len({(a, b) for a, b in zip(folds.stretch, folds.fold, strict=True)}) == len(set(folds.stretch.tolist()))


@dataclass(frozen=True)
class Polynomial:
    """A stand-in for the dynamics of one joint: Y = [q, q^2, ...]."""

    degree: int
    independent: np.ndarray = field(default_factory=lambda: np.zeros(0))
    map: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    names: tuple[str, ...] = ()

    def regressor(self, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
        return np.stack([q ** (k + 1) for k in range(self.degree)], axis=2)


@pytest.mark.parametrize('degree', [3, 9])
def test_a_weight_is_chosen_that_holds_where_the_arm_has_not_been(degree: int) -> None:
    """A polynomial of high degree passes through every stretch of time and fails in a region that was left out."""
    time = np.arange(3000) / 100.0
    q = np.sin(0.5 * time + 0.08 * time**2)  # faster each time, so that no state repeats
    dq = np.gradient(q, time)
    rng = np.random.default_rng(0)
    torque = 3.0 * np.sin(1.5 * q) + 0.5 * np.sign(dq) + 0.3 * np.cos(9.0 * q) + 0.01 * rng.standard_normal(q.shape)
    columns = [each[:, None] for each in (q, dq, 0.0 * q, torque, torque, np.ones_like(q))]
    run = SampledRun(start=0, stop=len(q), rate=100.0, cutoff=None, bandwidth=None, recording=0)
    samples = Samples(
        **dict(zip(('q', 'dq', 'ddq', 'target', 'measured', 'weight'), columns, strict=True)), runs=(run,)
    )
    prior = Prior(mean=np.zeros(degree), precision=np.eye(degree))
    friction = friction_model('coulomb_viscous+offset')
    _, held_out, decisions = choose_prior(Polynomial(degree), samples, friction, np.zeros((1, 0)), None, prior)
    in_time, in_space = ({each.name: float(each.error[0]) for each in one.alternatives} for one in decisions)
    assert set(in_time) == set(in_space)
    best = min(in_time, key=in_time.__getitem__)
    if degree == 3:
        chosen = decisions[0].chosen
        assert decisions[1].chosen == 'no clear gain by another'
        assert in_time[chosen] <= 1.02 * in_time[best]
    else:
        chosen = decisions[1].chosen
        assert in_space[chosen] < 0.2 * in_space[best]
        assert in_space[chosen] <= 1.02 * min(in_space.values())
    assert [float(each.rmse[0]) for each in held_out] == [in_time[chosen], in_space[chosen]]


def test_friction_that_the_data_leave_open_stays_small_in_the_physically_consistent_fit() -> None:
    """The elbow turns one way only: its Coulomb friction and its offset are one column."""
    model, time = RobotModel.from_urdf(TWO_LINKS), np.arange(1500) / 100.0
    pace = np.stack([np.cos(1.3 * time), 0.1 + 0.09 * np.cos(2.1 * time)], axis=1)
    q = np.stack([np.sin(1.3 * time) / 1.3, 0.1 * time + 0.09 * np.sin(2.1 * time) / 2.1], axis=1)
    motion = (time, q, pace, np.gradient(pace, time, axis=0))
    rng = np.random.default_rng(0)
    torque = pinocchio_torque(model, *motion[1:]) + 0.5 * np.sign(pace) + 0.05 * rng.standard_normal(q.shape)
    config = IdentificationConfig(friction='coulomb_viscous+offset', estimator='physical', torque_bandwidth=-1.0)
    far = replace(model, inertial=model.inertial * np.array([[0.01], [30.0]]))  # so that the description weighs little
    result = identify(dataset(model, motion, torque), far, config=config)
    assert result.metrics['training'].relative_error_total < 5.0
    assert np.abs(result.friction_values).max() < 2.0


@pytest.mark.parametrize('noise', [0.0, 3.0])
def test_noise_that_looks_like_fast_motion_does_not_take_the_slow_cutoffs_away(noise: float) -> None:
    model, rng = RobotModel.from_urdf(TWO_LINKS), np.random.default_rng(0)
    time, q, dq, ddq = fourier_motion(2, rng, size=0.9)
    torque = pinocchio_torque(model, q, dq, ddq) + 2.0 * np.sign(dq) + 0.05 * rng.standard_normal(q.shape)
    data = process_recording(Recording(joint_names=model.joint_names, time=time, position=q, effort=torque))
    data = replace(data, dq=data.dq + noise * rng.standard_normal(data.dq.shape))
    base = base_parameters(model, rotor_inertia=False)
    _, decision = choose_cutoff([data], base, lambda datasets: samples_of(datasets[0]))
    assert decision is not None
    tried = [float(each.name.removesuffix(' Hz')) for each in decision.alternatives]
    assert len(tried) > 4
    assert min(tried) < 5.0
    assert max(tried) == pytest.approx(40.0, rel=0.01) if noise else max(tried) < 40.0


def test_an_arm_a_thousand_times_as_heavy_has_a_thousand_times_the_parameters() -> None:
    """The physically consistent fit knows no size of arms."""
    light, rng = RobotModel.from_urdf(TWO_LINKS), np.random.default_rng(0)
    motion = fourier_motion(2, rng, size=0.9)
    torque = (
        pinocchio_torque(light, *motion[1:]) + 2.0 * np.sign(motion[2]) + 0.5 * rng.standard_normal(motion[1].shape)
    )
    config = IdentificationConfig(friction='coulomb_viscous+offset', estimator='physical', torque_bandwidth=-1.0)
    found = []
    for factor in (1.0, 1000.0):
        model = replace(light, inertial=factor * light.inertial, rotor_inertia=factor * light.rotor_inertia)
        result = identify(dataset(model, motion, factor * torque), model, config=config)
        found.append(np.concatenate([result.friction_values.ravel(), result.base_values]) / factor)
    assert found[1] == pytest.approx(found[0], rel=5e-3, abs=5e-3 * np.abs(found[0]).max())


@pytest.mark.parametrize(
    ('description', 'size', 'ripple', 'noise', 'chosen', 'largest'),
    [
        # A ripple that no model has: 2.1 % without the weight.
        ([0.6, 1.5], 0.3, 1.0, 0.3, 'yes, with the weight of the description', 1.8),
        # Noise only and no masses, so that the weight draws to an arm of nothing: 10.8 % with it.
        ([0.0, 0.0], 0.1, 0.0, 1.0, 'yes', 6.0),
    ],
)
def test_the_weight_of_the_description_counts_for_bodies_where_it_predicts_better(
    description: list[float], size: float, ripple: float, noise: float, chosen: str, largest: float
) -> None:
    model = RobotModel.from_urdf(TWO_LINKS)

    def data(size: float, seed: int, ripple: float, noise: float) -> Dataset:
        motion = fourier_motion(2, np.random.default_rng(seed), size=size)
        torque = pinocchio_torque(model, *motion[1:]) + 0.5 * np.sign(motion[2]) + ripple * np.cos(9.0 * motion[1])
        return dataset(model, motion, torque + noise * np.random.default_rng(seed + 9).standard_normal(torque.shape))

    arm = replace(model, inertial=np.array(description)[:, None] * model.inertial)
    config = IdentificationConfig(friction='coulomb_viscous', torque_bandwidth=-1.0)
    result = identify(data(size, 0, ripple, noise), arm, validation=data(0.9, 50, 0.0, 0.0), config=config)
    decision = next(each for each in result.decisions if each.subject == 'bodies that can exist')
    assert decision.chosen == chosen
    assert len(decision.alternatives) == 6
    assert result.metrics['validation'].relative_error_total < largest


def test_the_model_that_predicts_stretches_must_hold_in_regions_too() -> None:
    """A square torque in the position: what fits it in every stretch of a short recording fails elsewhere."""
    model, rng = RobotModel.from_urdf(TWO_LINKS), np.random.default_rng(2)
    motion = tuple(signal[:250] for signal in fourier_motion(2, rng, size=0.5))
    torque = pinocchio_torque(model, *motion[1:]) + np.array([3.0, 1.0]) * np.sign(motion[2])
    torque += np.array([1.0, 3.0]) * np.sign(np.sin(20.0 * motion[1])) + 0.3 * rng.standard_normal(torque.shape)
    result = identify(dataset(model, motion, torque), model)
    decision = next(each for each in result.decisions if each.subject == 'model')

    def log_error(error: np.ndarray) -> float:
        """Of the mean over the joints, and of all joints together."""
        return float(0.5 * np.mean(np.log(error)) + 0.5 * np.log(np.sqrt(np.mean(error**2))))

    near = {each.name: log_error(each.error) for each in decision.alternatives}
    afar = {name: near.pop(f'{name}, in regions left out') for name in list(near) if 'regions' not in name}
    assert len(near) == len(afar) == 3
    both = {name: 0.5 * (near[name] + afar[name]) for name in near}
    assert decision.chosen == min(both, key=lambda name: both[name])
    assert both[decision.chosen] < both['as chosen'] - 0.02
    assert near['as chosen'] < near[decision.chosen] - 0.2  # the best in stretches was not taken
    assert result.friction.name == 'coulomb_viscous+offset'
    assert result.torque_bandwidth is None

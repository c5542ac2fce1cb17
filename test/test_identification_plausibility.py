# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""What identify says of data that cannot be right, and what it takes for evidence of a torque ripple."""

import numpy as np
import pytest
from identification_helpers import TWO_LINKS, dataset, fourier_motion, pinocchio_torque

from robotid_ros.data import Dataset
from robotid_ros.errors import IdentificationError, ModelWarning
from robotid_ros.identification import IdentificationConfig, identify
from robotid_ros.identification.cross_validation import stretches
from robotid_ros.identification.plausibility import held_joints
from robotid_ros.identification.ripple import Unexplained, find_ripple
from robotid_ros.identification.samples import Samples, as_samples
from robotid_ros.model import RobotModel

PLAIN = IdentificationConfig(friction='coulomb_viscous+offset', torque_bandwidth=-1.0)


def arm() -> RobotModel:
    return RobotModel.from_urdf(TWO_LINKS)


def shoulder_alone() -> RobotModel:
    with pytest.warns(ModelWarning, match='joints held at zero'):
        return RobotModel.from_urdf(TWO_LINKS, joints=('shoulder',))


def measured(seed: int = 0) -> tuple[RobotModel, tuple[np.ndarray, ...], np.ndarray]:
    model, rng = arm(), np.random.default_rng(seed)
    motion = fourier_motion(2, rng, size=0.9)
    dq = motion[2]
    torque = pinocchio_torque(model, *motion[1:]) + 2.0 * np.sign(dq) + dq + 0.05 * rng.standard_normal(dq.shape)
    return model, motion, torque


def test_sound_data_get_no_notes() -> None:
    model, motion, torque = measured()
    data = dataset(model, motion, torque)
    assert identify(data, model, config=PLAIN, validation=data).notes == ()
    result = identify(data, model, config=PLAIN)
    assert result.usable
    (note,) = result.notes
    assert note.startswith('no other motion judged the model: in regions that were left out it leaves ')


def test_degrees_are_refused_by_name() -> None:
    model, (time, *motion), torque = measured()
    degrees = tuple(np.degrees(x) for x in motion)
    with pytest.raises(IdentificationError, match=r'joint (shoulder|elbow): expected positions in rad.*degrees'):
        identify(dataset(model, (time, *degrees), torque), model, config=PLAIN)


def test_motion_a_little_beyond_the_limits_is_no_proof_of_degrees() -> None:
    model, (time, q, dq, ddq), _ = measured()
    q = q + np.array([1.5, 0.0])
    torque = pinocchio_torque(model, q, dq, ddq) + 2.0 * np.sign(dq) + dq
    assert identify(dataset(model, (time, q, dq, ddq), torque), model, config=PLAIN).usable


@pytest.mark.parametrize(
    ('factors', 'words'),
    [
        ([-1.0, 1.0], 'set-up: the torque of shoulder has the wrong sign'),
        ([1.0, 2.5], 'joint elbow: measured torque is 2'),
    ],
    ids=['reversed', 'scaled'],
)
def test_a_torque_of_another_sign_or_scale_is_noted(factors: list[float], words: str) -> None:
    model, motion, torque = measured()
    result = identify(dataset(model, motion, torque * np.array(factors)), model, config=PLAIN)
    assert any(note.startswith(words) for note in result.notes)


def test_torque_in_millinewton_metres_is_not_usable() -> None:
    model, motion, torque = measured()
    result = identify(dataset(model, motion, 1000.0 * torque), model, config=PLAIN)
    assert not result.usable
    assert 'mN m' in result.reason


@pytest.mark.parametrize('order', [('shoulder', 'elbow'), ('elbow', 'shoulder')])
def test_a_joint_that_is_held_must_not_move(order: tuple[str, str]) -> None:
    model, motion, torque = measured()
    columns = [model.joint_names.index(name) for name in order]
    data = dataset(model, (motion[0], *(x[:, columns] for x in motion[1:])), torque[:, columns], joint_names=order)
    first = shoulder_alone()
    assert held_joints(first) == ('elbow',)
    with pytest.raises(IdentificationError, match='joint elbow moves by'):
        identify(data, first, config=PLAIN)


def test_a_held_joint_elsewhere_than_zero_is_noted() -> None:
    model, (time, q, dq, ddq), _ = measured()
    q, dq, ddq = q * [1, 0] + [0, 0.7], dq * [1, 0], ddq * [1, 0]
    torque = pinocchio_torque(model, q, dq, ddq) + 2.0 * np.sign(dq) + dq
    first = shoulder_alone()
    result = identify(dataset(model, (time, q, dq, ddq), torque), first, config=PLAIN)
    assert any(note.startswith('joint elbow stands at 0.7') for note in result.notes)


def samples_of(data: Dataset) -> Samples:
    return as_samples([data], arm(), standstill_speed=0.02, standstill_weight=0.01)


def test_what_repeats_stays_in_one_stretch() -> None:
    model, motion, torque = measured()
    twice = tuple(np.concatenate([x, x]) for x in motion[1:])
    time = np.arange(2 * len(torque)) / 100.0
    samples = samples_of(dataset(model, (time, *twice), np.concatenate([torque, torque])))
    label = stretches(samples)
    half = len(torque)
    assert set(label.tolist()) == set(range(12))
    assert (label[:half] == label[half:]).mean() > 0.95
    once = stretches(samples_of(dataset(model, motion, torque)))
    assert (np.diff(once) >= 0).mean() > 0.95  # a motion that does not repeat is cut in order of time


@pytest.mark.parametrize('seed', range(4))
def test_errors_at_reversals_are_no_ripple(seed: int) -> None:
    """A bump wherever a joint turns, of the height and width that the blur of Coulomb friction leaves."""
    model, motion, torque = measured(seed)
    samples, rng = samples_of(dataset(model, motion, torque)), np.random.default_rng(seed)
    dq = motion[2]
    bumps = rng.normal(0.0, 1.0, (12, 2))[stretches(samples)] * np.exp(-((dq / 0.03) ** 2))
    evidence = _evidence(samples, bumps + 0.02 * rng.standard_normal(dq.shape))
    assert not evidence.frequency.any()


def test_a_ripple_is_found_where_there_is_one() -> None:
    model, motion, torque = measured()
    samples, rng = samples_of(dataset(model, motion, torque)), np.random.default_rng(1)
    wave = np.array([0.5, 0.0]) * np.sin(100.0 * motion[1] + 0.4)
    pace = 100.0 * np.abs(motion[2]) / (2.0 * np.pi)
    evidence = _evidence(samples, wave / (1.0 + (pace / 20.0) ** 4) + 0.1 * rng.standard_normal(wave.shape))
    assert evidence.frequency[0] == pytest.approx(100.0, abs=1.5)
    assert evidence.frequency[1] == 0.0
    assert evidence.predicted[0] > 0.5


def _evidence(samples: Samples, residual: np.ndarray):
    own = np.stack([np.sign(samples.dq), samples.dq, np.ones_like(samples.dq)], axis=2)
    unexplained = Unexplained(filtered=residual, recorded=residual, own=own, own_recorded=own)
    return find_ripple(samples, unexplained, 20.0, stretches(samples) % 4)

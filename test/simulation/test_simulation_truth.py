# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The arm that is simulated: always one that can exist, equal for equal seeds, and kept in a file."""

from dataclasses import replace

import numpy as np
import pytest
from errors_helpers import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from simulation_helpers import CRANE, FLYWHEEL, UR10E, pinocchio_model, pinocchio_torque

from robotid_ros.errors import DataError, ModelError
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import split_inertial_parameters
from robotid_ros.simulation import (
    ArmTruth,
    Drive,
    JointFriction,
    nominal_truth,
    perturb,
    prior_friction,
    read_truth,
    write_truth,
)

MODEL = RobotModel.from_urdf(UR10E)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32), scale=st.floats(0.01, 0.3))
def test_every_perturbed_link_is_a_body_that_can_exist(seed: int, scale: float) -> None:
    truth = perturb(MODEL, np.random.default_rng(seed), scale)
    for mass, _, inertia in zip(*split_inertial_parameters(truth.model.inertial), strict=True):
        moments = np.linalg.eigvalsh(inertia)
        assert mass > 0.0
        assert moments[0] > 0.0
        assert moments[0] + moments[1] > moments[2]
    ratio = truth.model.inertial[:, 9] / MODEL.inertial[:, 9]
    assert (np.abs(ratio - 1.0) <= scale).all()
    assert np.abs(truth.model.inertial - MODEL.inertial).max() > 0.0
    np.testing.assert_array_equal(truth.model.placements, MODEL.placements)


def test_no_perturbation_is_the_described_arm() -> None:
    truth = perturb(MODEL, np.random.default_rng(0), 0.0, friction_scale=0.0)
    np.testing.assert_array_equal(truth.model.inertial, MODEL.inertial)
    np.testing.assert_array_equal(truth.model.rotor_inertia, MODEL.rotor_inertia)
    np.testing.assert_array_equal(truth.friction.coulomb, MODEL.friction)
    np.testing.assert_array_equal(truth.friction.viscous, MODEL.damping)


def test_equal_seeds_draw_equal_arms() -> None:
    first, second, other = (perturb(MODEL, np.random.default_rng(seed)) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first.model.inertial, second.model.inertial)
    np.testing.assert_array_equal(first.friction.viscous, second.friction.viscous)
    assert (first.friction.coulomb != other.friction.coulomb).all()


def test_friction_and_rotors_stay_within_their_share() -> None:
    truth = perturb(MODEL, np.random.default_rng(1), friction_scale=0.5, breakaway_ratio=0.3)
    for drawn, described in (
        (truth.friction.coulomb, MODEL.friction),
        (truth.friction.viscous, MODEL.damping),
        (truth.model.rotor_inertia, MODEL.rotor_inertia),
    ):
        ratio = drawn / described
        assert ((ratio >= 0.5) & (ratio <= 1.5)).all()
        assert np.ptp(ratio) > 0.1
    np.testing.assert_allclose(truth.friction.breakaway, 0.3 * truth.friction.coulomb)


def test_a_urdf_without_friction_gets_a_typical_one() -> None:
    friction = prior_friction(RobotModel.from_urdf(FLYWHEEL))
    assert friction.coulomb == pytest.approx([0.04 * 100.0])
    assert friction.viscous == pytest.approx([0.06 * 100.0 / 50.0])
    kept = prior_friction(RobotModel.from_urdf(CRANE))
    np.testing.assert_array_equal(kept.coulomb, [2.0, 1.0, 5.0])


@pytest.mark.parametrize(
    ('options', 'about'),
    [
        ({'scale': 0.5}, {'name': 'scale', 'expected': (0.0, 0.3), 'found': 0.5}),
        ({'scale': -0.1}, {'name': 'scale', 'found': -0.1}),
        ({'friction_scale': 1.0}, {'name': 'friction_scale', 'expected': (0.0, 0.9)}),
        ({'breakaway_ratio': -1.0}, {'name': 'breakaway_ratio', 'found': -1.0}),
        ({'torque_constant': [0.1]}, {'name': 'torque_constant', 'expected': (6,), 'found': (1,)}),
        ({'torque_constant': [0.0] * 6}, {'name': 'torque_constant', 'found': 0.0}),
        ({'friction': JointFriction.none(2)}, {'name': 'friction', 'expected': 6, 'found': 2}),
    ],
)
def test_numbers_out_of_range_are_refused(options: dict, about: dict) -> None:
    with refused(ModelError, **about):
        perturb(MODEL, np.random.default_rng(0), **options)


@pytest.mark.parametrize(
    ('options', 'name', 'found'),
    [
        ({'coulomb': [-1.0], 'viscous': [1.0]}, 'coulomb', -1.0),
        ({'coulomb': [1.0], 'viscous': [1.0, 2.0]}, 'viscous', (2,)),
        ({'coulomb': [1.0], 'viscous': [1.0], 'stribeck_velocity': [0.0]}, 'stribeck_velocity', 0.0),
        ({'coulomb': [1.0], 'viscous': [1.0], 'arctan_rate': [-1.0]}, 'arctan_rate', -1.0),
        (
            {'coulomb': [1.0], 'viscous': [1.0], 'arctan_gain': [-1.0], 'arctan_rate': [5.0]},
            'coulomb',
            pytest.approx(1.0 - np.pi / 2.0),
        ),
    ],
)
def test_friction_of_the_wrong_sign_is_refused(options: dict, name: str, found: object) -> None:
    with refused(ModelError, name=name, found=found):
        JointFriction(**{name: np.array(value) for name, value in options.items()})


class TestFile:
    def test_holds_everything(self, tmp_path) -> None:
        friction = replace(prior_friction(MODEL), arctan_gain=np.linspace(-1.0, 4.0, 6), arctan_rate=np.full(6, 7.0))
        options = {'breakaway_ratio': 0.2, 'friction': friction, 'torque_constant': np.linspace(0.1, 0.2, 6)}
        truth = perturb(MODEL, np.random.default_rng(2), geometry_error=0.02, **options)
        parts = {name: np.linspace(0.0, size, 6) for name, size in (('load_friction', 0.1), ('ripple', 2.0))}
        truth = replace(truth, drive=Drive(**parts, compliance=np.full(6, 1e-5), delay=0.004))
        path = tmp_path / 'truth.yaml'
        write_truth(path, truth)
        again = read_truth(path, MODEL)
        np.testing.assert_array_equal(again.model.inertial, truth.model.inertial)
        np.testing.assert_array_equal(again.model.rotor_inertia, truth.model.rotor_inertia)
        np.testing.assert_array_equal(again.torque_constant, truth.torque_constant)
        for name in ('load_friction', 'ripple', 'compliance', 'delay'):
            np.testing.assert_array_equal(getattr(again.drive, name), getattr(truth.drive, name))
        assert np.abs(again.model.placements - MODEL.placements).max() > 1e-3
        for name in JointFriction.names():
            np.testing.assert_array_equal(getattr(again.friction, name), getattr(truth.friction, name))
        q, dq, ddq = np.random.default_rng(0).normal(size=(3, 4, 6))
        np.testing.assert_array_equal(again.torque(q, dq, ddq), truth.torque(q, dq, ddq))
        assert [entry.name for entry in tmp_path.iterdir()] == ['truth.yaml']

    def test_without_a_part_of_the_friction_has_none_of_it(self, tmp_path) -> None:
        path = tmp_path / 'truth.yaml'
        truth = perturb(MODEL, np.random.default_rng(2))
        write_truth(path, truth)
        lines = path.read_text().splitlines(keepends=True)
        path.write_text(''.join(line for line in lines if 'arctan' not in line))
        again = read_truth(path, MODEL)
        np.testing.assert_array_equal(again.friction.arctan_gain, np.zeros(6))
        np.testing.assert_array_equal(again.friction.coulomb, truth.friction.coulomb)
        path.write_text(''.join(line for line in lines if 'coulomb' not in line))
        with pytest.raises(DataError, match='is not a truth file'):
            read_truth(path, MODEL)

    def test_of_another_arm_is_refused(self, tmp_path) -> None:
        path = tmp_path / 'truth.yaml'
        write_truth(path, nominal_truth(RobotModel.from_urdf(CRANE)))
        with refused(DataError, expected=MODEL.joint_names, found=('turn', 'luff', 'reach')):
            read_truth(path, MODEL)

    @pytest.mark.parametrize('content', ['[1, 2', '3', 'joints: [a]', 'joints: 7'])
    def test_that_is_no_truth_is_refused(self, tmp_path, content: str) -> None:
        path = tmp_path / 'truth.yaml'
        path.write_text(content)
        with refused(DataError, file=str(path)):
            read_truth(path, MODEL)

    def test_that_is_absent_or_cannot_be_written_is_refused(self, tmp_path) -> None:
        with refused(DataError, file=str(tmp_path / 'absent.yaml')):
            read_truth(tmp_path / 'absent.yaml', MODEL)
        with refused(DataError, file=str(tmp_path / 'absent' / 'truth.yaml')):
            write_truth(tmp_path / 'absent' / 'truth.yaml', nominal_truth(MODEL))


def test_torque_is_pinocchios() -> None:
    pytest.importorskip('pinocchio', reason='needs pin')
    truth: ArmTruth = perturb(MODEL, np.random.default_rng(2))
    pin, data = pinocchio_model(UR10E, truth.model)
    for q, dq, ddq in np.random.default_rng(0).normal(size=(5, 3, 6)):
        expected = pinocchio_torque(pin, data, q, dq, ddq)
        expected = expected + truth.friction.coulomb * np.sign(dq) + truth.friction.viscous * dq
        np.testing.assert_allclose(truth.torque(q[None], dq[None], ddq[None])[0], expected, atol=1e-9)

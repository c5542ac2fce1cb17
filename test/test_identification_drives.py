# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""Coupled drives: the last motor of a wrist turns with the joint before its own too. Torques are Pinocchio's."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from identification_helpers import TWO_LINKS, UR10E, dataset, fourier_motion, pinocchio_torque, swept

from robotid_ros.arrays import Array
from robotid_ros.data import Dataset
from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.errors import IdentificationError, ModelError
from robotid_ros.export.identified import identified_arm, identified_model, loss_of
from robotid_ros.identification import IdentificationConfig, IdentificationResult, TorquePredictor, identify
from robotid_ros.identification.setup_search import find_setup
from robotid_ros.model import RobotConfig, RobotModel

WRIST = ['elbow_joint', 'wrist_1_joint', 'wrist_2_joint', 'wrist_3_joint']
MODEL = replace(RobotModel.from_urdf(UR10E, joints=WRIST), rotor_inertia=np.zeros(4))  # rotors are those of the motors
DRIVES = np.eye(4)
DRIVES[3, 2] = -1.0
ROTOR = np.array([0.8, 0.4, 0.2, 0.3])
COULOMB, VISCOUS = np.array([6.0, 3.0, 2.0, 2.5]), np.array([5.0, 2.0, 1.0, 1.5])
PLAIN = IdentificationConfig(friction='coulomb_viscous')


def torque_of(q: Array, dq: Array, ddq: Array, drives: Array) -> Array:
    """Return tau = rnea(q) + C^T (I C ddq + fc sign(C dq) + fv C dq)."""
    speed, change = dq @ drives.T, ddq @ drives.T
    at_motors = ROTOR * change + COULOMB * np.sign(speed) + VISCOUS * speed
    return pinocchio_torque(MODEL, q, dq, ddq) + at_motors @ drives


def recorded(seed: int, drives: Array = DRIVES) -> Dataset:
    rng = np.random.default_rng(seed)
    motion = fourier_motion(4, rng, size=0.9, seconds=12.0)
    torque = torque_of(*motion[1:], drives)
    return dataset(MODEL, motion, torque + 0.1 * rng.standard_normal(torque.shape))


@pytest.fixture(scope='module')
def result() -> IdentificationResult:
    return identify(recorded(0), MODEL, validation=recorded(1), config=PLAIN)


def test_a_coupled_drive_is_found_and_its_friction_is_that_of_the_motor(result: IdentificationResult) -> None:
    np.testing.assert_array_equal(result.drives, DRIVES)
    assert result.setup is not None
    (finding,) = result.setup.findings
    assert finding.kind == 'drives'
    assert 'the motor of wrist_3_joint turns with wrist_3_joint - wrist_2_joint' in finding.text
    assert any(finding.text in note for note in result.notes)
    np.testing.assert_allclose(result.friction_values, np.stack([COULOMB, VISCOUS], axis=1), rtol=0.05)
    assert result.usable
    # Against the torque as recorded, joint by joint: nothing but the noise is left.
    np.testing.assert_allclose(result.metrics['validation'].rmse, 0.1, rtol=0.1)


def test_the_predicted_torque_is_that_of_the_joints(result: IdentificationResult) -> None:
    motion = fourier_motion(4, np.random.default_rng(2), size=0.8)[1:]
    predictor = TorquePredictor(MODEL, IdentificationResult.from_yaml(result.to_yaml()))
    truth = torque_of(*motion, DRIVES)
    assert np.sqrt(np.mean((predictor.torque(*motion) - truth) ** 2)) < 0.05
    dq = motion[1]
    friction = predictor.friction_torque(dq)
    np.testing.assert_allclose(predictor.rigid_torque(*motion) + friction, predictor.torque(*motion), atol=1e-9)
    speed = dq @ DRIVES.T
    expected = (COULOMB * np.sign(speed) + VISCOUS * speed) @ DRIVES
    assert np.sqrt(np.mean((friction - expected) ** 2)) < 0.05
    np.testing.assert_allclose(predictor.measured_torque(recorded(1)), predictor.torque(*_motion_of(recorded(1))))


def _motion_of(data: Dataset) -> tuple[Array, Array, Array]:
    return data.q, data.dq, data.ddq


def at_motors(seed: int) -> Dataset:
    joints = recorded(seed)
    torque = joints.tau @ np.linalg.inv(DRIVES)  # of rows: tau = tau_motor C
    return replace(joints, tau=torque, tau_filtered=torque, unfiltered=None)


@pytest.mark.parametrize('told', [False, True])
def test_torques_of_motors_beside_positions_of_joints_are_found_and_can_be_said(told: bool) -> None:
    model = replace(MODEL, drives=DRIVES) if told else MODEL
    found = identify(at_motors(0), model, validation=at_motors(1), config=PLAIN)
    assert not found.usable  # a driver that tells torques of motors would take torques of motors
    assert 'efforts' in found.reason
    assert 'effort_at: motors' in found.reason
    stated = replace(MODEL, drives=DRIVES, effort_at='motors')
    result = identify(at_motors(0), stated, validation=at_motors(1), config=PLAIN)
    assert result.usable, result.reason
    np.testing.assert_allclose(result.friction_values, np.stack([COULOMB, VISCOUS], axis=1), rtol=0.05)
    motion = fourier_motion(4, np.random.default_rng(2), size=0.8)[1:]
    predictor = TorquePredictor(MODEL, IdentificationResult.from_yaml(result.to_yaml()))
    truth = torque_of(*motion, DRIVES)  # of the joints
    assert np.sqrt(np.mean((predictor.torque(*motion) - truth) ** 2)) < 0.05


def test_drives_that_are_not_coupled_stay_so() -> None:
    found = identify(recorded(3, np.eye(4)), MODEL, config=PLAIN)
    assert found.drives is None
    assert found.setup is not None
    assert found.setup.findings == ()


def test_a_slide_is_not_coupled_with_what_turns() -> None:
    arm = RobotModel.from_urdf(
        TWO_LINKS.replace('<joint name="elbow" type="revolute">', '<joint name="elbow" type="prismatic">')
    )
    motion = fourier_motion(2, np.random.default_rng(0), size=0.3)
    data = dataset(arm, motion, inverse_dynamics(arm, *motion[1:]) + np.sign(motion[2]) + motion[2])
    setup, decision = find_setup([data], arm)
    np.testing.assert_array_equal(setup.drives, np.eye(2))
    assert not any('coupled' in each.name for each in decision.alternatives)


def test_a_configuration_names_the_coupling_and_nothing_is_looked_for(result: IdentificationResult) -> None:
    config = RobotConfig.from_dict(
        {'joints': list(MODEL.joint_names), 'drives': {'wrist_3_joint': {'wrist_2_joint': -1}}}
    )
    model = replace(MODEL, drives=config.drive_coupling(MODEL.joint_names))
    found = identify(recorded(0), model, config=PLAIN)
    assert found.setup is not None
    assert found.setup.findings == ()
    np.testing.assert_allclose(found.base_values, result.base_values, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ('drives', 'message'),
    [
        ({'wrist_4_joint': {'wrist_2_joint': 1.0}}, "drives: joint 'wrist_4_joint' is not in 'joints'"),
        ({'wrist_3_joint': {'wrist_4_joint': 1.0}}, "drives: wrist_3_joint: joint 'wrist_4_joint' is not in 'joints'"),
        ({'wrist_3_joint': {'wrist_3_joint': 1.0}}, 'a motor turns with its own joint by 1'),
        ({'wrist_3_joint': {'wrist_2_joint': 'one'}}, 'drives: '),
        ({'wrist_3_joint': 'wrist_2_joint'}, 'drives: expected joints to other joints to numbers'),
    ],
)
def test_a_coupling_that_cannot_be_is_refused(drives: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        RobotConfig.from_dict({'joints': list(MODEL.joint_names), 'drives': drives})


def test_generated_code_has_the_coupling(result: IdentificationResult) -> None:
    motion = fourier_motion(4, np.random.default_rng(4), size=0.8)[1:]
    q, dq, _ = motion
    predictor, code = TorquePredictor(MODEL, result), identified_model(MODEL, result)
    for compiled in (True, False):
        np.testing.assert_allclose(
            code.inverse_dynamics(*motion, compiled=compiled), predictor.torque(*motion), rtol=0.0, atol=1e-12
        )
        np.testing.assert_allclose(code.gravity(q, compiled=compiled), predictor.gravity_torque(q), atol=1e-12)
        np.testing.assert_allclose(code.friction(dq, compiled=compiled), predictor.friction_torque(dq), atol=1e-12)
    written: dict[str, Any] = {}
    exec(compile(code.python_source(), 'generated', 'exec'), written)
    rows = written['regressor'](*motion).reshape(len(q), 4, -1)
    np.testing.assert_allclose(rows, code.regressor(*motion), atol=1e-12)
    np.testing.assert_allclose(rows @ result.base_values, predictor.rigid_torque(*motion), atol=1e-11)


def test_a_friction_sweep_is_refused() -> None:
    with pytest.raises(IdentificationError, match='identify this arm without friction data'):
        identify(recorded(0), replace(MODEL, drives=DRIVES), friction_data=swept(MODEL, COULOMB, VISCOUS))


def test_a_description_gets_what_each_joint_turns_alone_and_says_the_rest(result: IdentificationResult) -> None:
    arm = identified_arm(MODEL, result)
    np.testing.assert_allclose(arm.rotor_inertia[2], result.rotor_inertia[2] + result.rotor_inertia[3])
    np.testing.assert_allclose(arm.friction[2], COULOMB[2] + COULOMB[3], rtol=0.5)
    loss = loss_of(MODEL, result, rotor_inertia=True)
    assert 0.0 < loss.rotor_inertia < loss_of(MODEL, result, rotor_inertia=False).rotor_inertia
    assert loss.physical < 2.0
    assert loss.total <= loss.rotor_inertia + loss.friction + loss.physical

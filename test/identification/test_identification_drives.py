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
from robotid_ros.dynamics import full_regressor, inverse_dynamics
from robotid_ros.errors import IdentificationError, ModelError
from robotid_ros.execution.effort_watch import holds_no_gravity
from robotid_ros.export.identified import identified_arm, identified_model, loss_of
from robotid_ros.export.replay import replay
from robotid_ros.identification import IdentificationConfig, IdentificationResult, TorquePredictor, identify, validate
from robotid_ros.identification.selection import select
from robotid_ros.identification.session import IdentificationSession
from robotid_ros.identification.setup_search import find_setup
from robotid_ros.loads.contact import TorqueMonitor, monitored
from robotid_ros.loads.payload import drive_gains, identify_payload
from robotid_ros.model import RobotConfig, RobotModel
from robotid_ros.model.inertia import inertial_parameters
from robotid_ros.report.subject import predicted_run
from robotid_ros.simulation import Sensors
from robotid_ros.simulation.sensors import PlantMotion

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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.fixture(scope='module')
def of_motors() -> IdentificationResult:
    """Return what efforts of motors give where the configuration says that they are."""
    return identify(
        at_motors(0), replace(MODEL, drives=DRIVES, effort_at='motors'), validation=at_motors(1), config=PLAIN
    )


@pytest.mark.slow
@pytest.mark.parametrize('told', [False, True])
def test_torques_of_motors_beside_positions_of_joints_are_found_and_can_be_said(
    told: bool, of_motors: IdentificationResult
) -> None:
    model = replace(MODEL, drives=DRIVES) if told else MODEL
    found = identify(at_motors(0), model, validation=at_motors(1), config=PLAIN)
    assert not found.usable  # a driver that tells torques of motors would take torques of motors
    assert 'efforts' in found.reason
    assert 'effort_at: motors' in found.reason
    result = of_motors
    assert result.usable, result.reason
    np.testing.assert_allclose(result.friction_values, np.stack([COULOMB, VISCOUS], axis=1), rtol=0.05)
    motion = fourier_motion(4, np.random.default_rng(2), size=0.8)[1:]
    predictor = TorquePredictor(MODEL, IdentificationResult.from_yaml(result.to_yaml()))
    truth = torque_of(*motion, DRIVES)  # of the joints
    assert np.sqrt(np.mean((predictor.torque(*motion) - truth) ** 2)) < 0.05


@pytest.mark.slow
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


@pytest.mark.slow
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


def random_drives(seed: int) -> Array:
    """Return drives of which some turn with joints before their own, by factors of any size."""
    rng = np.random.default_rng(seed)
    some = rng.random((4, 4)) < 0.5
    some[3, 2] = True
    return np.eye(4) + np.tril(some * rng.choice([-1.0, 1.0, 0.5, -0.12], (4, 4)), -1)


def told(at: str, drives: Array, seed: int, payload: Array | None = None) -> Dataset:
    """Return a recording, with the torques of the joints, or with the same ones as their motors have them."""
    data = recorded(seed, drives)
    torque = np.array(data.tau)
    if payload is not None:
        torque += full_regressor(MODEL, data.q, data.dq, data.ddq)[:, :, -10:] @ payload
    torque = torque if at == 'joints' else torque @ np.linalg.inv(drives)
    return replace(data, tau=torque, tau_filtered=torque, unfiltered=None)


@pytest.mark.slow
def test_all_that_reads_or_writes_efforts_goes_by_what_the_configuration_says_of_them() -> None:
    drives = random_drives(0)
    body = inertial_parameters(4.0, np.array([0.02, 0.01, 0.1]), 0.02 * np.eye(3))
    config = replace(PLAIN, seed=0, estimator='wls')
    found: dict[str, list[Array]] = {}
    for at in ('joints', 'motors'):
        arm = replace(MODEL, drives=drives, effort_at=at)
        first, second, loaded = told(at, drives, 0), told(at, drives, 1), told(at, drives, 2, body)
        result = identify(first, arm, validation=second, config=config)
        assert result.setup is not None
        assert not result.setup.findings
        assert result.usable, result.reason
        predictor = TorquePredictor(arm, result)
        monitor, seen = TorqueMonitor(predictor), []
        for time, q, dq, effort in zip(second.time, second.q, second.dq, second.tau, strict=True):
            one = monitor.update(float(time), q, dq, effort)
            seen += [] if one is None else [one.external]
        gains, _ = drive_gains(first, loaded, arm, body, result)
        estimate = IdentificationSession(arm).add('first', first)
        runs = [first, second, told(at, drives, 3)]
        selected = select(runs, arm, config=replace(PLAIN, torque_threshold=(5.0,)))
        still = np.array([0.3, -0.4, 0.8, 0.1])
        holding = predictor.gravity_torque(still[None])[0]
        effort = holding if at == 'joints' else np.linalg.inv(drives).T @ holding
        np.testing.assert_allclose(predictor.setup.efforts(holding[None])[0], effort, atol=1e-9)  # to its controller
        np.testing.assert_allclose(arm.torque_of(effort), holding, atol=1e-9)
        assert not holds_no_gravity(arm, still, arm.torque_of(effort))
        found[at] = [
            result.base_values,
            result.friction_values,
            result.metrics['validation'].rmse,
            np.array(seen),
            monitored(predictor, 100.0, second.q, second.tau, 5.0),
            identify_payload(loaded, arm, result).free,
            validate(result, arm, second).rmse,
            replay(arm, result, second).identified.rms,
            identified_model(arm, result).inverse_dynamics(second.q, second.dq, second.ddq),
            predicted_run('', predictor.prepared(second), predictor).predicted,
            estimate.base_values,
            selected.base_values,
            selected.metrics['validation'].rmse,
        ]
        np.testing.assert_allclose(gains, 1.0, rtol=0.05)
    for joints, motors in zip(*found.values(), strict=True):
        np.testing.assert_allclose(motors, joints, rtol=1e-5, atol=1e-6 * float(np.abs(joints).max()))


@pytest.mark.slow
def test_a_mount_that_is_found_beside_efforts_of_motors_that_were_said_is_no_obstacle() -> None:
    stated = replace(MODEL, drives=DRIVES, effort_at='motors', gravity=9.81 * np.array([0.6, 0.0, -0.8]))
    result = identify(at_motors(0), stated, validation=at_motors(1), config=PLAIN)
    assert result.setup is not None
    assert [finding.kind for finding in result.setup.findings] == ['gravity']
    assert result.gravity[2] < -8.5  # to the side, these four joints tell little
    assert result.usable, result.reason


def test_the_simulated_arm_tells_the_efforts_of_its_motors() -> None:
    drives = random_drives(5)
    sensors = Sensors.typical(replace(MODEL, drives=drives, effort_at='motors'), np.array([2.0, 3.0, 4.0, -5.0]))
    torque = np.array([[10.0, -20.0, 30.0, 5.0]])
    motion = PlantMotion(**dict.fromkeys(PlantMotion.__slots__, torque))
    quiet = replace(sensors, effort_noise=np.zeros(4))
    seen = quiet.measure(motion, np.random.default_rng(0))
    np.testing.assert_allclose(seen['effort'] @ drives, torque, rtol=1e-12)
    np.testing.assert_allclose(seen['current'] * sensors.drive_gain, seen['effort'], rtol=1e-12)


@pytest.mark.slow
def test_a_meaning_of_efforts_that_the_recording_contradicts_is_named() -> None:
    arm = replace(MODEL, drives=DRIVES, effort_at='motors')
    result = identify(recorded(0), arm, config=PLAIN)
    assert result.setup is not None
    np.testing.assert_allclose(result.setup.torque, np.eye(4), atol=1e-12)  # the recording is right, not what was said
    assert any('set effort_at: joints' in note for note in result.notes)

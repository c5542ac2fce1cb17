# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Force-torque sensors: the wrench is Pinocchio's joint force; in pose files, weights as statics has them."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from identification_helpers import UR10E, fourier_motion, pinocchio_arm
from scipy.spatial.transform import Rotation

from robotid_ros.cli import main
from robotid_ros.errors import DataError, IdentificationError
from robotid_ros.loads.wrench import AXES, WrenchResult, fit_wrench, flange_motion, identify_wrench, read_wrench
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import inertial_parameters, split_inertial_parameters
from robotid_ros.tables import write_table

pinocchio = pytest.importorskip('pinocchio', reason='needs pin')

ARM = RobotModel.from_urdf(UR10E)
TOOL = inertial_parameters(1.4, np.array([0.02, -0.01, 0.09]), np.diag([0.006, 0.007, 0.003]))
TURNED = Rotation.from_euler('xyz', [3.0, -2.0, 40.0], degrees=True).as_matrix()
BIAS = np.array([5.0, -12.0, 31.0, 0.4, -0.2, 0.9])


def felt(q: np.ndarray, dq: np.ndarray, ddq: np.ndarray, sign: int = 1) -> np.ndarray:
    """Return what holds a tool at the tip, by Pinocchio: the force through the last joint of an arm of that tool."""
    inertial = np.zeros_like(ARM.inertial)
    at_tip = TOOL
    mass, centre, inertia = split_inertial_parameters(at_tip)
    turn, offset = ARM.tip[:3, :3], ARM.tip[:3, 3]
    inertial[-1] = inertial_parameters(float(mass), turn @ centre + offset, turn @ inertia @ turn.T)
    model = pinocchio_arm(ARM.with_inertial(inertial))
    data = model.createData()
    tip = pinocchio.SE3(turn, offset)
    rows = []
    for row in zip(q, dq, ddq, strict=True):
        pinocchio.rnea(model, data, *row)
        force = tip.actInv(data.f[model.njoints - 1])
        rows.append(np.concatenate([TURNED @ force.linear, TURNED @ force.angular]))
    return BIAS + sign * np.array(rows)


def poses(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.uniform([-1, -2, 0.5, -2, -2, -2], [1, -0.5, 2, 2, 2, 2], (count, 6))


def written(path: Path, time: np.ndarray, q: np.ndarray, wrench: np.ndarray) -> Path:
    columns = {'time': time} | {f'position/{name}': q[:, k] for k, name in enumerate(ARM.joint_names)}
    write_table(path, columns | {axis: wrench[:, k] for k, axis in enumerate(AXES)})
    return path


@pytest.fixture(scope='module')
def moving(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recording in motion, with noise of an industrial sensor."""
    rng = np.random.default_rng(3)
    time, q, dq, ddq = fourier_motion(6, rng, seconds=20.0, size=0.9)
    wrench = felt(q, dq, ddq) + rng.normal(0.0, 1.0, (len(q), 6)) * [0.3, 0.3, 0.3, 0.01, 0.01, 0.01]
    return written(tmp_path_factory.mktemp('wrench') / 'moving.csv', time, q, wrench)


def assert_found(found: WrenchResult, sign: int) -> None:
    assert found.sign == sign
    assert found.mass == pytest.approx(1.4, abs=4.0 * found.std[9])
    assert found.std[9] < 0.02
    assert (np.abs(found.centre_of_mass - TOOL[6:9] / TOOL[9]) < 4.0 * found.centre_std).all()
    assert (found.centre_std < 0.003).all()
    assert (np.abs(found.bias - BIAS) < 4.0 * found.bias_std).all()
    away = Rotation.from_matrix(found.rotation.T @ TURNED).as_rotvec()
    assert (np.abs(away) < 4.0 * found.rotation_std).all()
    assert (found.rotation_std < np.radians(1.0)).all()
    assert not found.notes


def test_a_tool_is_weighed_in_motion(moving: Path) -> None:
    found = identify_wrench(read_wrench(moving, ARM.joint_names), ARM)
    assert_found(found, 1)
    assert (np.abs(found.inertial - TOOL)[:6] < 4.0 * found.std[:6]).all()
    again = WrenchResult.from_dict(yaml.safe_load(yaml.safe_dump(found.to_dict())))
    np.testing.assert_allclose(again.rotation, found.rotation, atol=1e-12)
    assert again.mass == found.mass
    assert again.sign == found.sign
    motion = fourier_motion(6, np.random.default_rng(4))[1:]
    shown = again.bias + again.tool_wrench(*flange_motion(ARM, *motion))
    np.testing.assert_allclose(shown, felt(*motion), atol=0.15)


@pytest.mark.parametrize('sign', [1, -1])
def test_a_tool_is_weighed_in_poses(sign: int) -> None:
    rng = np.random.default_rng(7)
    q = poses(rng, 30)
    still = np.zeros_like(q)
    wrench = felt(q, still, still, sign) + rng.normal(0.0, 1.0, (30, 6)) * [0.1, 0.1, 0.1, 0.004, 0.004, 0.004]
    found = fit_wrench(*flange_motion(ARM, q, still, still), wrench, np.zeros(30, dtype=np.int64), 'tool0')
    assert_found(found, sign)
    assert np.isinf(found.std[:6]).all()  # nothing turned fast enough to show an inertia


@settings(max_examples=20, deadline=None)
@given(axis=st.integers(0, 5), gain=st.sampled_from([0.0, 0.05, 0.2]), seed=st.integers(0, 50))
def test_a_sensor_with_a_dead_axis_is_refused_with_its_name(axis: int, gain: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    q = poses(rng, 40)
    still = np.zeros_like(q)
    wrench = felt(q, still, still)
    wrench[:, axis] = BIAS[axis] + gain * (wrench[:, axis] - BIAS[axis])
    wrench += rng.normal(0.0, 1.0, (40, 6)) * [0.02, 0.02, 0.02, 0.001, 0.001, 0.001]
    if seed % 5 == 0:
        wrench[:, axis] = 3.0
    with pytest.raises(IdentificationError, match=f"axis '{AXES[axis]}' of the sensor"):
        fit_wrench(*flange_motion(ARM, q, still, still), wrench, np.zeros(40, dtype=np.int64), 'tool0')


def test_an_axis_of_another_gain_is_noted() -> None:
    rng = np.random.default_rng(2)
    q = poses(rng, 60)
    still = np.zeros_like(q)
    wrench = felt(q, still, still)
    wrench[:, 2] *= 1.08
    wrench += rng.normal(0.0, 0.02, (60, 6))
    found = fit_wrench(*flange_motion(ARM, q, still, still), wrench, np.zeros(60, dtype=np.int64), 'tool0')
    assert len(found.notes) == 1
    assert 'force/z shows 10' in found.notes[0]


def test_a_fast_long_arm_has_no_axis_of_another_gain() -> None:
    """What the tool's centre takes to swing is no weight: its force is not along gravity."""
    rng = np.random.default_rng(1)
    time, q, dq, ddq = fourier_motion(6, rng, seconds=10.0, size=1.2)
    dq, ddq = 5.0 * dq, 25.0 * ddq  # the same places in a fifth of the time
    wrench = felt(q, dq, ddq) + rng.normal(0.0, 1.0, (len(q), 6)) * [0.3, 0.3, 0.3, 0.01, 0.01, 0.01]
    runs = np.zeros(len(time), dtype=np.int64)
    found = fit_wrench(*flange_motion(ARM, q, dq, ddq), wrench, runs, 'tool0')
    assert found.notes == ()
    wrench[:, 1] += 0.1 * (wrench[:, 1] - BIAS[1])
    (note,) = fit_wrench(*flange_motion(ARM, q, dq, ddq), wrench, runs, 'tool0').notes
    assert 'force/y shows 110.' in note


def test_torques_in_another_unit_are_noted() -> None:
    rng = np.random.default_rng(2)
    time, q, dq, ddq = fourier_motion(6, rng, seconds=10.0, size=0.9)
    wrench = felt(q, dq, ddq) + rng.normal(0.0, 1.0, (len(q), 6)) * [0.3, 0.3, 0.3, 0.01, 0.01, 0.01]
    wrench[:, 3:] *= 1e3
    notes = fit_wrench(*flange_motion(ARM, q, dq, ddq), wrench, np.zeros(len(time), dtype=np.int64), 'tool0').notes
    assert any('is its unit SI?' in note for note in notes)  # of torques or forces, whichever are the fewer


def test_the_flange_moves_as_pinocchio_says() -> None:
    model = pinocchio_arm(ARM)
    data = model.createData()
    motion = fourier_motion(6, np.random.default_rng(1), seconds=1.0)[1:]
    u, omega, alpha = flange_motion(ARM, *motion)
    tip = pinocchio.SE3(ARM.tip[:3, :3], ARM.tip[:3, 3])
    for k, row in enumerate(zip(*motion, strict=True)):
        pinocchio.forwardKinematics(model, data, *row)
        last = model.njoints - 1
        speed, change = tip.actInv(data.v[last]), tip.actInv(data.a[last])
        rotation = data.oMi[last].rotation @ tip.rotation
        np.testing.assert_allclose(omega[k], speed.angular, atol=1e-9)
        np.testing.assert_allclose(alpha[k], change.angular, atol=1e-9)
        classical = change.linear + np.cross(speed.angular, speed.linear) - rotation.T @ ARM.gravity
        np.testing.assert_allclose(u[k], classical, atol=1e-9)


def test_what_cannot_be_weighed_is_refused() -> None:
    rng = np.random.default_rng(9)
    q = poses(rng, 20)
    q[:, 1:] = q[0, 1:]  # about the vertical alone
    still = np.zeros_like(q)
    motion, runs = flange_motion(ARM, q, still, still), np.zeros(20, dtype=np.int64)
    with pytest.raises(IdentificationError, match='the flange was turned too little: gravity varies by'):
        fit_wrench(*motion, felt(q, still, still) + rng.normal(0.0, 0.01, (20, 6)), runs, 'tool0')
    q = poses(rng, 20)
    with pytest.raises(IdentificationError, match='carries no weight that it can feel'):
        fit_wrench(*flange_motion(ARM, q, still, still), rng.normal(0.0, 0.1, (20, 6)), runs, 'tool0')


def test_the_command_says_all_of_it(moving: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    payload = tmp_path / 'payload.yaml'
    payload.write_text('payload: {mass: 1.54, mass_std: 0.02}\n')
    arguments = ['wrench', str(moving), '--robot', str(UR10E), '--out', str(tmp_path / 'out')]
    assert main([*arguments, '--payload', str(payload)]) == 0
    said = capsys.readouterr().out
    assert 'kg at (0.02' in said
    assert 'torque constants must be multiplied by 0.9' in said
    assert yaml.safe_load((tmp_path / 'out' / 'wrench.yaml').read_text())['wrench']['mass'] == pytest.approx(
        1.4, abs=0.05
    )
    payload.write_text('payload: {mass: 1.41, mass_std: 0.02}\n')
    assert main([*arguments, '--payload', str(payload)]) == 0
    assert 'they agree' in capsys.readouterr().out


@pytest.mark.parametrize(
    ('content', 'says'),
    [
        (None, 'does not exist'),
        ('time,position/a\n0,0\n', "is not in '"),
        ('', 'expected a line with the names'),
    ],
)
def test_recordings_that_cannot_be_read_give_one_line(
    content: str | None, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / 'wrong.csv'
    if content is not None:
        path.write_text(content)
    assert main(['wrench', str(path), '--robot', str(UR10E), '--out', str(tmp_path / 'out')]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count('\n') == 1
    with pytest.raises(DataError):
        read_wrench(path, ARM.joint_names)


def test_a_recording_that_describes_no_arm_is_refused(moving: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['wrench', str(moving)]) == 2
    assert 'which arm? No recording has a robot_description; give it by --robot' in capsys.readouterr().err

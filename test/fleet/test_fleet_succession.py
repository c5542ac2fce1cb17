# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A new recording of an arm is first judged by the arm's previous result; torques are Pinocchio's."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fleet_helpers import QUICK, two_links
from identification_helpers import TWO_LINKS, fourier_motion, pinocchio_torque

from robotid_ros.cli import main
from robotid_ros.data import Recording, write_csv


def write(
    path: Path, seed: int, *, tilt: float = 0.0, payload: float = 0.0, coulomb: float = 1.0,
    broken: bool = False, gain: float = 1.0,
) -> None:  # fmt: skip
    """Write a recording; ``payload`` is a point mass [kg] 0.3 m out on the last link, along its x axis."""
    rng = np.random.default_rng(seed)
    model = two_links()
    inertial = model.inertial.copy()
    turn = np.array([[np.cos(tilt), 0.0, np.sin(tilt)], [0.0, 1.0, 0.0], [-np.sin(tilt), 0.0, np.cos(tilt)]])
    model = replace(model, gravity=turn @ model.gravity)
    point = np.zeros(10)
    point[[3, 5]], point[6], point[9] = payload * 0.09, payload * 0.3, payload
    inertial[1] += point
    time, q, dq, ddq = fourier_motion(2, rng)
    torque = pinocchio_torque(model.with_inertial(inertial), q, dq, ddq)
    torque += coulomb * rng.normal(1.0, 0.02, 2) * np.array([3.0, 1.5]) * np.sign(dq) + np.array([2.0, 1.0]) * dq
    torque += rng.normal(0.0, 0.05, q.shape)
    torque[:, 1] *= gain
    if broken:  # the sensor of the elbow sticks now and then
        stuck = np.sin(2.0 * np.pi * time / 1.7) > 0.3
        torque[stuck, 1] = 4.0
    path.parent.mkdir(parents=True, exist_ok=True)
    time = 1.75e9 + 86400.0 * seed + time
    write_csv(path, Recording(joint_names=model.joint_names, time=time, position=q, effort=torque))


@pytest.mark.slow
@pytest.mark.parametrize(
    ('change', 'words'),
    [
        ({}, 'Nothing.'),
        ({'payload': 3.0}, 'its payload changed by'),
        ({'tilt': 0.4}, 'another arm, mount or configuration'),
        ({'broken': True}, "the torque signal of joint 'elbow' is by"),
        ({'gain': 0.6}, "the torque signal of joint 'elbow' is 0.6 times what it was"),
        ({'coulomb': 1.8}, 'its friction changed'),
    ],
)
@pytest.mark.parametrize('seed', [1, 40])
def test_two_recordings_of_one_arm_tell_what_changed(change, words, seed, tmp_path, capsys):
    """There is no second arm, and no scatter to compare with."""
    write(tmp_path / 'r' / 'a.csv', seed)
    write(tmp_path / 'r' / 'b.csv', seed + 1, **change)
    (tmp_path / 'arm.urdf').write_text(TWO_LINKS, encoding='utf-8')
    command = ['fleet', str(tmp_path / 'r'), '--robot', str(tmp_path / 'arm.urdf'), '--jobs', '1', *QUICK]
    main([*command, '--out', str(tmp_path / 'out')])
    first = capsys.readouterr().out
    assert words in first.splitlines()[1], first
    marks = {path: path.stat().st_mtime_ns for path in tmp_path.rglob('f*.yaml')}
    main([*command, '--out', str(tmp_path / 'out')])
    assert capsys.readouterr().out == first
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob('f*.yaml')} == marks  # nothing was done again


@pytest.mark.slow
def test_a_payload_that_was_taken_off_is_told_with_its_mass(tmp_path, capsys):
    write(tmp_path / 'r' / 'a.csv', 1, payload=3.0)
    write(tmp_path / 'r' / 'b.csv', 2)
    (tmp_path / 'arm.urdf').write_text(TWO_LINKS, encoding='utf-8')
    main(['fleet', str(tmp_path / 'r'), '--robot', str(tmp_path / 'arm.urdf'), '--out', str(tmp_path / 'out'), *QUICK])
    told = capsys.readouterr().out.splitlines()[1]
    taken = float(told.partition('its payload changed by ')[2].split(' ')[0])
    assert abs(taken + 3.0) < 0.3, told


@pytest.mark.slow
def test_what_changed_for_good_is_told_against_the_last_result_that_held(tmp_path, capsys):
    for k in range(5):
        write(tmp_path / 'r' / 'x' / f'{k}.csv', 10 + k, payload=3.0 if k >= 3 else 0.0)
        write(tmp_path / 'r' / 'y' / f'{k}.csv', 20 + k)
    (tmp_path / 'arm.urdf').write_text(TWO_LINKS, encoding='utf-8')
    main(['fleet', str(tmp_path / 'r'), '--robot', str(tmp_path / 'arm.urdf'), '--out', str(tmp_path / 'out'), *QUICK])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith('x')
    assert '3: ' in lines[1]
    assert lines[1].count('its payload changed by') == 2
    assert 'Nothing.' in lines[2]

# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Torque constants of a Universal Robots arm, from the file that its controller holds."""

from pathlib import Path

import numpy as np
import pytest
from ur_calibration_file import CONSTANTS, summary

from robotid_ros.errors import ModelError
from robotid_ros.model import RobotConfig
from robotid_ros.model.ur_calibration import read_torque_constants

JOINTS = [f'joint_{k}' for k in range(6)]


@pytest.mark.parametrize('serial', [True, False])
def test_each_joint_has_its_constant(tmp_path: Path, serial: bool) -> None:
    path = tmp_path / 'robot_calibration_summary.txt'
    path.write_text(summary(CONSTANTS, serial=serial))
    assert read_torque_constants(path).tolist() == CONSTANTS


def test_a_configuration_names_the_file_in_place_of_the_constants(tmp_path: Path) -> None:
    path = tmp_path / 'summary.txt'
    path.write_text(summary(CONSTANTS))
    content = {'joints': JOINTS, 'effort': 'current', 'gear_ratios': 101.0, 'torque_constants': str(path)}
    config = RobotConfig.from_dict(content)
    np.testing.assert_allclose(config.stated_torque_per_effort(JOINTS), 101.0 * np.array(CONSTANTS), rtol=1e-12)
    path.unlink()  # what a recording keeps are the numbers
    assert RobotConfig.from_dict(config.content()) == config


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        ('', 'the file is robot_calibration_summary.txt'),
        (summary(CONSTANTS).replace('Joint 1', 'Joint 7'), 'then 1 and so on, got 0, 7, 2, 3, 4, 5'),
        (summary(CONSTANTS).replace('K_tau', 'K_t'), 'joint 0: expected one K_tau'),
        (summary(CONSTANTS).replace('+0.1234', '+0.1334'), 'joint 0: K_tau 0.1334 times the currents does not give'),
        (summary(CONSTANTS).replace('+0.1222', '-0.1222'), 'joint 1: expected a K_tau above 0'),
        (summary(CONSTANTS).replace('+0.1222', 'nan'), 'joint 1: expected a K_tau above 0'),
        (summary(CONSTANTS, factor=101.0), 'joint 0: K_tau 0.1234 times'),  # those of the joint, not of the motor
        (summary(CONSTANTS[:5]), "has 5 joints; 'joints' are 6: joint_0"),
    ],
)
def test_another_file_is_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / 'summary.txt'
    path.write_text(text)
    with pytest.raises(ModelError, match=said) as caught:
        RobotConfig.from_dict({'joints': JOINTS, 'effort': 'current', 'torque_constants': str(path)})
    assert str(path) in str(caught.value)
    assert '\n' not in str(caught.value)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ModelError, match=r"'nowhere\.txt' does not exist"):
        RobotConfig.from_dict({'joints': JOINTS, 'torque_constants': 'nowhere.txt'})

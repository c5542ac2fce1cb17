# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Robot configurations: read, refused with the reason, applied."""

from pathlib import Path

import numpy as np
import pytest
from errors_helpers import refused

from robotid_ros.data import ProcessingSettings, Recording
from robotid_ros.data.settings import measured_torque
from robotid_ros.errors import ModelError
from robotid_ros.excitation import ExcitationConfig
from robotid_ros.model import JointLimits, RobotConfig
from robotid_ros.model.packaged import arm_file
from robotid_ros.model.robot_config import DESIGN_KEYS, configured_arm
from robotid_ros.settings import settings_of

GOOD = {
    'joints': ['j1', 'j2'],
    'effort': {'j1': 'current', 'j2': 'torque'},
    'torque_constants': {'j1': 0.125},
    'gear_ratios': {'j1': 101},
    'limits': {'velocity': {'j2': 1.5}, 'acceleration': 8.0},
    'joint_states_topic': '/arm/joint_states',
}


def test_a_ros_parameter_file_and_a_plain_file_read_alike(tmp_path: Path) -> None:
    plain, wrapped = tmp_path / 'plain.yaml', tmp_path / 'wrapped.yaml'
    body = 'joints: [j1, j2]\neffort: torque\ntip: flange\n'
    plain.write_text(body)
    wrapped.write_text('/**:\n  ros__parameters:\n' + ''.join(f'    {line}\n' for line in body.splitlines()))
    one, other = RobotConfig.from_yaml(plain), RobotConfig.from_yaml(wrapped)
    assert one == other
    assert one.meaning(['j2', 'j1']) == ('torque', 'torque')
    assert one.tip == 'flange'


def test_torque_per_ampere_is_constant_times_ratio() -> None:
    assert RobotConfig.from_dict(GOOD).stated_torque_per_effort(['j2', 'j1']) == pytest.approx([1.0, 0.125 * 101])
    config = RobotConfig.from_dict({**GOOD, 'effort': 'current'})
    assert config.torque_per_effort(['j1', 'j2']) == pytest.approx([0.125 * 101, np.nan], nan_ok=True)
    with refused(ModelError, name='j2'):
        config.stated_torque_per_effort(['j1', 'j2'])


def test_a_negative_torque_constant_turns_a_current_that_counts_the_other_way_round() -> None:
    config = RobotConfig.from_dict({**GOOD, 'effort': 'current', 'torque_constants': {'j1': -0.125, 'j2': 0.1}})
    recording = Recording(
        joint_names=('j1', 'j2'), time=[0.0, 1.0], position=[[0, 0], [0, 0]], effort=[[1.0, 2.0], [-1.0, 0.0]]
    )
    torque, meanings = measured_torque(recording, ProcessingSettings.for_robot(config))
    assert meanings == ('current', 'current')
    np.testing.assert_allclose(torque, [[-0.125 * 101, 0.2], [0.125 * 101, 0.0]])


def test_what_belongs_to_the_place_of_an_arm_reaches_its_design() -> None:
    config = RobotConfig.from_dict({**GOOD, 'ground': True, 'link_radius': 0.06})
    assert config.design == {'ground': True, 'link_radius': 0.06}
    assert ExcitationConfig(**config.design).link_radius == 0.06
    assert set(DESIGN_KEYS) <= {item.name for item in settings_of(ExcitationConfig)}


def test_limits_take_the_place_of_the_urdfs_and_only_those() -> None:
    limits = JointLimits(
        lower=[-1, -2], upper=[1, 2], velocity=[3, 3], acceleration=[np.inf] * 2, jerk=[np.inf] * 2, effort=[10, 20]
    )
    new = RobotConfig.from_dict(GOOD).apply_limits(['j1', 'j2'], limits)
    assert new.velocity.tolist() == [3.0, 1.5]
    assert new.acceleration.tolist() == [8.0, 8.0]
    assert new.lower.tolist() == [-1.0, -2.0]


@pytest.mark.filterwarnings('ignore::robotid_ros.errors.ModelWarning')
def test_an_arm_is_as_its_configuration_says_and_the_callers_tip_goes_first() -> None:
    packaged = arm_file('ur10e')
    whole = configured_arm(packaged, None)
    joints = whole.joint_names
    config = RobotConfig.from_dict(
        {
            'joints': list(joints[:5]),
            'gravity': [0.0, 9.81, 0.0],
            'gear_ratios': {joints[0]: 101.0},
            'limits': {'velocity': 1.5},
            'drives': {joints[4]: {joints[3]: 0.5}},
        }
    )
    arm = configured_arm(packaged, config)
    assert arm.joint_names == joints[:5]
    assert arm.gravity.tolist() == [0.0, 9.81, 0.0]
    assert arm.gear_ratio.tolist() == [101.0, *whole.gear_ratio[1:5]]
    assert arm.limits.velocity.tolist() == [1.5] * 5
    assert arm.drives[4].tolist() == [0.0, 0.0, 0.0, 0.5, 1.0]
    assert configured_arm(packaged, None, joints=joints[:2]).joint_names == joints[:2]
    with refused(ModelError, name='wrist_1_joint'):
        configured_arm(packaged, config, tip='forearm_link')


def test_effort_without_a_meaning_is_refused_never_guessed() -> None:
    config = RobotConfig.from_dict({'joints': ['j1', 'j2'], 'effort': {'j1': 'torque'}})
    with refused(ModelError, name='j2'):
        config.meaning(['j1', 'j2'])


@pytest.mark.parametrize(
    ('change', 'name', 'words'),
    [
        ({'joint': ['j1']}, 'joint', 'unknown key'),
        ({'joints': 'j1'}, 'joints', 'expected a list of names'),
        ({'joints': []}, 'joints', 'expected the names of the joints'),
        ({'joints': 5}, 'joints', 'expected a list of names'),
        ({'effort': {'j1': 'volts'}}, 'effort', "'j1': expected one of torque, current, unknown; got 'volts'"),
        ({'effort': {'j3': 'torque'}}, 'j3', "effort: joint 'j3' is not in 'joints': j1, j2"),
        ({'torque_constants': {'j1': 0.0}}, 'j1', "'j1': expected a number other than 0"),
        ({'gear_ratios': {'j1': 'many'}}, 'gear_ratios', "'j1': expected a number"),
        ({'limits': {'speed': 1.0}}, 'limits', 'expected a mapping of lower, upper'),
        ({'limits': {'velocity': {'j1': 'fast'}}}, 'limits', "'j1': expected a number, got 'fast'"),
        ({'limits': {'velocity': {'j3': 1.0}}}, 'j3', "limits: velocity: joint 'j3' is not in 'joints'"),
        ({'gravity': [0, 0]}, 'gravity', 'expected 3 entries, got 2'),
        ({'controller_interface': 'radio'}, 'controller_interface', 'expected one of topic, action'),
    ],
)
def test_bad_entries_are_named(change: dict, name: str, words: str) -> None:
    with refused(ModelError, name=name) as caught:
        RobotConfig.from_dict({**GOOD, **change})
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ('text', 'message'), [('joints: [', 'cannot be read'), ('- a\n', 'expected a mapping'), ('', 'expected a mapping')]
)
def test_bad_files_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / 'arm.yaml'
    path.write_text(text)
    with refused(ModelError, file=str(path)) as caught:
        RobotConfig.from_yaml(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with refused(ModelError, file=str(tmp_path / 'none.yaml')):
        RobotConfig.from_yaml(tmp_path / 'none.yaml')


def test_every_shipped_configuration_reads_and_says_what_effort_is() -> None:
    root = Path(__file__).parents[2]
    files = [*sorted((root / 'config').glob('*.yaml')), root / 'robotid_ros' / 'robots' / 'ur10e.yaml']
    robots = [path for path in files if path.stem not in ('gazebo_controllers', 'own_arm')]
    for path in robots:
        config = RobotConfig.from_yaml(path)
        assert len(config.meaning(config.joints)) == len(config.joints), path

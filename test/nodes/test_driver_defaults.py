# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The shipped configurations say what their drivers do: each entry against a dated list of what was read where."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from robotid_ros.model import RobotConfig
from robotid_ros.model.robot_config import DESIGN_KEYS

ROOT = Path(__file__).parents[2]
READ: dict[str, Any] = yaml.safe_load((Path(__file__).parents[1] / 'driver_defaults.yaml').read_text())
STANDARD = {  # what holds where a driver does not say others
    'joint_states_topic': '/joint_states',
    'robot_description_topic': '/robot_description',
    'joint_trajectory_topic': '/{controller}/joint_trajectory',
    'effort_at': 'joints',
}


def entries(config: RobotConfig) -> dict[str, Any]:
    """Return what a file of config/ says of its arm, limits by their kind; the workplace is the user's."""
    content = {key: value for key, value in config.content().items() if key not in DESIGN_KEYS and key != 'gravity'}
    limits = content.pop('limits', {})
    return {**content, **{f'limits.{kind}': values for kind, values in limits.items()}}


def test_every_arm_is_in_the_list() -> None:
    others = {'gazebo_controllers', 'gazebo_ur10e', 'own_arm'}
    assert {path.stem for path in (ROOT / 'config').glob('*.yaml')} - others == set(READ)


@pytest.mark.parametrize('arm', READ)
def test_each_entry_is_what_was_read(arm: str) -> None:
    source = READ[arm]
    config = RobotConfig.from_yaml(ROOT / 'config' / f'{arm}.yaml')
    given = entries(config)
    said = source['values']
    unsaid = set(given) - set(said) - set(source['ours'])
    assert unsaid <= set(STANDARD)
    for key in unsaid:
        assert given[key] == STANDARD[key].format(controller=config.controller)
    assert set(said) | set(source['ours']) <= set(given)
    for key, value in said.items():
        want = value['is']
        if key == 'effort':
            assert given[key] == dict.fromkeys(config.joints, want)
        elif key.startswith('limits.'):
            bound = np.broadcast_to(
                np.deg2rad(want) if value.get('unit') == 'deg' else np.array(want), len(config.joints)
            )
            have = np.array([given[key][joint] for joint in config.joints])
            np.testing.assert_allclose(have, value.get('part', 1.0) * bound, rtol=1e-2, err_msg=key)  # rounded there
            if key in ('limits.velocity', 'limits.acceleration', 'limits.jerk'):
                assert (have <= bound).all(), key
        else:
            assert given[key] == want, key


@pytest.mark.parametrize('arm', READ)
def test_a_source_can_be_found_again(arm: str) -> None:
    source = READ[arm]
    text = ' '.join((ROOT / 'config' / f'{arm}.yaml').read_text().replace('\n#', ' ').split())
    assert source['repository'] in text
    assert source['commit'][:7] in text
    assert str(source['date']) in text
    assert source['date'] <= source['read']
    assert source['license'] in ('MIT', 'Apache-2.0', 'BSD-3-Clause')
    for value in source['values'].values():
        other, _, file = value['file'].rpartition(':')
        assert file
        assert not other or other in source['others']

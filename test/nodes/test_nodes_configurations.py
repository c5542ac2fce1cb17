# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Every shipped robot configuration starts the three nodes, and what they hold can be dumped and loaded again."""

import textwrap
from pathlib import Path

import pytest
import yaml
from ros_helpers import NodeProcess, ros_environment

pytest.importorskip('rclpy', reason='needs the ros extra')
pytestmark = pytest.mark.ros

ROOT = Path(__file__).parents[2]
FILES = [
    *(path for path in sorted((ROOT / 'config').glob('*.yaml')) if path.stem != 'gazebo_controllers'),
    ROOT / 'robotid_ros' / 'robots' / 'ur10e.yaml',
]

# One process for all files: it is the nodes' own code that reads the parameters, and importing it takes longest.
STARTS = textwrap.dedent("""
    import sys
    import rclpy
    import yaml
    from rclpy.parameter import parameter_value_to_python
    from robotid_ros.nodes.excitation import ExcitationNode
    from robotid_ros.nodes.identification import IdentificationNode
    from robotid_ros.nodes.recorder import Recorder

    def values(path, *more):
        rclpy.init(args=['--ros-args', '--params-file', path, *more])
        found = {}
        for kind in (ExcitationNode, Recorder, IdentificationNode):
            node = kind()
            held = node.get_parameters_by_prefix('')
            found[node.get_name()] = {name: item.value for name, item in held.items()}
            node.close()
            node.destroy_node()
        rclpy.shutdown()
        return found

    folder = sys.argv[1]
    for path in sys.argv[2:]:
        first = values(path)
        plain = {f'/{node}': {'ros__parameters': {
            name: list(value) if hasattr(value, '__iter__') and not isinstance(value, str) else value
            for name, value in held.items()}} for node, held in first.items()}
        assert not [name for held in first.values() for name, value in held.items() if value is None], first
        dumped = f'{folder}/dump.yaml'
        with open(dumped, 'w') as file:
            yaml.safe_dump(plain, file)
        again = values(dumped)
        for node, held in first.items():
            for name, value in held.items():
                other = again[node].get(name)
                whole = [item if isinstance(item, (str, int, float)) else list(item or ()) for item in (value, other)]
                assert whole[0] == whole[1], (path, node, name, value, other)
        print('started', path, flush=True)
""")


@pytest.mark.slow
def test_every_shipped_configuration_starts_all_nodes_and_survives_a_dump(tmp_path) -> None:
    own = next(path for path in FILES if path.stem == 'own_arm')
    filled = tmp_path / 'own_arm.yaml'  # a template: what the effort holds has to be filled in
    filled.write_text(own.read_text().replace('# effort: torque', 'effort: torque'))
    files = [*(path for path in FILES if path != own), filled]
    script = tmp_path / 'starts.py'
    script.write_text(STARTS)
    with NodeProcess([str(script), str(tmp_path), *map(str, files)], ros_environment()) as nodes:
        assert nodes.wait() == 0, nodes.output
    assert [line.split()[1] for line in nodes.lines if line.startswith('started')] == list(map(str, files))
    assert len(files) >= 7


@pytest.mark.parametrize('path', sorted((ROOT / 'config').glob('*.yaml')), ids=lambda path: path.stem)
def test_the_arms_of_the_shipped_configurations_keep_off_the_ground_and_have_acceleration_limits(path) -> None:
    if path.stem == 'gazebo_controllers':
        assert '/**/controller_manager' in yaml.safe_load(path.read_text())
        return
    values = yaml.safe_load(path.read_text())['/**']['ros__parameters']
    assert values['ground'] is True
    assert 0.04 <= values['link_radius'] <= 0.1
    assert 'acceleration' in values['limits']

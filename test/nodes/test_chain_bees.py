# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The whole chain with real nodes over DDS: the arm, the friction law and the estimator of one source."""

from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='needs the ros extra')
pytest.importorskip('mujoco', reason='needs the sim extra')
pytestmark = pytest.mark.ros

from chain_helpers import ARM, PATIENCE, RUN, whole_chain  # noqa: E402

from robotid_ros.demo.processes import NodeGroup, isolated_environment, parameter_arguments  # noqa: E402
from robotid_ros.identification import IdentificationResult  # noqa: E402
from robotid_ros.model.packaged import arm_file  # noqa: E402
from robotid_ros.nodes.loop_client import NODES, LoopClient  # noqa: E402


@pytest.mark.slow
def test_one_call_finds_a_non_linear_friction_law_by_bees_on_the_arm_of_their_source(tmp_path: Path) -> None:
    """Excitation with velocities at its start, averages of its periods, smoothing, colony, match in validation."""
    configuration = arm_file('er16').with_suffix('.yaml')
    environment = isolated_environment()
    arm = {**ARM, 'friction_law': 'daemi_heimann', 'publish_rate': 100.0}
    excitation = {
        **RUN,
        'knot_rate': 50.0,
        'window_points': 2000,
        'period': 15.0,
        'periods': 2,
        'starts': 2,
        'iterations': 30,
        'rotor_inertia': False,
    }
    excitation['start_anyway'] = ['unchecked_workspace']
    recorder = {'output_folder': tmp_path / 'recordings', 'start_timeout': PATIENCE}
    identification = {
        'output_folder': tmp_path / 'results',
        'estimator': 'bee-colony',
        'rotor_inertia': False,
        'colony_cycles': 300,
        'colony_limit': 100,
    }
    with NodeGroup(environment, tmp_path) as group:
        group.start('simulated_arm', [*parameter_arguments(arm), '--params-file', str(configuration)])
        others = {'excitation': excitation, 'recorder': recorder, 'identification': identification}
        for name, values in {**others, 'chain': {'friction_sweep': False}}.items():
            words = parameter_arguments({**values, 'use_sim_time': True})
            group.start(name, [*words, '--params-file', str(configuration)])
        client = LoopClient(group.check, int(environment['ROS_DOMAIN_ID']), ('chain', *NODES))
        try:
            text = whole_chain(client)
        finally:
            client.close()
    assert 'identified, usable' in text, text
    (written,) = (tmp_path / 'results').iterdir()
    result = IdentificationResult.load(written / 'result.yaml')
    assert result.friction.name == 'daemi_heimann'
    assert (result.metrics['validation'].match > 75.0).all()

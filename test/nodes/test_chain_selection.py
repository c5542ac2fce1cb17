# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The whole chain with real nodes over DDS: several trajectories, of which the last comes after a restart."""

from pathlib import Path

import pytest
from simulation_helpers import CRANE

pytest.importorskip('rclpy', reason='needs the ros extra')
pytest.importorskip('mujoco', reason='needs the sim extra')
pytestmark = pytest.mark.ros

from chain_helpers import ARM, PATIENCE, RUN, SWEEP, whole_chain  # noqa: E402

from robotid_ros.data.context import read_context  # noqa: E402
from robotid_ros.demo.processes import NodeGroup, isolated_environment, parameter_arguments  # noqa: E402
from robotid_ros.identification import IdentificationResult  # noqa: E402
from robotid_ros.nodes.loop_client import NODES, LoopClient  # noqa: E402


@pytest.mark.slow
def test_one_call_selects_among_trajectories_and_goes_on_where_it_was(tmp_path: Path) -> None:
    """The alternating identification: sweeps between the trajectories, all dealt out in pairs."""
    urdf = tmp_path / 'crane.urdf'
    urdf.write_text(CRANE)
    environment = isolated_environment()
    arm = {**ARM, 'robot': urdf}
    excitation = {**RUN, **SWEEP, 'period': 4.0, 'periods': 2, 'starts': 1, 'iterations': 10, 'seed': 7}
    recorder = {'output_folder': tmp_path / 'recordings', 'effort': 'torque', 'start_timeout': PATIENCE}
    identification = {'output_folder': tmp_path / 'results', 'estimator': 'alternating', 'select': True}
    chain = {'trajectories': 2, 'validation': False}
    domain = int(environment['ROS_DOMAIN_ID'])

    def start(group: NodeGroup, nodes: dict[str, dict[str, object]]) -> LoopClient:
        for name, values in nodes.items():
            group.start(name, parameter_arguments({**values, 'use_sim_time': True}))
        return LoopClient(group.check, domain, ('chain', *NODES))

    with NodeGroup(environment, tmp_path) as arm_and_driver:
        arm_and_driver.start('simulated_arm', parameter_arguments(arm))
        start(arm_and_driver, {'excitation': excitation, 'recorder': recorder}).close()
        with NodeGroup(environment, tmp_path) as group:
            client = start(group, {'identification': identification, 'chain': chain})
            try:
                # What could not end well is refused before anything moves.
                assert 'needs 3 trajectories' in whole_chain(client)
                client.set_parameters('/chain', {'trajectories': 3})
                assert 'set torque_threshold' in whole_chain(client)
                client.set_parameters('/chain', {'trajectory': 'run.yaml'})
                assert 'two runs of one reference never stand in two sets' in whole_chain(client)
                assert client.runs_ended() == 0
                # Two of them now, and the third after a restart: what lies in the folder counts, and its seeds.
                client.set_parameters('/chain', {'trajectories': 2, 'trajectory': ''})
                client.set_parameters('/identification', {'select': False, 'estimator': 'wls'})
                assert 'identified' in whole_chain(client)
                assert client.runs_ended() == 4
            finally:
                client.close()
        asked = {'torque_threshold': [1000.0], 'max_iterations': 200, 'friction': 'coulomb_viscous'}
        folders = {'recordings': [str(tmp_path / 'recordings')]}
        with NodeGroup(environment, tmp_path) as group:
            client = start(group, {'identification': {**identification, **asked, **folders}, 'chain': chain})
            try:
                client.set_parameters('/chain', {'trajectories': 3})
                client.set_parameters('/excitation', {'seed': 8})  # which is recorded
                text = whole_chain(client)
                assert text.startswith('started: 3 x (friction_sweep, excitation), identify; '), text
                assert ' -> identified, usable' in text
                assert client.runs_ended() == 6
                assert client.status_value('identification', 'recordings') == '3'
                assert client.parameters('/excitation', ('seed',)) == {'seed': 8}
            finally:
                client.close()
    written = sorted((tmp_path / 'results').iterdir())[-1]
    result = IdentificationResult.load(written / 'result.yaml')
    decisions = [decision.chosen for decision in result.decisions if decision.subject == 'selection']
    recordings = {path.name for path in (tmp_path / 'recordings').iterdir()}
    dealt = [text.partition(': ')[2] for text in decisions[:3]]
    assert len(set(dealt)) == 3  # one in each set
    seeds = [read_context(path).seeds for path in sorted((tmp_path / 'recordings').iterdir())]
    assert [seed for each in seeds for seed in each] == [7, 8, 9]
    assert set(dealt) <= recordings

# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The whole chain with real nodes over DDS: one call from the parked arm to the report."""

from pathlib import Path

import numpy as np
import pytest
from simulation_helpers import CRANE

pytest.importorskip('rclpy', reason='needs the ros extra')
pytest.importorskip('mujoco', reason='needs the sim extra')
pytestmark = pytest.mark.ros

from trajectory_msgs.msg import JointTrajectory  # noqa: E402

from robotid_ros.data.context import read_context  # noqa: E402
from robotid_ros.demo.processes import NodeGroup, isolated_environment, parameter_arguments  # noqa: E402
from robotid_ros.identification import IdentificationResult  # noqa: E402
from robotid_ros.model import RobotModel  # noqa: E402
from robotid_ros.model.packaged import arm_file  # noqa: E402
from robotid_ros.nodes.loop_client import NODES, LoopClient, ServiceError  # noqa: E402
from robotid_ros.nodes.messages import LATCHED  # noqa: E402
from robotid_ros.simulation import read_truth  # noqa: E402

DEADLINE = 300.0
PATIENCE = 20.0
ARM = {'publish_clock': True, 'speed': 3.0, 'effort_noise': 1e-3}
ARM |= {'physics_rate': 500.0, 'publish_rate': 50.0, 'clock_rate': 25.0}  # enough for these motions
RUN = {
    'joint_state_timeout': PATIENCE,
    'controller_timeout': PATIENCE,
    'window_time': PATIENCE,  # in simulated seconds, which pass quickly
    'settling_time': 3.0,  # simulated seconds, in which the recorder comes up
    'start_delay': 5.0,  # a second of this computer, for the window's way to the arm
    'start_anyway': ['unchecked_workspace', 'no_acceleration_limit'],
}
SWEEP = {'sweep_levels': 2, 'sweep_slowest': 0.1, 'sweep_stroke_time': 0.4}


def test_one_call_runs_everything_from_the_parked_arm_to_the_report(tmp_path: Path) -> None:
    urdf, truth_file = tmp_path / 'crane.urdf', tmp_path / 'truth.yaml'
    urdf.write_text(CRANE)
    environment = isolated_environment()
    arm = {**ARM, 'robot': urdf, 'truth_file': truth_file}
    excitation = {**RUN, **SWEEP, 'period': 4.0, 'periods': 3, 'starts': 2, 'iterations': 30}
    folder = tmp_path / 'results'
    recorder = {'output_folder': tmp_path / 'recordings', 'effort': 'torque', 'start_timeout': PATIENCE}
    identification = {'output_folder': folder, 'friction': 'coulomb_viscous'}
    with NodeGroup(environment, tmp_path) as group:
        group.start('simulated_arm', parameter_arguments(arm))
        others = {'excitation': excitation, 'recorder': recorder, 'identification': identification, 'chain': {}}
        for name, values in others.items():
            group.start(name, parameter_arguments({**values, 'use_sim_time': True}))
        nodes = ('chain', 'excitation', 'recorder', 'identification')
        client = LoopClient(group.check, int(environment['ROS_DOMAIN_ID']), nodes)
        try:
            references: list[JointTrajectory] = []
            client.node.create_subscription(JointTrajectory, '/excitation/reference', references.append, LATCHED)
            said = client.call('/chain/start', DEADLINE)
            assert said.startswith('started: friction_sweep, excitation, validation, identify')
            with pytest.raises(ServiceError, match='the chain is under way: '):
                client.call('/chain/start', DEADLINE)
            steps: list[str] = []

            def ended() -> bool:
                step = client.status_value('chain', 'step') or ''
                if step not in steps[-1:]:
                    steps.append(step)
                status = client.status.get('chain')  # None until its first status has come
                return status is not None and ('identified' in status.message or status.level != b'\0')

            client.wait(ended, 'the end of the chain', 3.0 * DEADLINE)
            text = client.status['chain'].message
            assert text.startswith('identified, usable'), text
            assert steps[-5:] == ['friction_sweep', 'excitation', 'validation', 'identify', 'none']
            purposes = [message.header.frame_id for message in references if message.points]
            assert purposes == ['friction_sweep', 'excitation', 'validation']

            # A run that ends itself, since every parameter is known, is no reason to end the chain; a user's stop is,
            # also while every parameter is still known from the run before.
            client.set_parameters('/chain', {'friction_sweep': False})
            client.set_parameters('/identification', {'stop_when': 100.0})
            client.set_parameters('/excitation', {'periods': 9})
            assert 'started: excitation, validation' in client.call('/chain/start', DEADLINE)
            client.wait(lambda: client.status_value('chain', 'step') == 'validation', 'the validation', DEADLINE)
            assert int(client.status_value('identification', 'stops_asked') or 0) == 1
            client.wait(lambda: client.status_value('excitation', 'state') == 'running', 'its run', DEADLINE)
            client.call('/excitation/stop', DEADLINE)
            client.wait(lambda: 'the validation was stopped' in client.status['chain'].message, 'the end', DEADLINE)
        finally:
            client.close()
    (written,) = folder.iterdir()
    assert str(written) in text
    names = {path.name for path in written.iterdir()}
    assert {'result.yaml', 'calibrated.urdf', 'training_1.npz', 'validation_1.npz'} <= names
    result = IdentificationResult.load(written / 'result.yaml')
    assert result.metrics['validation'].relative_error_total < 5.0
    sources = {kind: [entry['source'] for entry in result.provenance[kind]] for kind in ('training', 'validation')}
    recordings = sorted(path.name for path in (tmp_path / 'recordings').iterdir())
    assert [sources['training'], sources['validation']] == [[recordings[1]], [recordings[2]]]
    # 12 were driven; one counts as two where joint states were lost in it.
    assert 12 <= result.provenance['friction_data'][0]['strokes'] <= 15
    truth = read_truth(truth_file, RobotModel.from_urdf(CRANE)).friction
    found = result.friction_values[:, 0] + result.friction_values[:, 1]  # torque at 1 rad/s
    np.testing.assert_allclose(found, truth.coulomb + truth.viscous, rtol=0.15)


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
                assert 'needs 3 trajectories' in _whole_chain(client)
                client.set_parameters('/chain', {'trajectories': 3})
                assert 'set torque_threshold' in _whole_chain(client)
                client.set_parameters('/chain', {'trajectory': 'run.yaml'})
                assert 'two runs of one reference never stand in two sets' in _whole_chain(client)
                assert client.runs_ended() == 0
                # Two of them now, and the third after a restart: what lies in the folder counts, and its seeds.
                client.set_parameters('/chain', {'trajectories': 2, 'trajectory': ''})
                client.set_parameters('/identification', {'select': False, 'estimator': 'wls'})
                assert 'identified' in _whole_chain(client)
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
                text = _whole_chain(client)
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


def test_one_call_finds_a_non_linear_friction_law_by_bees_on_the_arm_of_their_source(tmp_path: Path) -> None:
    """Excitation with velocities at its start, averages of its periods, smoothing, colony, match in validation."""
    configuration = arm_file('er16').with_suffix('.yaml')
    environment = isolated_environment()
    arm = {**ARM, 'friction_law': 'daemi_heimann', 'publish_rate': 100.0}
    excitation = {**RUN, 'period': 25.0, 'periods': 2, 'starts': 2, 'iterations': 30, 'rotor_inertia': False}
    excitation['start_anyway'] = ['unchecked_workspace']
    recorder = {'output_folder': tmp_path / 'recordings', 'start_timeout': PATIENCE}
    identification = {
        'output_folder': tmp_path / 'results',
        'estimator': 'bee-colony',
        'rotor_inertia': False,
        'colony_cycles': 600,
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
            text = _whole_chain(client)
        finally:
            client.close()
    assert 'identified, usable' in text, text
    (written,) = (tmp_path / 'results').iterdir()
    result = IdentificationResult.load(written / 'result.yaml')
    assert result.friction_name == 'daemi_heimann'
    assert (result.metrics['validation'].match > 75.0).all()


def _whole_chain(client: LoopClient) -> str:
    """Start the chain and return what it ends with; where the computer was too busy for a run, it is started again."""
    text = ''

    def ended() -> int:
        return int(client.status_value('chain', 'ended') or 0)

    for _ in range(3):
        before = ended()
        said = client.call('/chain/start', DEADLINE)
        client.wait(lambda before=before: ended() > before, 'its end', 3.0 * DEADLINE)
        text = f'{said} -> {client.status["chain"].message}'
        if 'did not take the trajectory' not in text and 'too busy' not in text:
            break
    return text

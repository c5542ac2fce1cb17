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

from chain_helpers import ARM, DEADLINE, PATIENCE, RUN, SWEEP  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

from robotid_ros.demo.processes import NodeGroup, isolated_environment, parameter_arguments  # noqa: E402
from robotid_ros.identification import IdentificationResult  # noqa: E402
from robotid_ros.model import RobotModel  # noqa: E402
from robotid_ros.nodes.loop_client import LoopClient, ServiceError  # noqa: E402
from robotid_ros.nodes.messages import LATCHED  # noqa: E402
from robotid_ros.simulation import read_truth  # noqa: E402


@pytest.mark.slow
def test_one_call_runs_everything_from_the_parked_arm_to_the_report(tmp_path: Path) -> None:
    urdf, truth_file = tmp_path / 'crane.urdf', tmp_path / 'truth.yaml'
    urdf.write_text(CRANE)
    environment = isolated_environment()
    arm = {**ARM, 'robot': urdf, 'truth_file': truth_file}
    excitation = {**RUN, **SWEEP, 'period': 4.0, 'periods': 3, 'starts': 1, 'iterations': 10}
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

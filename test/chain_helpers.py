# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The whole chain with real nodes over DDS: what its tests have in common."""

from robotid_ros.nodes.loop_client import LoopClient

DEADLINE = 300.0
PATIENCE = 20.0
ARM = {'publish_clock': True, 'speed': 5.0, 'effort_noise': 1e-3}  # in motion; at rest it goes in real time
ARM |= {'physics_rate': 500.0, 'publish_rate': 50.0, 'clock_rate': 25.0}  # enough for these motions
RUN = {
    'joint_state_timeout': PATIENCE,
    'controller_timeout': PATIENCE,
    'window_time': 60.0,  # in simulated seconds, which pass quickly: one message leads through the whole run
    'knot_rate': 20.0,
    'settling_time': 5.0,  # simulated seconds, in which the recorder comes up
    'start_delay': 6.0,  # for the window's way to the arm, which goes fast from then on
    'start_anyway': ['unchecked_workspace', 'no_acceleration_limit'],
}
SWEEP = {'sweep_levels': 2, 'sweep_slowest': 0.1, 'sweep_stroke_time': 0.4}


def whole_chain(client: LoopClient) -> str:
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

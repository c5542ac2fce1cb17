# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A user of the excitation node: calls its services, follows what it and the arm say."""

import json

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from excitation_helpers import UR10E
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_client import GraphClient
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, String
from trajectory_msgs.msg import JointTrajectory

from robotid_ros.model import RobotModel

NODE = ['-m', 'robotid_ros.nodes.excitation', '--ros-args']
JOINTS = RobotModel.from_urdf(UR10E).joint_names
# The arm of these tests floats in the air, has no effort, and nobody records it; test_excitation_starts.py asks.
ANYWAY = ['no_recorder', 'no_effort', 'unchecked_workspace', 'other_commanders', 'silent_speed_scaling']
SETTINGS = {
    'period': 2.0,
    'harmonics': 3,
    'starts': 1,
    'iterations': 8,
    'position_scaling': 0.15,
    'acceleration_limit': 8.0,
    'periods': 30,
    'ramp_velocity': 1.5,
    'settling_time': 0.3,
    'start_delay': 0.3,
    'joint_state_timeout': 30.0,  # a busy machine is no fault
    'window_time': 12.0,  # nor is one that has no processor for some seconds
    'speed_scaling_topic': '/speed_scaling',
    'start_anyway': f'[{", ".join(ANYWAY)}]',
}


class User(GraphClient):
    """Calls the node's services and follows what it and the arm say."""

    def __init__(self, domain):
        super().__init__(domain, 'user')
        self.statuses, self.references, self.windows = [], [], []
        latched = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.node.create_subscription(DiagnosticStatus, '/excitation/status', self.statuses.append, latched)
        subscribe = self.node.create_subscription
        self._latched = latched
        self.follow_reference()
        self.windows_subscription = subscribe(JointTrajectory, '/joint_trajectory', self.windows.append, 10)
        self.faults = self.node.create_publisher(String, '/fault', 10)
        self.scaling = self.node.create_publisher(Float64, '/speed_scaling', 10)
        self.descriptions = self.node.create_publisher(String, '/robot_description', latched)

    def follow_reference(self):
        self.reference_subscription = self.node.create_subscription(
            JointTrajectory, '/excitation/reference', self.references.append, self._latched
        )

    call = GraphClient.ask

    def said(self):
        return f'; last status: {self.text}'

    def set(self, **values):
        return self.set_parameters('excitation', values)

    @property
    def text(self):
        return self.statuses[-1].message if self.statuses else None

    def value(self, key):
        values = self.statuses[-1].values if self.statuses else ()
        return next((item.value for item in values if item.key == key), None)

    def until_state(self, *states):
        self.until(lambda: self.value('state') in states, f'state {states}')

    def until_phase(self, phase):
        self.until(lambda: (self.value('phase') or '').startswith(phase), f'phase {phase}')

    def until_it_moves(self):
        """Wait for what the arm shows: a run that begins where it is rests there for a while."""
        states = []
        subscription = self.node.create_subscription(JointState, '/joint_states', states.append, 10)
        self.until(lambda: states and np.abs(states[-1].velocity).max() > 0.05, 'it moves')
        self.node.destroy_subscription(subscription)

    def fault(self, kind):
        self.until(lambda: self.faults.get_subscription_count() > 0, 'the arm hears faults')
        self.faults.publish(String(data=kind))

    def report(self):
        return json.loads(self.call('/report').message)


def arguments(**settings):
    return [part for k, v in {**SETTINGS, **settings}.items() for part in ('-p', f'{k}:={v}')]


def start(user):
    user.references.clear()
    user.windows.clear()
    answer = user.call('/excitation/start')
    if not answer.success:  # the arm's joint states may only just have come back
        user.until(lambda: user.call('/excitation/start').success, f'a start ({answer.message})')
    user.until_state('running')


def assert_at_rest_within_limits(user, **expected):
    report = user.report()
    # On a busy computer a window may come when it has passed: it is refused, and the one before ends at rest.
    assert [each for each in report['refused'] if each != 'the trajectory has passed'] == [], report['refused']
    assert report['velocity'] < 1e-9
    assert report['acceleration'] < 1e-9
    assert 0.0 < report['velocity_peak'] < np.pi * 1.001, report
    assert report['acceleration_peak'] < 8.0 * 1.01
    assert user.references[-1].points == []
    assert {key: report[key] for key in expected} == expected
    return report

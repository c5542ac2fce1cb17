# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""An arm that follows a trajectory controller's rules, and breaks in the ways it is told to.

Run as a process of its own. Takes ``joint_trajectory``, publishes ``joint_states``; the topic
``fault`` (String) says what goes wrong from now on: none, silent, nan, jump, reorder, deaf,
unstamped (and deaf), ahead, misses (the first trajectory of another stamp, which no window of the run is). The service
``report`` (Trigger) answers with what the controller commanded since the last report.
"""

import json
import sys
from contextlib import suppress

import numpy as np
import rclpy
from excitation_helpers import Controller
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

RATE = 100.0


class FakeArm(Node):
    def __init__(self, joints):
        super().__init__('fake_arm')
        self.joints = joints
        self.declare_parameter('interpolation_method', 'splines')  # as a controller that replaces at once
        self.controller = Controller(np.zeros(len(joints)))
        self.fault = 'none'
        self.held = self.stamp = None
        self.clear()
        self.states = self.create_publisher(JointState, 'joint_states', 10)
        # A real controller listens at best effort, and a busy machine loses a message now and then.
        self.create_subscription(JointTrajectory, 'joint_trajectory', self.command, 10)
        self.create_subscription(String, 'fault', self.break_down, 10)
        self.create_service(Trigger, 'report', self.report)
        self.create_timer(1.0 / RATE, self.publish)
        print('ready', flush=True)

    def clear(self):
        self.refused, self.peaks, self.accepted = [], [0.0, 0.0], 0

    def now(self):
        return self.get_clock().now().nanoseconds * 1e-9

    def command(self, message):
        stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec or self.now()
        if self.fault == 'misses' and stamp != self.stamp:
            self.fault = 'missed'
            return
        self.stamp = stamp
        order = [message.joint_names.index(name) for name in self.joints]
        points = message.points
        times = [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in points]
        columns = [
            np.array([getattr(p, name) for p in points])[:, order]
            for name in ('positions', 'velocities', 'accelerations')
        ]
        try:
            self.controller.receive(self.now(), stamp, times, *columns)
            self.accepted += 1
        except AssertionError as refusal:
            self.refused.append(str(refusal))

    def break_down(self, message):
        self.fault = message.data
        self.held = self.controller.at(self.now())[0].copy()

    def publish(self):
        now = self.get_clock().now()
        position, velocity, acceleration = self.controller.at(self.now())
        velocity_peak, acceleration_peak = self.peaks
        self.peaks = [
            max(velocity_peak, float(np.abs(velocity).max())),
            max(acceleration_peak, float(np.abs(acceleration).max())),
        ]
        if self.fault == 'silent':
            return
        message = JointState(name=list(self.joints))
        message.header.stamp = now.to_msg()
        if self.fault == 'ahead':
            message.header.stamp.sec += 3
        if self.fault == 'unstamped':
            message.header.stamp.sec = message.header.stamp.nanosec = 0
        if self.fault in ('deaf', 'unstamped'):
            position, velocity = self.held, 0.0 * self.held
        if self.fault == 'jump':
            position = position + 0.7
        position, velocity = list(position), list(velocity)
        if self.fault == 'nan':
            position[2] = float('nan')
        if self.fault == 'reorder':
            message.name = ['gripper', *reversed(self.joints)]
            position, velocity = [0.123, *reversed(position)], [0.0, *reversed(velocity)]
        message.position, message.velocity = position, velocity
        self.states.publish(message)

    def findings(self):
        position, velocity, acceleration = self.controller.at(self.now())
        return {
            'fault': self.fault,
            'refused': self.refused,
            'accepted': self.accepted,
            'velocity_peak': self.peaks[0],
            'acceleration_peak': self.peaks[1],
            'velocity': np.abs(velocity).max(),
            'acceleration': np.abs(acceleration).max(),
            'position': position.tolist(),
        }

    def report(self, _request, response):
        response.success = True
        response.message = json.dumps(self.findings())
        self.clear()
        return response


def main():
    rclpy.init()
    with suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(FakeArm(sys.argv[1].split(',')))


if __name__ == '__main__':
    main()

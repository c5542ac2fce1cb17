# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The arm of ``excitation_fake_arm`` with the action FollowJointTrajectory, as a joint_trajectory_controller has it.

A goal takes the place of the running one, which is aborted with INVALID_GOAL; a cancelled or aborted
goal holds the arm at once, at any speed. More faults: refuse (goals), refuse_later (all but the first
goal of a run), abort (the running goal, and every other at its first step), overlap (the running goal is
aborted just before the next takes its place), unreached (no goal ends), mute (no feedback), astray (another
trajectory is followed), blind (feedback measures nothing), mixed (feedback of other joints).
"""

import sys
from contextlib import suppress
from functools import partial

import numpy as np
import rclpy
from control_msgs.action import FollowJointTrajectory
from excitation_fake_arm import FakeArm
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.executors import ExternalShutdownException
from rclpy.task import Future
from std_msgs.msg import String

Result = FollowJointTrajectory.Result
FEEDBACK_RATE = 20.0


class ActionArm(FakeArm):
    def __init__(self, joints, name):
        super().__init__(joints)
        self.goal = None
        self.server = ActionServer(
            self,
            FollowJointTrajectory,
            name,
            self.carry_out,
            goal_callback=self.decide,
            handle_accepted_callback=self.accept,
            cancel_callback=self.cancel,
        )
        self.create_timer(1.0 / FEEDBACK_RATE, self.tell)

    def clear(self):
        super().clear()
        self.tolerances, self.cancelled, self.preempted, self.held_at = None, 0, 0, []

    def break_down(self, message: String):
        super().break_down(message)
        if self.fault == 'abort' and self.goal is not None:
            self.hold()
            self.violate()

    def violate(self):
        self.end('abort', Result.PATH_TOLERANCE_VIOLATED, 'Aborted due to path tolerance violation')

    def decide(self, goal):
        if self.fault == 'refuse' or (self.fault == 'refuse_later' and self.goal is not None):
            return GoalResponse.REJECT
        accepted, before = self.accepted, self.controller.at(self.now())[0]
        self.command(goal.trajectory)
        if self.fault == 'abort':
            self.controller = type(self.controller)(before)
        return GoalResponse.ACCEPT if self.accepted > accepted else GoalResponse.REJECT

    def accept(self, handle):
        request = handle.request
        self.tolerances = {
            'path': {item.name: item.position for item in request.path_tolerance},
            'goal': {item.name: item.position for item in request.goal_tolerance},
            'time': request.goal_time_tolerance.sec + 1e-9 * request.goal_time_tolerance.nanosec,
        }
        if self.fault == 'overlap' and self.goal is not None:
            self.fault = 'none'
            self.violate()
        if self.goal is not None:
            self.preempted += 1
            self.end('abort', Result.INVALID_GOAL, 'Current goal preempted by new incoming action.')
        stamp, last = request.trajectory.header.stamp, request.trajectory.points[-1].time_from_start
        until = stamp.sec + last.sec + 1e-9 * (stamp.nanosec + last.nanosec)
        self.goal = handle, Future(), until
        handle.execute(partial(self.carry_out, self.goal[1]))
        if self.fault == 'abort':
            self.violate()

    async def carry_out(self, ended, handle):
        how, code, text = await ended
        getattr(handle, how)()
        return Result(error_code=code, error_string=text)

    def end(self, how, code, text):
        self.goal[1].set_result((how, code, text))
        self.goal = None

    def hold(self):
        position, velocity, _ = self.controller.at(self.now())
        self.held_at.append(float(np.abs(velocity).max()))
        self.controller = type(self.controller)(position.copy())

    def cancel(self, handle):
        self.cancelled += 1
        if self.goal is not None and self.goal[0] is handle:
            self.end('canceled', 0, '')
            self.hold()
        return CancelResponse.ACCEPT

    def tell(self):
        if self.goal is None:
            return
        handle, _, until = self.goal
        if self.now() > until and self.fault != 'unreached':
            self.end('succeed', Result.SUCCESSFUL, 'Goal successfully reached!')
            return
        begins = handle.request.trajectory.header.stamp
        if self.fault == 'mute' or (self.fault == 'defer' and self.now() < begins.sec + 1e-9 * begins.nanosec):
            return
        feedback = FollowJointTrajectory.Feedback(joint_names=self.joints[::-1])
        feedback.header.stamp = self.get_clock().now().to_msg()
        desired = self.controller.at(self.now())[0][::-1]
        actual = desired + 0.01
        if self.fault == 'astray':
            desired = desired + 0.5
        if self.fault == 'blind':
            actual = np.full(len(desired), np.nan)
        if self.fault == 'mixed':
            feedback.joint_names = [f'other_{name}' for name in self.joints]
        feedback.desired.positions, feedback.actual.positions = desired.tolist(), actual.tolist()
        feedback.error.positions = (desired - actual).tolist()
        handle.publish_feedback(feedback)

    def findings(self):
        return {
            **super().findings(),
            'tolerances': self.tolerances,
            'cancelled': self.cancelled,
            'preempted': self.preempted,
            'held_at': self.held_at,
            'following': self.goal is not None,
        }


def main():
    rclpy.init()
    with suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(ActionArm(sys.argv[1].split(','), sys.argv[2]))


if __name__ == '__main__':
    main()

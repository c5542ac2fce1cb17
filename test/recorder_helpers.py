# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Joint states as bytes, written by the CDR rules with struct alone, and a process that publishes them."""

import json
import struct
import sys
import time
from pathlib import Path

import numpy as np

START = 1_700_000_000_123_456_789  # ns; a stamp that no double can hold
JOINTS = ('shoulder', 'elbow', 'wrist')


class Message:
    """Plain CDR, field by field."""

    def __init__(self, order, align_empty):
        self.order, self.align_empty = order, align_empty
        self.out = bytearray(b'\x00\x01\x00\x00' if order == '<' else b'\x00\x00\x00\x00')

    def align(self, size):
        self.out.extend(b'\xcd' * (-(len(self.out) - 4) % size))  # padding is whatever was in the buffer

    def numbers(self, form, *values):
        self.align(4)
        self.out.extend(struct.pack(f'{self.order}{form}', *values))

    def text(self, value):
        data = value.encode() + b'\0'
        self.numbers('I', len(data))
        self.out.extend(data)

    def texts(self, values):
        self.numbers('I', len(values))
        for value in values:
            self.text(value)

    def doubles(self, values):
        values = list(values)
        self.numbers('I', len(values))
        if values or self.align_empty:
            self.align(8)
        self.out.extend(struct.pack(f'{self.order}{len(values)}d', *values))


def joint_state(stamp, names, position, velocity=(), effort=(), frame='', order='<', align_empty=False):
    """Return one serialised JointState."""
    message = Message(order, align_empty)
    message.numbers('iI', *divmod(stamp, 10**9))
    message.text(frame)
    message.texts(names)
    for values in (position, velocity, effort):
        message.doubles(values)
    return bytes(message.out)


def joint_trajectory(stamp, names, points, order='<', align_empty=False):
    """Return one serialised JointTrajectory; a point is (time [ns], positions, velocities, accelerations)."""
    message = Message(order, align_empty)
    message.numbers('iI', *divmod(stamp, 10**9))
    message.text('')
    message.texts(names)
    message.numbers('I', len(points))
    for time_, *arrays in points:
        for values in (*arrays, ()):
            message.doubles(values)
        message.numbers('iI', *divmod(time_, 10**9))
    return bytes(message.out)


def reference_message(joints, period, start):
    """Return one serialised period of :func:`harmonics`, from its start to its end."""
    times = np.linspace(0.0, period, 101)
    columns = [np.zeros((101, len(joints))), *harmonics(times, period, len(joints))[:2]]
    points = zip([round(t * 1e9) for t in times], *[c.tolist() for c in (*columns[1:], columns[0])], strict=True)
    return joint_trajectory(start, joints, list(points))


def harmonics(time_, period, joints=3, amplitude=1.0):
    """Return position, velocity, acceleration and effort of a periodic motion, (N, joints) each."""
    t = np.asarray(time_)[:, None]
    phase = np.arange(joints)
    q, dq, ddq = (np.zeros((len(t), joints)) for _ in range(3))
    for k in (1, 2, 3):
        w = 2.0 * np.pi * k / period
        q += amplitude / k * np.sin(w * t + phase)
        dq += amplitude / k * w * np.cos(w * t + phase)
        ddq -= amplitude / k * w**2 * np.sin(w * t + phase)
    effort = 10.0 * amplitude * dq + 5.0 * np.cos(2.0 * np.pi * t / period + phase)
    return q, dq, ddq, effort


def stream(period, periods, rate, rng, noise=(1e-4, 0.05), start=START, joints=JOINTS, amplitude=1.0, lead=0.0):
    """Return (messages, stamps) of a noisy periodic run that begins ``lead`` seconds before its first period."""
    count = round((period * periods + lead) * rate)
    elapsed = np.arange(count) / rate - lead
    stamps = [start + round(float(t) * 1e9) for t in elapsed]
    q, dq, _, effort = harmonics(elapsed, period, len(joints), amplitude)
    q = q + noise[0] * rng.standard_normal(q.shape)
    effort = effort + noise[1] * rng.standard_normal(q.shape)
    messages = [joint_state(s, joints, a, b, c) for s, a, b, c in zip(stamps, q, dq, effort, strict=True)]
    return messages, stamps


def write_plan(path, runs):
    """Write what the publishing process shall do: runs of messages, each with or without a reference."""
    arrays = {}
    plan = []
    for k, run in enumerate(runs):
        messages = run.pop('messages')
        arrays[f'data_{k}'] = np.frombuffer(b''.join(messages), dtype=np.uint8)
        arrays[f'lengths_{k}'] = np.array([len(m) for m in messages])
        plan.append(run)
    np.savez(path, plan=np.array(json.dumps(plan)), **arrays)


def publish(path):
    """Publish every run of a plan when a line on standard input says so; report on standard output."""
    import rclpy
    from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
    from sensor_msgs.msg import JointState
    from trajectory_msgs.msg import JointTrajectory

    from robotid_ros.nodes.messages import trajectory_message

    with np.load(path) as archive:
        plan = json.loads(str(archive['plan']))
        runs = [(archive[f'data_{k}'].tobytes(), archive[f'lengths_{k}'].tolist()) for k in range(len(plan))]
    rclpy.init()
    node = rclpy.create_node('publisher')
    latched = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    reliability = ReliabilityPolicy.BEST_EFFORT if plan[0].get('best_effort') else ReliabilityPolicy.RELIABLE
    # Everything stays in the writer's history: a reader that the machine keeps waiting can ask for it again.
    depth = max(1000, *(len(lengths) for _, lengths in runs))
    states = node.create_publisher(JointState, 'joint_states', QoSProfile(depth=depth, reliability=reliability))
    references = node.create_publisher(JointTrajectory, 'excitation/reference', latched)
    for run, (data, lengths) in zip(plan, runs, strict=True):
        print('ready', flush=True)
        if not sys.stdin.readline():
            break
        if run.get('period'):
            times = np.linspace(0.0, run['period'], 101)
            motion = harmonics(times, run['period'], len(run['joints']))[:3]
            message = trajectory_message(run['joints'], 0.0, times, *motion)
            message.header.stamp.sec, message.header.stamp.nanosec = divmod(run['start'], 10**9)
            references.publish(message)
        while states.get_subscription_count() < 1:
            time.sleep(0.005)
        time.sleep(run.get('settle', 0.0))
        late = send(states, data, lengths, run['rate'])
        print(f'sent {len(lengths)} {late:.4f}', flush=True)
        if run.get('period') and run.get('end', True):
            sys.stdin.readline()
            references.publish(JointTrajectory(joint_names=run['joints']))
    sys.stdin.readline()


def send(publisher, data, lengths, rate):
    """Publish messages at an even rate; return how late the latest was [s]."""
    begin = time.monotonic()
    at, late = 0, 0.0
    count = len(lengths)
    k = 0
    while k < count:
        due = min(count, int((time.monotonic() - begin) * rate) + 1)
        late = max(late, time.monotonic() - begin - k / rate)
        for length in lengths[k:due]:
            publisher.publish(data[at : at + length])
            at += length
        k = due
        ahead = begin + k / rate - time.monotonic()
        if ahead > 0.0:
            time.sleep(ahead)
    return late


if __name__ == '__main__':
    publish(Path(sys.argv[1]))

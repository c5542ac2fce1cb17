# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Everything of a recording but ROS: faults injected with exact counts, crashes, bounded memory."""

import json
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from errors_helpers import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from recorder_helpers import JOINTS, START, harmonics, joint_state, reference_message, stream

from robotid_ros.data import ProcessingSettings, process_file, read_recording
from robotid_ros.data.bag import WRENCH, Bag
from robotid_ros.data.bag_writer import BagWriter
from robotid_ros.data.messages import JointStateDecoder, MessageChunk
from robotid_ros.data.session import RecordingSession
from robotid_ros.data.stream import average_bag
from robotid_ros.errors import DataError
from robotid_ros.loads.wrench import AXES, read_wrench

make_reader = pytest.importorskip('mcap.reader').make_reader

PERIOD, RATE = 1.0, 500
REFERENCE = reference_message(JOINTS, PERIOD, START)
MS = 1_000_000


def record(folder, messages, arrival=None, sequence=None, reference=REFERENCE, joints=(), settings_=None, chunk=60):
    session = RecordingSession(folder, joints, settings_ or ProcessingSettings(), {'topic': '/joint_states'})
    if reference is not None:
        session.follow(reference, START - 10**9)
    arrival = [START + k * 2 * MS for k in range(len(messages))] if arrival is None else arrival
    sequence = list(range(1, len(messages) + 1)) if sequence is None else sequence
    for k in range(0, len(messages), chunk):
        part = slice(k, k + chunk)
        session.take(MessageChunk.of(messages[part], arrival[part], sequence[part]))
    session.finish()
    return session


def assert_average_is_right(dataset, tolerance=0.02):
    q, dq, ddq, effort = harmonics(dataset.time, PERIOD)
    index = [dataset.joint_names.index(joint) for joint in JOINTS]
    assert np.abs(dataset.q[:, index] - q).max() < 1e-4
    assert np.std(dataset.dq[:, index] - dq) < 1e-3
    assert np.std(dataset.ddq[:, index] - ddq) < 2e-2
    assert np.std(dataset.tau[:, index] - effort) < tolerance


def test_a_clean_run_is_averaged_and_can_be_read_again(tmp_path):
    messages, _ = stream(PERIOD, 8, RATE, np.random.default_rng(1), lead=0.3)
    session = record(tmp_path / 'r', messages)
    assert session.problem == ''
    assert session.dataset.periods == 7
    assert_average_is_right(session.dataset)
    found = session.progress()['found']
    assert all(not found[name] for name in ('gaps', 'repeated', 'backward', 'clock_jumps', 'lost_before_capture'))
    raw = read_recording(tmp_path / 'r')
    assert len(raw) == len(messages)
    assert raw.provenance['ended_properly']
    assert raw.joint_names == JOINTS
    again, text = process_file(tmp_path / 'r')
    assert np.allclose(again.tau, session.dataset.tau, rtol=0, atol=1e-12)
    assert '7 of 1 s averaged into 500 bins' in text
    told = yaml.safe_load((tmp_path / 'r' / 'metadata.yaml').read_text())['rosbag2_bagfile_information']['custom_data']
    assert json.loads(told['robotid_ros'])['averaging']['periods_used'] == list(range(1, 8))


@pytest.mark.slow
@pytest.mark.parametrize('chunk', [1, 37, 5000])
def test_every_fault_is_counted_exactly_and_none_reaches_the_average(tmp_path, chunk):
    rng = np.random.default_rng(2)
    count = 8 * RATE
    elapsed = np.arange(count) / RATE
    stamps = START + np.arange(count, dtype=np.int64) * 2 * MS
    q, dq, _, effort = harmonics(elapsed, PERIOD)
    q = q + 1e-4 * rng.standard_normal(q.shape)
    effort = effort + 0.02 * rng.standard_normal(q.shape)
    arrival = stamps + MS // 2
    names = [list(JOINTS) for _ in range(count)]
    values = [[list(row) for row in column] for column in (q, dq, effort)]

    for k in range(700, 760):  # another order: it changes twice
        names[k] = [JOINTS[2], JOINTS[0], JOINTS[1]]
        for column in values:
            column[k] = [column[k][j] for j in (2, 0, 1)]
    for k in range(900, 930):  # an extra joint
        names[k] = [*JOINTS, 'finger']
        for column in values:
            column[k] = [*column[k], 9.0]
    for k in range(1100, 1105):  # no effort
        values[2][k] = []
    for k in range(1200, 1207):  # a joint is missing
        names[k] = list(JOINTS[:2])
        for column in values:
            column[k] = column[k][:2]
    for k in (1300, 1301, 1302):
        names[k] = ['finger']
        for column in values:
            column[k] = [0.0]
    values[0][1400][1] = np.nan
    values[2][1401][0] = np.inf
    stamps[1500] = 0  # unstamped
    stamps[1600] = stamps[1599]  # repeated
    stamps[1601] = stamps[1598]  # backward
    stamps[1700] += 40_000_000 * MS  # stray
    stamps[2500:2900] += 5_000 * MS  # the clock jumps and is set right again
    messages = [joint_state(int(s), n, a, b, c) for s, n, a, b, c in zip(stamps, names, *values, strict=True)]
    messages[1800] = messages[1800][:40]  # undecodable
    sequence = np.arange(1, count + 1)
    keep = np.ones(count, dtype=bool)
    keep[3000:3006] = False  # lost in the middleware: a gap in stamps and in the publisher's count
    messages = [m for m, k in zip(messages, keep, strict=True) if k]

    session = record(
        tmp_path / 'r', messages, arrival[keep].tolist(), sequence[keep].tolist(), joints=JOINTS, chunk=chunk
    )
    found = session.progress()['found']
    expected = {
        'messages': count - 6,
        'undecodable': 1,
        'other_joints': 3,
        'missing_joints': 7,
        'order_changes': 2,
        'missing_effort': 5,
        'extra_joints': ['finger'],
        'lost_before_capture': 6,
        'not_a_number': 2,
        'bad_channels': {'position/elbow': 1, 'torque/shoulder': 1},
        'unstamped': 1,
        'repeated': 1,
        'backward': 1,
        'displaced': 400 + (chunk == 1),
    }
    assert {name: found[name] for name in expected} == expected
    if chunk == 1:  # with one sample at a time nobody sees that a stamp is off by itself
        assert (found['stray'], found['clock_jumps']) == (0, 4)
    else:
        assert (found['stray'], found['clock_jumps']) == (1, 2)
        # missing joints 7, other joints 3, unstamped, repeated and backward, stray, undecodable, lost
        assert found['gaps'] == 7
        assert found['missing'] == 7 + 3 + 1 + 2 + 1 + 1 + 6
    assert session.dataset is not None, session.problem
    assert_average_is_right(session.dataset)
    assert session.dataset.provenance['screening']['not_a_number'] == 2
    told = read_recording(tmp_path / 'r').provenance
    assert told['counts']['missing_joints'] == 7
    assert told['faults']['lost_before_capture'] == 6


def wrench_message(stamp, values):
    """Return a serialised geometry_msgs/msg/WrenchStamped of the frame 'ft'."""
    return struct.pack('<4B2iI4s6d', 0, 1, 0, 0, *divmod(stamp, 10**9), 3, b'ft', *values)


def test_wrenches_are_recorded_beside_and_can_be_read_again(tmp_path):
    """Their stamps lie between those of the joint states; the force follows the first joint, and stays with it."""
    messages, stamps = stream(PERIOD, 4, RATE, np.random.default_rng(1))
    session = RecordingSession(tmp_path / 'r', JOINTS, ProcessingSettings(), {'topic': '/joint_states'})
    session.take(MessageChunk.of(messages, stamps))
    between = [stamp + MS for stamp in stamps[:-1]]
    q = harmonics((np.array(between) - START) * 1e-9, PERIOD, len(JOINTS), 1.0)[0]
    wrenches = [wrench_message(s, (10.0 * x, 2.0, 3.0, 4.0, 5.0, 6.0)) for s, x in zip(between, q[:, 0], strict=True)]
    session.keep('/ft', WRENCH, MessageChunk.of(wrenches, between))
    session.finish()
    found = read_wrench(tmp_path / 'r', JOINTS)
    assert found.joint_names == (*JOINTS, *AXES)
    np.testing.assert_allclose(found.tau[:, -5:], np.tile([2.0, 3.0, 4.0, 5.0, 6.0], (len(found), 1)), atol=1e-9)
    assert np.ptp(found.q[:, 0]) > 0.1
    np.testing.assert_allclose(found.tau_filtered[:, -6], 10.0 * found.q[:, 0], atol=5e-3)
    with refused(DataError, name='/other', expected=('/ft',)):
        read_wrench(tmp_path / 'r', JOINTS, topic='/other')
    record(tmp_path / 'without', messages, reference=None)
    with pytest.raises(DataError, match='the bag has none; set wrench_topic of the recorder'):
        read_wrench(tmp_path / 'without', JOINTS)


def test_joints_come_from_the_reference_where_none_are_given(tmp_path):
    messages, _ = stream(PERIOD, 4, RATE, np.random.default_rng(3))
    some = reference_message(JOINTS[::-1][:2], PERIOD, START)
    session = record(tmp_path / 'r', messages, reference=some)
    assert session.dataset.joint_names == ('wrist', 'elbow')
    q = harmonics(session.dataset.time, PERIOD)[0]
    assert np.abs(session.dataset.q - q[:, [2, 1]]).max() < 2e-4


def test_a_reference_of_joints_that_are_not_recorded_is_refused(tmp_path):
    session = RecordingSession(tmp_path / 'r', JOINTS, ProcessingSettings(), {})
    with refused(DataError, name='tail', expected=('shoulder', 'elbow', 'wrist')):
        session.follow(reference_message(('tail',), 1.0, START), START)
    session.finish()


def test_a_gripper_that_speaks_first_on_the_topic_is_not_taken_for_the_arm(tmp_path):
    messages, stamps = stream(PERIOD, 4, RATE, np.random.default_rng(12))
    mixed = [
        m for k, message in enumerate(messages) for m in (joint_state(stamps[k] - MS, ('finger',), (0.5,)), message)
    ]
    arrival = [stamp - MS * shift for stamp in stamps for shift in (1, 0)]
    for name, reference in (('with', REFERENCE), ('without', None)):
        session = record(tmp_path / name, mixed, arrival, reference=reference)
        found = session.progress()['found']
        assert (found['other_joints'], found['gaps'], found['order_changes']) == (len(messages), 0, 0)
        assert read_recording(tmp_path / name).joint_names == JOINTS
    late = RecordingSession(tmp_path / 'late', (), ProcessingSettings(), {})
    late.take(MessageChunk.of(mixed[:1], arrival[:1]))  # nothing but the gripper so far
    late.follow(REFERENCE, START)
    late.take(MessageChunk.of(mixed[1:], arrival[1:]))
    late.finish()
    assert late.dataset.periods == 3


def test_messages_that_cannot_be_averaged_are_recorded_all_the_same(tmp_path):
    messages, _ = stream(PERIOD, 4, RATE, np.random.default_rng(13))
    session = record(tmp_path / 'r', messages, reference=reference_message(JOINTS, 0.02, START))
    assert session.dataset is None
    assert session.problem.startswith(
        'raw messages are recorded, but no longer averaged: averaging: expected at least 16'
    )
    assert len(read_recording(tmp_path / 'r')) == len(messages)


def test_currents_without_torque_constants_are_averaged_as_currents(tmp_path):
    messages, _ = stream(PERIOD, 4, RATE, np.random.default_rng(6), noise=(0.0, 0.0))
    one = ProcessingSettings(
        effort={**dict.fromkeys(JOINTS, 'current'), 'shoulder': 'torque'},
        torque_constants={'wrist': 0.5},
        gear_ratios={'wrist': 4.0, 'elbow': 100.0},
    )
    session = record(tmp_path / 'r', messages, settings_=one)
    assert session.dataset is None  # what is identified from must be torques
    assert 'that of elbow needs a torque constant' in session.problem
    expected = harmonics(session.currents.time, PERIOD)[3] * [1.0, 1.0, 2.0]
    assert np.abs(session.currents.tau - expected).max() < 1e-6
    with refused(DataError, name='elbow', expected=('wrist',)):
        process_file(tmp_path / 'r', one)
    assert len(read_recording(tmp_path / 'r')) == len(messages)


def test_no_effort_at_all_is_said(tmp_path):
    messages = [joint_state(START + k * 2 * MS, JOINTS, (0.1, 0.2, 0.3)) for k in range(4 * RATE)]
    session = record(tmp_path / 'r', messages)
    assert session.dataset is None
    assert 'no joint state has an effort' in session.problem
    assert session.progress()['found']['missing_effort'] == 4 * RATE


def test_an_arm_that_stands_still_is_recorded_but_not_averaged(tmp_path):
    messages = [joint_state(START + k * 2 * MS, JOINTS, (0.1, 0.2, 0.3), (), (1, 2, 3)) for k in range(4 * RATE)]
    session = record(tmp_path / 'r', messages)
    assert session.dataset is None
    assert 'period 1: the arm stands' in session.problem
    assert session.progress()['found']['samples'] == len(messages)


def test_without_a_reference_everything_is_kept_and_can_be_filtered(tmp_path):
    messages, _ = stream(PERIOD, 6, RATE, np.random.default_rng(4))
    session = record(tmp_path / 'r', messages, reference=None)
    assert session.dataset is None
    assert session.problem == ''
    dataset, text = process_file(tmp_path / 'r', ProcessingSettings(average=False))
    assert 'filter     zero-phase' in text
    assert len(dataset) > 5 * RATE
    found, text = process_file(tmp_path / 'r')
    assert 'as its positions show' in text
    assert found.periods == 5
    assert found.provenance['averaging']['period'] == pytest.approx(PERIOD, rel=1e-5)
    averaged, _ = process_file(tmp_path / 'r', ProcessingSettings(period=PERIOD))
    assert averaged.periods == 5


def test_a_run_of_one_period_falls_back_to_the_filter_and_says_so(tmp_path):
    messages, _ = stream(PERIOD, 1, RATE, np.random.default_rng(5))
    session = record(tmp_path / 'r', messages)
    assert session.dataset is None
    assert 'period 0: transient' in session.problem
    dataset, text = process_file(tmp_path / 'r', ProcessingSettings(cutoff=20.0))
    assert 'any motion: it does not repeat' in text
    assert 'does not follow its reference: no usable period of 1 s: period 0: transient' in text
    assert len(dataset) > 400


def test_a_current_becomes_a_torque_as_it_is_recorded(tmp_path):
    messages, _ = stream(PERIOD, 4, RATE, np.random.default_rng(6), noise=(0.0, 0.0))
    settings_ = ProcessingSettings(
        effort=dict.fromkeys(JOINTS, 'current'),
        torque_constants=dict.fromkeys(JOINTS, 0.5),
        gear_ratios={'elbow': 4.0},
    )
    session = record(tmp_path / 'r', messages, settings_=settings_)
    expected = harmonics(session.dataset.time, PERIOD)[3] * [0.5, 2.0, 0.5]
    assert np.abs(session.dataset.tau - expected).max() < 1e-6


def test_two_runs_in_one_recording_are_not_mixed(tmp_path):
    session = RecordingSession(tmp_path / 'r', JOINTS, ProcessingSettings(), {})
    first, _ = stream(PERIOD, 4, RATE, np.random.default_rng(7))
    later = START + 60 * 10**9
    second, stamps = stream(PERIOD, 4, RATE, np.random.default_rng(8), start=later, amplitude=0.5)
    session.follow(REFERENCE, START)
    session.take(MessageChunk.of(first, [START + k * 2 * MS for k in range(len(first))]))
    session.follow(reference_message(JOINTS, PERIOD, later), later)
    session.take(MessageChunk.of(second, stamps))
    session.finish()
    assert session.dataset.periods == 3
    assert np.abs(session.dataset.q - harmonics(session.dataset.time, PERIOD, amplitude=0.5)[0]).max() < 2e-4


FULL = """
import resource, signal, sys
sys.path.insert(0, {here!r})
from pathlib import Path
from recorder_helpers import *
from robotid_ros.data import ProcessingSettings
from robotid_ros.data.messages import MessageChunk
from robotid_ros.data.session import RecordingSession
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
messages, stamps = stream(1.0, 4, 500, np.random.default_rng(9))
session = RecordingSession(Path({folder!r}), JOINTS, ProcessingSettings(), {{}})
session.follow(reference_message(JOINTS, 1.0, START), START)
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, -1))
for k in range(0, len(messages), 100):
    session.take(MessageChunk.of(messages[k:k + 100], stamps[k:k + 100]))
    if k == 1000:  # there is room again: what could not be written stays away
        resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
session.finish()
print(session.dataset.periods, session.problem)
"""


@pytest.mark.slow
@pytest.mark.parametrize('size', [8_000, 60_000, 61_000])
def test_a_full_disk_ends_the_raw_recording_only(tmp_path, size):
    folder = tmp_path / 'r'
    code = FULL.format(here=str(Path(__file__).parents[1]), folder=str(folder), size=size)
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, timeout=300)
    assert done.stdout.startswith('3 raw messages are no longer written to'), done.stderr
    assert 'File too large' in done.stdout
    if size == 8_000:
        with pytest.raises(DataError, match='what is whole holds none'):
            read_recording(folder)
        return
    recording = read_recording(folder)
    assert len(recording) in (100, 200, 300, 400)
    assert np.allclose(recording.time, np.arange(len(recording)) / 500, atol=1e-8)
    assert recording.provenance['ended_properly'] is False


def test_a_folder_is_never_recorded_over(tmp_path):
    messages, _ = stream(PERIOD, 1, RATE, np.random.default_rng(10))
    record(tmp_path / 'r', messages, reference=None)
    with pytest.raises(DataError, match='holds a recording already'):
        RecordingSession(tmp_path / 'r', JOINTS, ProcessingSettings(), {})


WRITER = """
import sys, time
sys.path.insert(0, {here!r})
from pathlib import Path
from recorder_helpers import *
from robotid_ros.data import ProcessingSettings
from robotid_ros.data.messages import MessageChunk
from robotid_ros.data.session import RecordingSession
session = RecordingSession(Path({folder!r}), JOINTS, ProcessingSettings(), {{'topic': 't'}})
template = bytearray(joint_state(START, JOINTS, (1, 2, 3), (4, 5, 6), (7, 8, 9)))
k = 0
while True:
    messages = []
    for _ in range(250):
        struct.pack_into('<iI', template, 4, *divmod(START + k * 1_000_000, 10**9))
        messages.append(bytes(template))
        k += 1
    session.take(MessageChunk.of(messages, [START + i * 1_000_000 for i in range(k - 250, k)], list(range(k - 250, k))))
    print(k, flush=True)
"""


def test_after_kill_9_everything_handed_over_is_readable(tmp_path):
    folder = tmp_path / 'r'
    code = WRITER.format(here=str(Path(__file__).parents[1]), folder=str(folder))
    child = subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE, text=True)
    try:
        written = 0
        while written < 5000:
            written = int(child.stdout.readline())
        os.kill(child.pid, signal.SIGKILL)
        rest = child.stdout.read().split()
        written = max([written, *(int(line) for line in rest[:-1])])
    finally:
        child.kill()
        child.wait()
    recording = read_recording(folder)
    assert len(recording) >= written
    assert np.array_equal(np.diff(np.rint(recording.time * 1000)), np.ones(len(recording) - 1))
    assert recording.provenance['ended_properly'] is False
    assert recording.joint_names == JOINTS
    assert not (folder / 'metadata.yaml').exists()  # which only a complete bag has


def small_bag(folder, chunks=4):
    writer = BagWriter(folder, {'/joint_states': 'sensor_msgs/msg/JointState'})
    for f in range(chunks):
        messages = [joint_state(START + k * MS, JOINTS, (k, 0, 0)) for k in range(5 * f, 5 * f + 5)]
        writer.append('/joint_states', MessageChunk.of(messages, range(5 * f, 5 * f + 5), range(5 * f + 1, 5 * f + 6)))
    writer.close()
    return folder / f'{folder.name}.mcap'


def kept(folder):
    """Return the first positions of the messages that can be read, and what was found."""
    bag = Bag.open(folder)
    found = [chunk for _, chunk in bag.messages(['/joint_states'])]
    messages = [message for chunk in found for message in chunk.messages()]
    return JointStateDecoder(joints=JOINTS).decode(messages)['position'][:, 0].tolist(), bag


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(st.integers(8, 100_000))
def test_a_bag_cut_off_anywhere_gives_its_whole_chunks_and_says_what_is_missing(tmp_path_factory, cut):
    folder = tmp_path_factory.mktemp('bag')
    path = small_bag(folder)
    whole = path.read_bytes()
    cut = 8 + cut % (len(whole) - 8)
    with open(path, 'rb') as file:
        indices = make_reader(file).get_summary().chunk_indexes
    chunks = sum(index.chunk_start_offset + index.chunk_length <= cut for index in indices)
    path.write_bytes(whole[:cut])
    if not chunks:
        with pytest.raises(DataError, match='expected a topic of sensor_msgs'):
            read_recording(folder)
        return
    values, bag = kept(folder)
    assert values == list(range(5 * chunks))
    assert not bag.complete
    assert bag.faults['damaged_chunks'] == 0
    provenance = read_recording(folder).provenance
    assert provenance['faults']['cut_off_bytes'] == bag.faults['cut_off_bytes'] < len(whole)
    assert provenance['ended_properly'] is False


@pytest.mark.slow
@settings(deadline=None, max_examples=120)
@given(st.integers(0, 100_000), st.integers(1, 255))
def test_a_damaged_byte_never_changes_a_value(tmp_path_factory, place, flip):
    folder = tmp_path_factory.mktemp('bag')
    path = small_bag(folder)
    data = bytearray(path.read_bytes())
    place %= len(data)
    data[place] ^= flip
    path.write_bytes(data)
    try:
        values, bag = kept(folder)
    except (DataError, KeyError):
        return
    assert set(values) <= set(range(20))
    assert values == sorted(values)
    assert len(values) == 20 or any(bag.faults.values()) or not bag.complete


@pytest.mark.slow
def test_memory_does_not_grow_with_the_length_of_a_recording(tmp_path):
    """The process holds as much after forty more periods as after ten."""
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from pathlib import Path
from recorder_helpers import *
from robotid_ros.data import ProcessingSettings
from robotid_ros.data.messages import MessageChunk
from robotid_ros.data.session import RecordingSession
session = RecordingSession(Path({str(tmp_path / 'r')!r}), JOINTS, ProcessingSettings(), {{}})
session.follow(reference_message(JOINTS, 2.0, START), START)
messages, stamps = stream(2.0, 1, 1000, np.random.default_rng(0))
block = np.frombuffer(b''.join(messages), np.uint8).reshape(len(messages), -1).copy()
for period in range(50):
    now = np.array(stamps) + period * 2 * 10**9
    block[:, 4:8] = (now // 10**9).astype('<i4').view(np.uint8).reshape(-1, 4)
    block[:, 8:12] = (now % 10**9).astype('<u4').view(np.uint8).reshape(-1, 4)
    session.take(MessageChunk.of([row.tobytes() for row in block], now))
    if period in (9, 49):
        print(next(line for line in open('/proc/self/status') if line.startswith('VmRSS')).split()[1])
session.finish()
print(session.dataset.periods)
"""
    result = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True, timeout=600)
    early, late, periods = (int(word) for word in result.stdout.split())
    assert periods == 49
    assert late - early < 8 * 1024  # kB; the 80 000 messages between them are 17 MB


@pytest.mark.slow
def test_a_long_bag_is_averaged_piece_by_piece(tmp_path):
    messages, _ = stream(PERIOD, 40, RATE, np.random.default_rng(11))
    session = record(tmp_path / 'r', messages, chunk=125)
    again = average_bag(Bag.open(tmp_path / 'r'), ProcessingSettings())
    assert again.periods == session.dataset.periods == 39
    assert np.allclose(again.q, session.dataset.q, rtol=0, atol=1e-12)
    assert np.allclose(again.noise_std, session.dataset.noise_std, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize('lost', [0.0, 0.4])
def test_efforts_of_a_late_simulation_go_with_the_accelerations_of_their_own_steps(tmp_path, lost):
    """A motion commanded by a late clock; messages are lost where the arm accelerates. tau = 3 ddq + 2 sin q holds."""
    rng = np.random.default_rng(5)
    step, lead, periods = 1e-3, 0.6, 5
    count = round((lead + periods * PERIOD) / step)
    known, k = np.arange(count), 0
    while k < count:
        stall = int(rng.integers(1, 9))
        known[k : k + stall] = k
        k += stall
    wanted, speed = harmonics(known * step - lead, PERIOD)[:2]
    position, velocity = (np.zeros_like(wanted) for _ in range(2))
    at = wanted[0]
    for k in range(count):  # velocities with a little feedback, and the positions after each step
        velocity[k] = speed[k] + 5.0 * (wanted[k] - at)
        position[k] = at = at + step * velocity[k]
    before, acceleration = position - step * velocity, np.diff(velocity, axis=0, prepend=velocity[:1]) / step
    effort = 3.0 * acceleration + 2.0 * np.sin(before)
    hard = np.abs(acceleration[:, 0]) > np.quantile(np.abs(acceleration[:, 0]), 0.8)
    kept = np.flatnonzero(~hard | (rng.random(count) >= lost))
    kept = kept[kept > 0]
    rows = zip(*(array[kept].tolist() for array in (known, position, velocity, effort)), strict=True)
    messages = [joint_state(START + round((k * step - lead) * 1e9), JOINTS, q, v, tau) for k, q, v, tau in rows]
    session = record(tmp_path / 'r', messages, [START + int(k) * MS for k in kept])
    data = session.dataset
    assert data.provenance['averaging']['step'] == pytest.approx(step)
    terms = np.stack([data.ddq.ravel(), np.sin(data.q).ravel()], axis=1)
    found = np.linalg.lstsq(terms, data.tau.ravel(), rcond=None)[0]
    assert found == pytest.approx([3.0, 2.0], rel=2e-3)
    assert np.std(data.tau.ravel() - terms @ found) < 2e-3 * np.std(data.tau)
    assert data.noise_std is None

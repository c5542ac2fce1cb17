# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What the recorder says about itself."""

from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus

from robotid_ros.data.messages import FAULTS
from robotid_ros.data.session import RecordingSession


def recorder_status(
    session: RecordingSession | None, last: RecordingSession | None, problem: str, silence: float
) -> tuple[bytes, str, dict[str, object]]:
    """Return level, message and values of the status.

    The sessions are the one that runs and the one that ended last; ``problem`` says what failed, and ``silence`` is how
    long no joint state has come [s], 0 while that is not too long.
    """
    shown = session or last
    if shown is None:
        level = DiagnosticStatus.ERROR if problem else DiagnosticStatus.OK
        return level, problem or 'idle: call ~/start, or start an excitation', {'state': 'idle'}
    progress = shown.progress()
    found, periods = progress['found'], progress['periods']
    values: dict[str, object] = {
        'state': 'recording' if session is not None else 'failed' if problem else 'finished',
        'folder': shown.folder,
        'messages': found['messages'],
        'rate': found['rate'],
        'raw_megabytes': progress['raw_bytes'] / 1e6,
    }
    faults = {name: found[name] for name in FAULTS if found[name]}
    values.update(faults)
    if found['extra_joints']:
        values['extra_joints'] = ', '.join(found['extra_joints'])
    values.update({f'not_a_number/{name}': count for name, count in found['bad_channels'].items()})
    values.update(_period_values(shown, periods))
    problem = problem or shown.problem
    if problem:
        # What is on disk can be identified later, from a run that was stopped too, and with torque constants.
        harmless = problem == shown.problem and shown.whole
        return DiagnosticStatus.WARN if harmless else DiagnosticStatus.ERROR, problem, values
    if silence:
        return DiagnosticStatus.ERROR, f'no joint state for {silence:.1f} s', values
    text = _sentence(session is not None, values)
    if faults:
        named = ', '.join(f'{count} {name.replace("_", " ")}' for name, count in faults.items())
        return DiagnosticStatus.WARN, f'{text}; found: {named}', values
    return DiagnosticStatus.OK, text, values


def _period_values(session: RecordingSession, periods: dict[str, Any]) -> dict[str, object]:
    if session.reference is None:
        return {}
    if session.reference.sweep:
        return {'strokes': -1 if session.strokes is None else session.strokes.count}
    excluded = periods['excluded']
    values: dict[str, object] = {
        'period': -1 if periods['current'] is None else periods['current'],
        'period_length': session.reference.period,
        'periods_averaged': periods['used'],
        'periods_left_out': len(excluded),
    }
    values.update({f'left_out/{number}': reason for number, reason in excluded[-10:]})
    if periods['noise_std'] is not None:
        names = session.reference.joints
        values.update({f'noise/{joint}': std for joint, std in zip(names, periods['noise_std'], strict=True)})
    return values


def _sentence(recording: bool, values: dict[str, object]) -> str:
    text = f'{"recording" if recording else "recorded"} {values["messages"]} messages'
    if 'strokes' in values:
        return f'{text} of a friction sweep' + ('' if recording else f', {values["strokes"]} steady strokes')
    if 'periods_averaged' in values:
        text += f', {values["periods_averaged"]} periods averaged, {values["periods_left_out"]} left out'
    return text

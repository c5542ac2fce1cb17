# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The servos of an arm, and the replay of a recording in the simulator, driven by them or by its torque.

Servos make torque of the difference between the commanded and the measured positions. Driven by the recorded torque, an
arm has no feedback, and any error grows with the square of time: the simulation starts anew from the recorded state at
the beginning of each window. Driven through servos, it follows the command for as long as the recording lasts.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.dataset import Dataset
from robotid_ros.errors import DataError
from robotid_ros.signals.filtering import earlier
from robotid_ros.simulation.mjcf import load_mujoco

# Longest delay that is looked for [s]: position interfaces of arms take 2 to 50 ms.
LONGEST_DELAY = 0.1
_PLAYS = 12  # that are tried, up to the error that a fifth of the samples exceeds
_CLEAR = 0.1  # of a joint's rms error: a torque beyond it has a direction
_LEAST = 0.02  # of a joint's error is made by its bodies, or its scale is not known
_FILTERED = 0.45  # of the rate: no cutoff above it has changed the samples
_SLOW = 0.01  # rad/s or m/s: the direction of friction is smooth below


@dataclass(frozen=True, slots=True, kw_only=True)
class Servo:
    """Servos of n joints.

        tau = kp z(q_c(t - d) - q) + kd (dq_c(t - d) - dq) + share h(q, dq) + offset

    with h the torque of gravity, Coriolis and centrifugal forces, of which most controllers add a share, and
    z(e) = sign(e) max(|e| - play/2, 0): within the play, of gears or of a controller's dead band, an error makes no
    torque.
    """

    stiffness: Array  # shape (n,), as the next: kp [N m/rad] and kd [N m s/rad]
    damping: Array
    share: Array  # shape (n,): 0 without a model, 1 with a perfect one
    offset: Array  # shape (n,): [N m]
    play: Array  # shape (n,): [rad or m]
    delay: float  # d, one for all joints [s]
    # shape (n,): 100 (1 - |tau - tau_servo| / |tau|): how well the servo explains the torque it was found in [%]
    match: Array

    def torque(self, error: Array, rate_error: Array, bias: Array) -> Array:
        """Return the torque for errors of position and velocity [rad, rad/s] and the model's torque h [N m]."""
        beyond = _beyond(error, self.play)
        return self.stiffness * beyond + self.damping * rate_error + self.share * bias + self.offset


def identify_servo(recorded: Dataset, command: Array, torque: Array, bias: Array) -> Servo:
    """Return the servos that explain the torque best.

    For each delay, gains are the least-squares solution joint by joint; the delay with the smallest residual of all
    joints, each relative to its torque, is refined by a parabola.

    Of the recorded motion, the first LONGEST_DELAY of each run is left out. ``command``, shape (N, n): commanded
    positions [rad]. ``torque`` and ``bias``, shape (N, n): of the motors, measured or of an identified model, and of
    that model's gravity, Coriolis and centrifugal forces [N m]. Raises a DataError if there are too few samples, or the
    command does not differ from the position.
    """
    kept = _kept(recorded, command)

    def fit(delay: float) -> tuple[Array, Array]:
        """Return the gains (n, 4), and the part of the torque's squares (n,) that they leave."""
        wanted, speed = delayed(command, delay, recorded.rate)
        columns = np.stack([wanted - recorded.q, speed - recorded.dq, bias, np.ones_like(bias)], axis=2)[kept]
        size = np.maximum(np.linalg.norm(columns, axis=0), np.finfo(float).tiny)
        rows = (columns / size).transpose(1, 0, 2)
        solved = [np.linalg.lstsq(own, given, rcond=1e-10)[0] for own, given in zip(rows, torque[kept].T, strict=True)]
        left = torque[kept].T - np.einsum('nNk,nk->nN', rows, solved)
        return solved / size, np.sum(left**2, axis=1) / np.sum(torque[kept] ** 2, axis=0)

    delay = _best_delay(lambda each: float(fit(each)[1].sum()), recorded.rate)
    gains, left = fit(delay)
    stiffness, damping, share, offset = gains.T
    match = 100.0 * (1.0 - np.sqrt(left))
    play = np.zeros_like(stiffness)
    return Servo(stiffness=stiffness, damping=damping, share=share, offset=offset, play=play, delay=delay, match=match)


def identify_drives(recorded: Dataset, command: Array, bodies: Array, bias: Array) -> tuple[Servo, dict[str, Array]]:
    """Return the servos and the gearing that explain a motion, of which no torque was measured.

    The gearing is what motor and gear add to the bodies, by the names of :class:`RobotModel`: rotor_inertia [kg m^2, or
    kg], Coulomb friction [N m] and viscous damping [N m s/rad], each of shape (n,).

    The bodies of the description tell the scale of all torques. With their torque b, and that of gravity, Coriolis and
    centrifugal forces h,

        z(q_c - q) = (b - s h + Ia ddq + fc sign(dq) + fv dq - kd (dq_c - dq) - o) / kp

    holds for each joint, with z of :class:`Servo`, and none of kp, kd, Ia, fc, fv below zero. Errors of position are
    measured best, so they are the left side. Delay and play leave the smallest part of the error, if the play is
    passed with the direction of the torque; s is 0 or 1, the same for all joints: a controller knows the arm or does
    not. Where bodies make out less than a fiftieth of a joint's error, its scale is not known, and does not matter: kp
    is then the one with which they make out so much. In slow motions a delay looks like viscous friction.

    ``recorded`` and ``command``: see :func:`identify_servo`. ``bodies`` and ``bias``, shape (N, n): b and h [N m].
    Raises a DataError if there are too few samples, the command does not differ from the position, or bodies make no
    torque.
    """
    kept = _kept(recorded, command)
    n = recorded.q.shape[1]
    if not (np.abs(bodies[kept]).max(axis=0) > 0.0).all():
        raise DataError('the bodies of the description make no torque: servos have no scale; give masses to its links')

    def seen(signal: Array) -> Array:
        """Return a signal as the measured motion is filtered."""
        if recorded.cutoff >= _FILTERED * recorded.rate:
            return signal
        return recorded.low_passed(signal, recorded.cutoff)

    ones = np.ones_like(bodies)
    rubs = seen(np.tanh(recorded.dq / _SLOW))
    fixed = np.stack([recorded.ddq, rubs, recorded.dq, ones, -ones], axis=2)

    def fit(delay: float, play: Array, share: float) -> tuple[Array, Array]:
        """Return the parameters over the stiffness, (n, 7), and the part of the error's squares (n,) that is left."""
        from scipy.optimize import nnls  # not at the top: see robotid_ros.signals.filtering

        wanted, speed = map(seen, delayed(command, delay, recorded.rate))
        moving = np.stack([bodies - share * bias, recorded.dq - speed], axis=2)
        columns = np.concatenate([moving, fixed], axis=2)[kept]
        error = (wanted - recorded.q)[kept]
        target, size = _beyond(error, play), np.maximum(np.linalg.norm(error, axis=0), np.finfo(float).tiny)
        found, left = np.empty((n, columns.shape[2])), np.empty(n)
        for j in range(n):
            scale = np.maximum(np.linalg.norm(columns[:, j], axis=0), np.finfo(float).tiny)
            triangle = np.asarray(np.linalg.qr(np.column_stack([columns[:, j] / scale, target[:, j]]), mode='r'))
            known = np.eye(len(scale))[0] * _LEAST * size[j]  # what bodies make out at least
            found[j] = (known + nnls(triangle[:, :-1], triangle[:, -1] - triangle[:, :-1] @ known)[0]) / scale
            stretch = columns[:, j] @ found[j]
            through = 0.5 * play[j] * np.tanh(stretch * np.sqrt(len(error)) / (_CLEAR * size[j]))
            left[j] = np.sum((error[:, j] - stretch - through) ** 2) / size[j] ** 2
        return found, left

    def search(share: float) -> tuple[Array, Array, float, Array]:
        play, delay = np.zeros(n), 0.0

        def cost(late: float) -> float:
            return float(fit(late, play, share)[1].sum())

        for _ in range(2):  # delay and play depend on each other a little
            delay = _best_delay(cost, recorded.rate)
            late = delayed(command, delay, recorded.rate)[0]
            step = 2.0 * np.quantile(np.abs(late - recorded.q)[kept], 0.8, axis=0) / _PLAYS
            for _ in range(3):  # a grid, twice refined
                tried = np.maximum(play + np.arange(-_PLAYS, _PLAYS + 1)[:, None] * step, 0.0)
                play = tried[np.argmin([fit(delay, each, share)[1] for each in tried], axis=0), np.arange(n)]
                step = step / 6.0
        return *fit(delay, play, share), delay, play

    share, (found, left, delay, play) = min(
        ((each, search(each)) for each in (0.0, 1.0)), key=lambda each: float(each[1][1].sum())
    )
    stiffness = 1.0 / found[:, 0]
    damping, rotor, friction, viscous, down, up = (found[:, 1:] * stiffness[:, None]).T
    servo = Servo(
        stiffness=stiffness,
        damping=damping,
        share=np.full(n, share),
        offset=up - down,
        play=play,
        delay=delay,
        match=100.0 * (1.0 - np.sqrt(left)),
    )
    return servo, {'rotor_inertia': rotor, 'friction': friction, 'damping': viscous}


def _kept(recorded: Dataset, command: Array) -> Array:
    """Return which samples count: not those before which the command is not known.

    Raises a DataError if they are too few, or the command does not differ from the position.
    """
    skip = int(np.ceil(LONGEST_DELAY * recorded.rate)) + 1
    kept = np.ones(len(recorded), dtype=bool)
    for run in np.unique(recorded.trajectory):
        kept[np.flatnonzero(recorded.trajectory == run)[:skip]] = False
    if kept.sum() < 10 * skip:
        raise DataError(f'a servo cannot be found in {kept.sum()} samples; give a recording of a few seconds of motion')
    if np.abs(command - recorded.q).max() < 1e-9:
        raise DataError('the command equals the measured position; give what was commanded, not what was measured')
    return kept


def _best_delay(cost: Callable[[float], float], rate: float) -> float:
    """Return the delay of the smallest cost on a grid of half samples, refined by a parabola."""
    delays = np.arange(0.0, LONGEST_DELAY, 0.5 / rate)
    costs = np.array([cost(float(each)) for each in delays])
    best = int(np.argmin(costs))
    if not 0 < best < len(delays) - 1:
        return float(delays[best])
    before, at, after = costs[best - 1 : best + 2]
    return float(delays[best] + 0.5 * (before - after) / (before - 2.0 * at + after) * (delays[1] - delays[0]))


def _beyond(error: Array, play: Array) -> Array:
    return np.asarray(np.sign(error) * np.maximum(np.abs(error) - 0.5 * play, 0.0))


def delayed(command: Array, delay: float, rate: float) -> tuple[Array, Array]:
    """Return a command as it arrives after a delay [s], and its velocity; shapes (N, n), sampled at ``rate`` [Hz]."""
    speed = np.gradient(command, 1.0 / rate, axis=0)
    return earlier(command, rate * delay), earlier(speed, rate * delay)


# Simulation steps at most this long [s]: a tenth of the fastest time constant of usual joint servos, 10 ms.
_STEP = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class MotionError:
    """How far a simulated motion is from the recorded one; arrays of shape (n,)."""

    rms: Array  # of the difference of positions [rad or m]
    relative: Array  # 100 |q_sim - q| / |q - q_start| over the windows' samples [%]
    relative_total: float  # the same over all joints stacked [%]


def windows_of(recorded: Dataset, seconds: float) -> list[slice]:
    """Return the windows: consecutive, within runs, of this length.

    Raises a DataError if a window has fewer than two steps, or no run is as long.
    """
    if not 2.0 <= seconds * recorded.rate < np.inf:
        message = f'windows: expected at least two steps, {2.0 / recorded.rate:g} s, got {seconds:g} s'
        raise DataError(message, expected=2.0 / recorded.rate, found=seconds)
    length = round(seconds * recorded.rate)
    windows = []
    for run in np.unique(recorded.trajectory):
        rows = np.flatnonzero(recorded.trajectory == run)
        windows += [slice(k, k + length + 1) for k in range(rows[0], rows[-1] - length + 1, length)]
    if not windows:
        raise DataError(f'no run of the recording lasts {seconds:g} s; give shorter windows', expected=seconds)
    return windows


def replayed(
    mjcf: str,
    recorded: Dataset,
    windows: list[slice],
    servo: Servo | None = None,
    command: Array | None = None,
    extra: Array | None = None,
) -> Array:
    """Return the positions of an arm that gets the recorded torque, from the recorded state on in each window.

    They have the shape (N, n) and are NaN outside of the windows. The joints of the MJCF have the recorded ones' names.
    A ``servo`` drives the arm along a ``command``, shape (N, n), in place of the recorded torque: commanded positions
    at the recorded instants [rad or m]. ``extra``, shape (N, n), is torque on top of that [N m or N].

    Raises a MissingDependencyError without MuJoCo. Raises a DataError if the simulated arm flies apart.
    """
    mujoco = load_mujoco('replay a recording')
    mujoco.set_mju_user_warning(lambda _: None)  # it would print each, and write a log file beside the user's
    model = mujoco.MjModel.from_xml_string(mjcf)
    steps = int(np.ceil(1.0 / (recorded.rate * _STEP)))
    model.opt.timestep = 1.0 / (recorded.rate * steps)
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data = mujoco.MjData(model)
    joints = [int(model.joint(name).dofadr[0]) for name in recorded.joint_names]
    signals = [recorded.tau] if servo is None or command is None else [*delayed(command, servo.delay, recorded.rate)]
    signals.append(np.zeros_like(recorded.q) if extra is None else extra)
    result = np.full_like(recorded.q, np.nan)
    for window in windows:
        mujoco.mj_resetData(model, data)
        data.qpos[joints], data.qvel[joints] = recorded.q[window.start], recorded.dq[window.start]
        mujoco.mj_forward(model, data)
        result[window.start] = recorded.q[window.start]
        for row in range(window.start, window.stop - 1):
            for share in (np.arange(steps) + 0.5) / steps:
                torque, *speed, more = ((1.0 - share) * x[row] + share * x[row + 1] for x in signals)
                if servo is not None:
                    errors = torque - data.qpos[joints], speed[0] - data.qvel[joints]
                    torque = servo.torque(*errors, data.qfrc_bias[joints])
                data.qfrc_applied[joints] = torque + more
                mujoco.mj_step(model, data)
            result[row + 1] = data.qpos[joints]
        if any(warning.number for warning in data.warning) or not np.isfinite(result[window]).all():
            raise DataError(
                'the simulated arm flies apart under the recorded torque: it is none that this arm can have, or the '
                'recording is damaged'
            )
    return result


def motion_error(recorded: Dataset, simulated: Array, windows: list[slice]) -> MotionError:
    """Return the error of a replay, see :class:`MotionError`; the start of each window, which is given, not counted."""
    gaps = np.concatenate([simulated[w][1:] - recorded.q[w][1:] for w in windows])
    moves = np.concatenate([recorded.q[w][1:] - recorded.q[w][0] for w in windows])
    gap, move = np.linalg.norm(gaps, axis=0), np.linalg.norm(moves, axis=0)
    return MotionError(
        rms=np.sqrt(np.mean(gaps**2, axis=0)),
        relative=100.0 * gap / np.maximum(move, np.finfo(float).tiny),
        relative_total=float(100.0 * np.linalg.norm(gap) / np.linalg.norm(move)),
    )

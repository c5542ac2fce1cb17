# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Figures of torque: measured against predicted, and what is left between them."""

import numpy as np
from scipy.signal import welch

from robotid_ros.arrays import Array
from robotid_ros.data.dataset import Dataset
from robotid_ros.report.chart import Axis, Band, Chart, Dots, Line, Role, Rule, Series
from robotid_ros.report.content import Figure
from robotid_ros.report.decimate import envelope, spread
from robotid_ros.report.numbers import number, percent

__all__ = ['residual_spectrum_figure', 'residual_velocity_figure', 'torque_figure']

_BINS = 15
_NAMES = {True: ('N·m', 'rad/s'), False: ('N', 'm/s')}


def units_of(prismatic: bool) -> tuple[str, str]:
    """Return the units of torque and speed of a joint, as printed."""
    return _NAMES[not prismatic]


def torque_figure(
    dataset: Dataset, predicted: Array, *, name: str, title: str, prismatic: tuple[bool, ...] | None = None
) -> Figure:
    """Return measured and predicted torque over time, one chart per joint.

    Of several runs, the one with the largest error is shown.

    Parameters
    ----------
    dataset : Dataset
    predicted : ndarray, shape (N, n)
        Torque that the model predicts for it [N m or N].
    name : str
        File name of the figure.
    title : str
        Which data these are: "Validation".
    prismatic : tuple of bool, optional
        Which joints are; none by default.
    """
    run = _worst_run(dataset, predicted)
    rows = dataset.trajectory == run
    time = dataset.time[rows] - dataset.time[rows][0]
    charts = []
    for j, joint in enumerate(dataset.joint_names):
        torque, _ = units_of(bool(prismatic and prismatic[j]))
        measured, model = dataset.tau[rows, j], predicted[rows, j]
        residual = measured - model
        rmse = float(np.sqrt(np.mean(residual**2)))
        match = 100.0 * (1.0 - float(np.linalg.norm(residual)) / max(float(np.linalg.norm(measured)), 1e-300))
        charts.append(
            Chart(
                title=joint,
                note=f'rmse {number(rmse)}, match {percent(match)}',
                alt=f'{title}, {joint}: measured torque from {number(float(measured.min()))} to '
                f'{number(float(measured.max()))} {torque} and the prediction over {number(float(time[-1]))} s; '
                f'root mean square difference {number(rmse)} {torque}.',
                x=Axis(label='time [s]'),
                y=Axis(label=f'torque [{torque}]'),
                series=(
                    _curve('measured', time, measured, 'measured'),
                    _curve('predicted', time, model, 'predicted'),
                    _curve('residual', time, residual, 'difference'),
                ),
            )
        )
    count = len(dataset.sources)
    which = f' Of {count} runs, the one with the largest error: {dataset.sources[run]}.' if count > 1 else ''
    return Figure(
        name=name,
        caption=f'{title}: torque measured and predicted',
        reading='Blue should cover grey; the orange difference should look like noise, without the shape of the torque.'
        + which,
        charts=tuple(charts),
    )


def residual_velocity_figure(
    dataset: Dataset, predicted: Array, *, title: str, prismatic: tuple[bool, ...] | None = None
) -> Figure:
    """Return what the model misses against joint velocity, where a wrong friction model shows.

    Parameters
    ----------
    dataset : Dataset
    predicted : ndarray, shape (N, n)
        [N m or N]
    title : str
        Which data these are.
    prismatic : tuple of bool, optional
        Which joints are; none by default.
    """
    charts = []
    keep = spread(len(dataset))
    for j, joint in enumerate(dataset.joint_names):
        torque, speed = units_of(bool(prismatic and prismatic[j]))
        residual = dataset.tau[:, j] - predicted[:, j]
        velocity = dataset.dq[:, j]
        centre, mean, deviation = _binned(velocity, residual)
        worst = float(np.abs(mean).max(initial=0.0))
        low, high = np.quantile(residual, [0.001, 0.999])
        margin = 0.05 * (high - low) + 1e-12
        charts.append(
            Chart(
                title=joint,
                note=f'largest mean {number(worst, 2)} {torque}',
                alt=f'{title}, {joint}: torque difference against velocity; its mean at any velocity stays within '
                f'{number(worst, 2)} {torque}.',
                x=Axis(label=f'velocity [{speed}]'),
                y=Axis(label=f'difference [{torque}]', limits=(float(low - margin), float(high + margin))),
                series=(
                    Rule(axis='y', at=0.0),
                    Dots(role='measured', x=velocity[keep], y=residual[keep], label='samples'),
                    Band(role='residual', x=centre, low=mean - deviation, high=mean + deviation, label='± 1 deviation'),
                    Line(role='residual', x=centre, y=mean, label='mean at this velocity'),
                ),
                height=0.62,
            )
        )
    return Figure(
        name='residual_velocity',
        caption=f'{title}: what is left, against velocity',
        reading='The orange mean should lie on zero; a step or a bend at low speed means that the friction model '
        'misses something.',
        charts=tuple(charts),
    )


def residual_spectrum_figure(
    dataset: Dataset, predicted: Array, *, title: str, prismatic: tuple[bool, ...] | None = None
) -> Figure:
    """Return amplitude spectra of the measured torque and of what the model misses.

    Welch's estimate over the longest run, with a window of a quarter of it.

    Parameters
    ----------
    dataset : Dataset
    predicted : ndarray, shape (N, n)
        [N m or N]
    title : str
        Which data these are.
    prismatic : tuple of bool, optional
        Which joints are; none by default.
    """
    rows = dataset.trajectory == int(np.bincount(dataset.trajectory).argmax())
    count = int(rows.sum())
    window = min(count, max(64, count // 4))
    charts = []
    for j, joint in enumerate(dataset.joint_names):
        torque, _ = units_of(bool(prismatic and prismatic[j]))
        measured = dataset.tau[rows, j]
        frequency, power = welch(measured, fs=dataset.rate, nperseg=window)
        _, left = welch(measured - predicted[rows, j], fs=dataset.rate, nperseg=window)
        kept = frequency > 0.0
        reach = _explained(frequency[kept], power[kept], left[kept])
        series: list[Series] = [
            _spectrum('measured', frequency[kept], power[kept], 'measured torque'),
            _spectrum('residual', frequency[kept], left[kept], 'difference'),
        ]
        if dataset.cutoff < 0.5 * dataset.rate:
            series.append(Rule(axis='x', at=dataset.cutoff, label='bandwidth of the fit'))
        charts.append(
            Chart(
                title=joint,
                note=f'explained up to {number(reach, 2)} Hz' if reach else 'nothing explained',
                alt=f'{title}, {joint}: amplitude spectra of torque and difference; the model explains at least half '
                f'of the amplitude up to {number(reach, 2)} Hz.',
                x=Axis(label='frequency [Hz]', log=True),
                y=Axis(label=f'amplitude [{torque}/√Hz]', log=True, limits=_visible(power[kept], left[kept])),
                series=tuple(series),
                height=0.62,
            )
        )
    return Figure(
        name='residual_spectrum',
        caption=f'{title}: what is left, by frequency',
        reading='Orange far below grey: the model explains that frequency. Where they meet, only noise and vibration '
        'are left; a lone orange peak is a resonance or a gear.',
        charts=tuple(charts),
    )


def _explained(frequency: Array, power: Array, left: Array) -> float:
    """Return up to where at least half of the amplitude is explained, as far as there is any [Hz]."""
    explained = (power > 4.0 * left) & (power > 1e-8 * power.max())
    count = len(explained) if explained.all() else int(explained.argmin())
    return float(frequency[count - 1]) if count else 0.0


def _visible(power: Array, left: Array) -> tuple[float, float]:
    """Return a range that shows both spectra, but not how deep a filter cut."""
    top = float(np.sqrt(max(power.max(), left.max())))
    return max(0.2 * float(np.sqrt(left.min())), 1e-6 * top, 1e-300), 2.0 * max(top, 1e-299)


def _worst_run(dataset: Dataset, predicted: Array) -> int:
    square = np.sum((dataset.tau - predicted) ** 2, axis=1)
    power = np.sum(dataset.tau**2, axis=1)
    count = len(dataset.sources)
    error = np.bincount(dataset.trajectory, square, count) / np.maximum(
        np.bincount(dataset.trajectory, power, count), 1e-300
    )
    return int(error.argmax())


def _curve(role: Role, x: Array, y: Array, label: str) -> Line:
    x, y = envelope(x, y)
    return Line(role=role, x=x, y=y, label=label)


def _spectrum(role: Role, frequency: Array, power: Array, label: str) -> Line:
    """Return an amplitude spectrum; at high frequency, the mean of neighbours that share a pixel."""
    density = np.sqrt(power)
    if len(frequency) > 300:
        edges = np.unique(np.geomspace(1, len(frequency), 240).astype(np.int64)) - 1
        counts = np.diff(np.append(edges, len(frequency)))
        frequency = np.add.reduceat(frequency, edges) / counts
        density = np.sqrt(np.add.reduceat(power, edges) / counts)
    return Line(role=role, x=frequency, y=density, label=label)


def _binned(x: Array, y: Array) -> tuple[Array, Array, Array]:
    """Return mean and standard deviation of y in bins of x; bins with fewer than five samples are left out."""
    edges = np.linspace(x.min(), x.max() + 1e-12, _BINS + 1)
    index = np.clip(np.searchsorted(edges, x, side='right') - 1, 0, _BINS - 1)
    count = np.bincount(index, minlength=_BINS)
    full = count >= 5
    safe = np.maximum(count, 1)
    mean = np.bincount(index, y, _BINS) / safe
    variance = np.bincount(index, y**2, _BINS) / safe - mean**2
    centre = np.bincount(index, x, _BINS) / safe
    return centre[full], mean[full], np.sqrt(np.maximum(variance[full], 0.0))

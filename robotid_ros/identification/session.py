# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Identification while recordings come in, for the node and other live users.

Recursive identification: an information filter over incoming datasets.

Every dataset adds its Gram matrices; the estimate at any time is the weighted least-squares
solution of all data so far, at the cost of one small linear system. While a run continues, better averages
of the same period replace the earlier ones.

The friction here is Coulomb, viscous and an offset, which is linear; the final identification chooses its own model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from robotid_ros.arrays import Array, require_names
from robotid_ros.data.dataset import Dataset
from robotid_ros.data.strokes import FrictionStrokes
from robotid_ros.dynamics import DATA_TOLERANCE, BaseParameters, base_parameters
from robotid_ros.errors import IdentificationError
from robotid_ros.friction import friction_model
from robotid_ros.identification.config import IdentificationConfig
from robotid_ros.identification.information import Information, Rows, reweighted, solve
from robotid_ros.identification.predictor import calibrated_urdf
from robotid_ros.identification.result import IdentificationResult
from robotid_ros.identification.samples import samples_of_datasets
from robotid_ros.identification.selection import SelectionConfig
from robotid_ros.identification.setup import SetUp
from robotid_ros.identification.terms import PLAIN
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.progress import Progress

_EXCITED = 300.0  # largest condition number that counts as persistent excitation; good designs have less than 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RecursiveEstimate:
    """The running estimate.

    Attributes
    ----------
    names : tuple of str
        Of the base parameters.
    base_values, std : ndarray, shape (b,)
        With their standard deviations by the white-noise formula; infinite where the data leave one open.
    torque_std : ndarray, shape (b,)
        Torque that one standard deviation of the parameter causes, as a share of the torque [%].
    relative_std : ndarray, shape (b,)
        100 std / |value| [%].
    condition : float
        Condition number with unit columns.
    persistently_exciting : bool
        Whether every parameter is determined, with a condition number below 300.
    relative_error : float
        Unexplained share of the torque over all joints [%].
    samples : float
        Sum of the sample weights.
    change : float
        Change of the base parameters by the last dataset, in standard deviations; inf at first.
    """

    names: tuple[str, ...]
    base_values: Array
    std: Array
    torque_std: Array
    relative_std: Array
    condition: float
    persistently_exciting: bool
    relative_error: float
    samples: float
    change: float

    def worst(self, wanted: Sequence[str] = ()) -> tuple[str, float]:
        """Return the parameter that is known worst, and its deviation [%].

        Parameters
        ----------
        wanted : sequence of str
            Base parameters, whose standard deviation counts relative to their value; where none
            is named, ``torque_std`` of all counts, since the relative deviation of parameters near zero stays large.

        Raises
        ------
        IdentificationError
            If one is no base parameter of the arm.
        """
        index = require_names(wanted, self.names, 'base parameter', 'the arm', IdentificationError)
        deviation = self.relative_std[index] if index else self.torque_std
        k = int(np.argmax(deviation))
        return (wanted or self.names)[k], float(deviation[k])


def averaged_period(
    joints: tuple[str, ...],
    time: Array,
    position: Array,
    velocity: Array | None,
    acceleration: Array | None,
    effort: Array | None,
    source: str,
) -> Dataset:
    """Return one averaged period as a dataset.

    Parameters
    ----------
    joints : tuple of str
    time : ndarray, shape (N,)
        [s]
    position, velocity, acceleration, effort : ndarray, shape (N, n)
        [rad, rad/s, rad/s^2, N m]
    source : str
        A name for the run.

    Raises
    ------
    IdentificationError
        If a quantity is missing or there are too few samples.
    """
    if velocity is None or acceleration is None or effort is None:
        raise IdentificationError(
            'the averaged recording needs velocities, accelerations and effort in every point; some are missing'
        )
    if len(time) < 4:
        raise IdentificationError(f'the averaged recording has {len(time)} points; at least 4 are needed')
    step = float(np.median(np.diff(time)))
    if not step > 0.0:
        raise IdentificationError('the times of the averaged recording do not increase')
    return Dataset(
        joint_names=joints,
        time=time,
        q=position,
        dq=velocity,
        ddq=acceleration,
        tau=effort,
        rate=1.0 / step,
        cutoff=0.5 / step,
        sources=(source,),
        provenance={'source': source, 'points': len(time)},
    )


@dataclass(slots=True)
class IdentificationSession:
    """Datasets by key, the running estimate of their Gram matrices, and the full identification on demand."""

    model: RobotModel
    datasets: dict[str, Dataset] = field(default_factory=dict)
    validation: dict[str, Dataset] = field(default_factory=dict)
    strokes: dict[str, FrictionStrokes] = field(default_factory=dict)
    _base: BaseParameters | None = None
    _parts: dict[str, Information] = field(default_factory=dict)
    _last: Array | None = None

    def add(self, key: str, dataset: Dataset, config: IdentificationConfig | None = None) -> RecursiveEstimate:
        """Take a dataset in, in place of an earlier one of the same key, and return the running estimate.

        Parameters
        ----------
        key : str
        dataset : Dataset
        config : IdentificationConfig, optional
            Says whether the estimate has rotor inertias.

        Raises
        ------
        IdentificationError
            If it is empty or a joint is missing.
        """
        base = self._running(config or IdentificationConfig())
        self._parts[key] = self._information(base, dataset)
        self.datasets[key] = dataset
        return self._estimate(base)

    def base_names(self, config: IdentificationConfig) -> tuple[str, ...]:
        """Return the names of the base parameters that are identified."""
        return self._running(config).names

    def _running(self, config: IdentificationConfig) -> BaseParameters:
        """Return the base parameters; the estimate begins anew where rotor inertias are switched on or off."""
        if self._base is None or self._base.rotor_inertia != config.rotor_inertia:
            motors = self.model.at_motors()
            base = base_parameters(motors, rotor_inertia=config.rotor_inertia, tolerance=DATA_TOLERANCE)
            self._parts = {key: self._information(base, dataset) for key, dataset in self.datasets.items()}
            self._base, self._last = base, None
        return self._base

    def _information(self, base: BaseParameters, dataset: Dataset) -> Information:
        told = SetUp.as_described(self.model).dataset(dataset, self.model.joint_names)
        samples = samples_of_datasets([told], self.model, IdentificationConfig())
        return Rows(base, samples.coarse()).information(friction_model(PLAIN))

    def _estimate(self, base: BaseParameters) -> RecursiveEstimate:
        """Return the estimate from all that has come."""
        total, friction = Information.total(self._parts.values()), friction_model(PLAIN)
        precision = reweighted(total, friction, np.ones(total.n))
        found = solve(*total.normal(precision), total.base, friction)
        values = found.parameters[: total.base]
        std = np.sqrt(np.maximum(np.diag(found.inverse)[: total.base], 0.0))
        change = np.inf
        if self._last is not None:
            change = float(np.max(np.abs(values - self._last) / np.maximum(std, 1e-300)))
        self._last = values
        unexplained = total.residual_squares(found.parameters).sum() / max(float(total.gram[:, -1, -1].sum()), 1e-300)
        std = np.where(found.determined[: total.base], std, np.inf)
        size = np.maximum(np.abs(values), 1e-300)
        column = np.sqrt(np.einsum('jkk->k', precision[:, None, None] * total.gram[:, : total.base, : total.base]))
        torque = np.sqrt(max(float(precision @ total.gram[:, -1, -1]), 1e-300))
        return RecursiveEstimate(
            names=base.names,
            base_values=values,
            std=std,
            torque_std=100.0 * std * column / torque,
            relative_std=100.0 * std / size,
            condition=found.condition_scaled,
            persistently_exciting=bool(found.determined.all() and found.condition_scaled < _EXCITED),
            relative_error=float(100.0 * np.sqrt(unexplained)),
            samples=float(total.count.mean()),
            change=change,
        )

    def clear(self) -> None:
        """Forget all datasets and friction data."""
        for each in (self.datasets, self.validation, self.strokes, self._parts):
            each.clear()
        self._last = None

    def identify(
        self,
        config: IdentificationConfig | None = None,
        selection: SelectionConfig | None = None,
        progress: Progress | None = None,
    ) -> tuple[IdentificationResult, str | None]:
        """Return the result from all datasets, and the calibrated URDF where the robot came from one.

        Friction sweeps are used too; runs for validation judge the result.

        Parameters
        ----------
        config : IdentificationConfig, optional
        selection : SelectionConfig, optional
            Whether to select among the recordings.
        progress : callable, optional

        Raises
        ------
        IdentificationError
            If there is no dataset, or no model can be computed.
        """
        if not self.datasets:
            raise IdentificationError(
                'no recording yet: run an excitation with the recorder on, or wait for its first averaged period'
            )
        selection = selection or SelectionConfig()
        result = selection.method(
            list(self.datasets.values()),
            self.model,
            friction_data=list(self.strokes.values()),
            validation=list(self.validation.values()),
            config=config or IdentificationConfig(),
            progress=progress,
        )
        return result, None if self.model.source is None else calibrated_urdf(self.model, result)

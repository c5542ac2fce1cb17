# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A fitted torque model, the result of every estimator.

Covariance of least-squares estimates from correlated samples.

With residuals of autocovariance C_j at joint j and weights p_j, the estimate of
min sum_j p_j |tau_j - A_j x|^2 has the covariance

    H^-1 (sum_j p_j^2 A_j^T C_j A_j) H^-1,   H = sum_j p_j A_j^T A_j.

The white-noise formula H^-1 counts every sample as news; a signal filtered at f Hz and sampled at
1 kHz has 1000 / 2 f times fewer. C_j comes from an autoregressive model of the residual
(Yule-Walker; order by Akaike's criterion), and the quadratic form is one FFT of the rows: it is
the sum of their periodogram times the residual's spectrum.

"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.linalg import solve_toeplitz

from robotid_ros.arrays import Array, BoolArray, IntArray
from robotid_ros.dynamics import BaseParameters
from robotid_ros.friction import FrictionModel
from robotid_ros.identification.prior import Prior
from robotid_ros.identification.samples import CHUNK, ENOUGH, Samples


@dataclass(frozen=True, slots=True, kw_only=True)
class TorqueFit:
    """Base and friction parameters with their covariance.

    Attributes
    ----------
    friction : FrictionModel
    base_values : ndarray, shape (b,)
    friction_parameters : ndarray, shape (n, k + s)
    precision : ndarray, shape (n,)
        Weight of each joint's equations, the inverse variance of its residual [1/(N m)^2].
    covariance : ndarray, shape (P, P)
        Of ``[base_values, friction_parameters.ravel()]``, sample correlation taken into account.
    determined : ndarray of bool, shape (P,)
        False for a parameter that the data do not determine.
    condition_si, condition_scaled : float
        Condition number of the weighted observation matrix, in SI units and with unit columns.
    bounded : bool
        Whether friction had to be kept from generating energy.
    bandwidth : float or None
        Of the torque channel [Hz].
    converged : bool
    reason : str
        Why it did not converge, or empty.
    prior : Prior or None
        What counts beside the data.
    search : ndarray or None, shape (cycles + 1,)
        Relative squared error of a search before its first cycle and after each.
    """

    friction: FrictionModel
    base_values: Array
    friction_parameters: Array
    precision: Array
    covariance: Array
    determined: BoolArray
    condition_si: float
    condition_scaled: float
    bounded: bool
    bandwidth: float | None
    converged: bool = True
    reason: str = ''
    prior: Prior | None = None
    search: Array | None = None

    @property
    def std(self) -> Array:
        """Standard deviation of all parameters, shape (P,); inf for undetermined ones."""
        deviation = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        return np.where(self.determined, deviation, np.inf)

    @property
    def linear(self) -> Array:
        """Linear friction parameters, shape (n, k)."""
        return self.friction_parameters[:, : len(self.friction.linear_names)]

    @property
    def shape(self) -> Array:
        """Shape parameters of the friction, shape (n, s)."""
        return self.friction_parameters[:, len(self.friction.linear_names) :]

    def torque(self, base: BaseParameters, samples: Samples) -> Array:
        """Return the prediction of the recorded torque along samples of its bandwidth, shape (N, n) [N m]."""
        return predicted_torque(base, self.friction, self.base_values, self.friction_parameters, samples)

    def plain_friction(self, base: BaseParameters, samples: Samples, drives: Array) -> Array:
        """Return the Coulomb and viscous friction closest to the friction model along a motion.

            min sum w (tau_f(v, load, q) - fc sign v - fv v - o)^2,  fc, fv >= 0

        They differ from the model's own Coulomb and viscous parameters, which are only a part of the friction beside
        an arctangent, a Stribeck or a load term. The offset o is not returned.

        Parameters
        ----------
        base : BaseParameters
        samples : Samples
            Positions, speeds and loads along the motion.
        drives : ndarray, shape (n, n)
            Motors over joints; the friction returned is that of the joints.

        Returns
        -------
        ndarray, shape (n, 2)
            Coulomb friction [N m] and viscous friction [N m s/rad].
        """
        from scipy.optimize import nnls  # not at the top: see robotid_ros.signals.filtering

        part = samples.thinned(ENOUGH)
        load = base.regressor(part.q, part.dq, part.ddq) @ self.base_values
        torque = self.friction.torque(part.dq, self.friction_parameters, load, part.q) @ drives
        speeds = part.dq @ np.linalg.inv(drives).T
        result = np.empty((part.n, 2))
        for j in range(part.n):
            speed, root = speeds[:, j], np.sqrt(part.weight[:, j])
            ones = np.ones_like(speed)
            rows = np.stack([np.sign(speed), speed, ones, -ones], axis=1)
            result[j] = nnls(root[:, None] * rows, root * torque[:, j])[0][:2]
        return result


def predicted_torque(
    base: BaseParameters,
    friction: FrictionModel,
    base_values: Array,
    friction_parameters: Array,
    samples: Samples,
) -> Array:
    """Return the prediction of the recorded torque along some samples.

    tau = Y_b(q, dq, ddq) beta + tau_f(dq, parameters, load = Y_b beta), through the bandwidth of the torque signal.

    Parameters
    ----------
    base, friction : BaseParameters, FrictionModel
    base_values : ndarray, shape (b,)
    friction_parameters : ndarray, shape (n, k + s)
    samples : Samples
        Their runs give the bandwidth.

    Returns
    -------
    ndarray, shape (N, n)
        [N m]
    """
    torque = np.empty_like(samples.q)
    if samples.slide is None or friction.presliding is None:
        samples = samples.sliding(friction)
    for start in range(0, len(torque), CHUNK):
        rows = slice(start, start + CHUNK)
        load = base.regressor(samples.q[rows], samples.dq[rows], samples.ddq[rows]) @ base_values
        slide, slip = (None if past is None else past[rows] for past in (samples.slide, samples.slip))
        torque[rows] = load + friction.torque(samples.dq[rows], friction_parameters, load, samples.q[rows], slide, slip)
    return samples.recorded(torque)


_ORDER = 24
_LEFT = 0.2  # least share of the noise at a frequency that a fit is believed to have left


def independent_share(residual: Array, runs: Sequence[slice]) -> float:
    """Return how many independent samples there are in one, as the autocorrelation of a residual shows.

    1 / (1 + 2 sum_k rho_k), over the lags before rho falls below zero; the joints' mean. What a model cannot follow is
    correlated as long as the arm stays near one state, and counts once.

    Parameters
    ----------
    residual : ndarray, shape (N, n)
    runs : sequence of slice
        Rows that are contiguous in time.
    """
    length = 1 << int(np.ceil(np.log2(2 * max(run.stop - run.start for run in runs))))
    power = sum(np.abs(np.fft.rfft(residual[run], length, axis=0)) ** 2 for run in runs)
    lags = np.fft.irfft(power, length, axis=0)[: length // 2]
    shares = []
    for correlation in (lags / np.maximum(lags[0], 1e-300)).T:
        end = int(np.argmax(correlation <= 0.0)) or len(correlation)
        shares.append(1.0 / max(2.0 * float(correlation[:end].sum()) - 1.0, 1.0))
    return float(np.mean(shares))


def autoregressive_spectrum(lags: Array, count: int, length: int) -> Array:
    """Return the spectrum of the autoregressive model of an autocovariance (Yule-Walker), shape (L // 2 + 1,).

    Power per sample at k / L cycles per sample, with L the ``length`` of the full circle; its mean over the circle is
    the variance. The autocovariance, at lags 0 to K, was estimated from ``count`` samples: they decide the order.
    """
    if lags[0] <= 0.0:
        return np.zeros(length // 2 + 1)
    lags = np.concatenate([lags[:1] * (1.0 + 1e-9), lags[1:]])
    best, variance, coefficients = np.inf, lags[0], np.zeros(0)
    for p in range(len(lags)):
        a = solve_toeplitz(lags[:p], lags[1 : p + 1]) if p else np.zeros(0)
        innovation = max(float(lags[0] - a @ lags[1 : p + 1]), 1e-12 * float(lags[0]))
        criterion = count * np.log(innovation) + 2.0 * p
        if criterion < best:
            best, variance, coefficients = criterion, innovation, a
    angle = 2.0 * np.pi * np.arange(length // 2 + 1) / length
    transfer = 1.0 - np.exp(-1j * np.outer(angle, np.arange(1, len(coefficients) + 1))) @ coefficients
    return np.asarray(variance / np.abs(transfer) ** 2)


def error_autocovariance(stretches: list[Array], residuals: list[Array], leverage: Array, length: int) -> Array:
    """Return the autocovariance of the errors behind a residual, shape (K + 1,).

    The fit takes away what the rows can mimic, above all at the frequencies of the motion. What it
    leaves of white noise at frequency f is 1 - l(f), with l(f) = z(f)^H leverage z(f) / M from the
    rows' transform z; the residual's periodogram is divided by it.

    Parameters
    ----------
    stretches : list of ndarray, shape (2, F, m)
        Real and imaginary parts of the rows' transforms, see :func:`row_transform`.
    residuals : list of ndarray, shape (M,)
        Evenly sampled.
    leverage : ndarray, shape (m, m)
        Weight times the inverse of the normal matrix, so that rows leverage rows^T projects.
    length : int
        Number of frequencies of the full circle.
    """
    count = sum(len(residual) for residual in residuals)
    order = min(_ORDER, max(0, count // 8))
    lags = np.zeros(order + 1)
    for transform, residual in zip(stretches, residuals, strict=True):
        share = np.sum((transform @ leverage) * transform, axis=(0, 2)) / len(residual)
        power = np.abs(np.fft.rfft(residual, length)) ** 2 / np.maximum(1.0 - share, _LEFT)
        lags += np.fft.irfft(power, length)[: order + 1]
    return lags / count


def row_transform(rows: Array, length: int) -> Array:
    """Return real and imaginary part of the transform of rows (M, m), shape (2, length // 2 + 1, m)."""
    transform = np.fft.rfft(rows, length, axis=0)
    return np.stack([transform.real, transform.imag])


def correlated_scores(stretches: list[Array], spectrum: Array, length: int) -> Array:
    """Return A^T C A for the transforms of the rows A and the spectrum of C over ``length`` frequencies."""
    weight = np.full(len(spectrum), 2.0 / length)
    weight[0] = 1.0 / length
    if length % 2 == 0:
        weight[-1] = 1.0 / length
    power = (weight * spectrum)[:, None]
    parts = [part.T @ (power * part) for transform in stretches for part in transform]
    return np.asarray(np.sum(parts, axis=0))


def covariance_of_estimate(
    rows: Array, residual: Array, runs: IntArray, precision: Array, inverse: Array, base: int, bin_size: float
) -> Array:
    """Return the covariance of all parameters ``[beta, own_1, ..., own_n]``.

    Parameters
    ----------
    rows : ndarray, shape (M, n, b + k)
        Model rows times the root of the sample weights, summed over bins of samples much shorter than
        the motion's periods.
    residual : ndarray, shape (M, n)
        Mean over the same bins of the residual times the root of the sample weights [N m].
    runs : ndarray of int, shape (M,)
    precision : ndarray, shape (n,)
    inverse : ndarray, shape (P, P)
        Inverse of the normal matrix.
    base : int
        Number b of common parameters.
    bin_size : float
        Samples per bin, their mean.

    Notes
    -----
    Fitting takes part of the noise into the parameters, so that residuals are smaller than errors;
    their variance is scaled up by the expectation of that part.
    """
    n, own = rows.shape[1], rows.shape[2] - base
    parts = _stretches(runs)
    length = 1 << int(np.ceil(np.log2(2 * max(part.stop - part.start for part in parts))))
    middles, places, powers, variances = [], [], [], []
    for j in range(n):
        place = np.concatenate([np.arange(base), base + j * own + np.arange(own)])
        leverage = precision[j] / bin_size * inverse[np.ix_(place, place)]
        transforms = [row_transform(rows[part, j], length) for part in parts]
        lags = error_autocovariance(transforms, [residual[part, j] for part in parts], leverage, length)
        spectrum = autoregressive_spectrum(lags, len(residual), length)
        middles.append(correlated_scores(transforms, spectrum, length))
        places.append(place)
        powers.append(float(np.sum(residual[:, j] ** 2)))
        variances.append(float(lags[0]) * len(residual))
    inflation = np.ones(n)
    for _ in range(3):
        centre = np.zeros_like(inverse)
        for j in range(n):
            centre[np.ix_(places[j], places[j])] += precision[j] ** 2 * inflation[j] * middles[j]
        covariance = inverse @ centre @ inverse
        for j in range(n):
            if powers[j] <= 0.0:
                continue
            square = np.ix_(places[j], places[j])
            gram = rows[:, j].T @ rows[:, j] / bin_size**2
            absorbed = 2.0 * precision[j] * np.sum(inverse[square] * middles[j]) * inflation[j] / bin_size
            absorbed -= np.sum(covariance[square] * gram)
            expected = max(variances[j] * inflation[j] - absorbed, _LEFT * powers[j])
            inflation[j] = np.clip(inflation[j] * powers[j] / expected, 1.0, 10.0)
    return covariance


def _stretches(runs: IntArray) -> list[slice]:
    """Cut the runs into stretches that are long against every correlation, so that transforms stay small."""
    starts = np.flatnonzero(np.diff(runs, prepend=-1)).tolist()
    result = []
    for start, stop in zip(starts, [*starts[1:], len(runs)], strict=True):
        edges = np.linspace(start, stop, -(-(stop - start) // CHUNK) + 1).astype(int).tolist()
        result += [slice(low, high) for low, high in pairwise(edges)]
    return result

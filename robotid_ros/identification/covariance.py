"""Covariance of least-squares estimates from correlated samples.

With residuals of autocovariance C_j at joint j and weights p_j, the estimate of
min sum_j p_j |tau_j - A_j x|^2 has the covariance

    H^-1 (sum_j p_j^2 A_j^T C_j A_j) H^-1,   H = sum_j p_j A_j^T A_j.

The white-noise formula H^-1 counts every sample as news; a signal filtered at f Hz and sampled at
1 kHz has 1000 / 2 f times fewer. C_j comes from an autoregressive model of the residual
(Yule-Walker; order by Akaike's criterion), and the quadratic form is one FFT of the rows: it is
the sum of their periodogram times the residual's spectrum.
"""

import numpy as np
from scipy.linalg import solve_toeplitz

from robotid_ros.arrays import Array, IntArray

__all__ = ['autoregressive_spectrum', 'correlated_scores', 'covariance_of_estimate', 'error_autocovariance']

_ORDER = 24
_LEFT = 0.2  # least share of the noise at a frequency that a fit is believed to have left


def autoregressive_spectrum(lags: Array, count: int, length: int) -> Array:
    """Return the spectrum of the autoregressive model of an autocovariance (Yule-Walker).

    Parameters
    ----------
    lags : ndarray, shape (K + 1,)
        Autocovariance at lags 0 to K.
    count : int
        Samples it was estimated from, for the choice of the order.
    length : int
        Number L of frequencies of the full circle.

    Returns
    -------
    ndarray, shape (L // 2 + 1,)
        Power per sample at k / L cycles per sample; its mean over the circle is the variance.
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


def error_autocovariance(rows: Array, residual: Array, runs: IntArray, leverage: Array, length: int) -> Array:
    """Return the autocovariance of the errors behind a residual.

    The fit takes away what the rows can mimic, above all at the frequencies of the motion. What it
    leaves of white noise at frequency f is 1 - l(f), with l(f) = z(f)^H leverage z(f) / M from the
    rows' transform z; the residual's periodogram is divided by it.

    Parameters
    ----------
    rows : ndarray, shape (M, m)
    residual : ndarray, shape (M,)
        Evenly sampled within each run.
    runs : ndarray of int, shape (M,)
    leverage : ndarray, shape (m, m)
        Weight times the inverse of the normal matrix, so that rows leverage rows^T projects.
    length : int
        Number of frequencies of the full circle.

    Returns
    -------
    ndarray, shape (K + 1,)
    """
    order = min(_ORDER, max(0, len(residual) // 8))
    lags = np.zeros(order + 1)
    for label in np.unique(runs):
        inside = runs == label
        transform = np.fft.rfft(rows[inside], length, axis=0)
        share = np.einsum('fi,ij,fj->f', transform.conj(), leverage, transform, optimize=True).real / inside.sum()
        power = np.abs(np.fft.rfft(residual[inside], length)) ** 2 / np.maximum(1.0 - share, _LEFT)
        lags += np.fft.irfft(power, length)[: order + 1]
    return lags / len(residual)


def correlated_scores(rows: Array, spectrum: Array, runs: IntArray, length: int) -> Array:
    """Return A^T C A for rows (M, m) and the spectrum of C over ``length`` frequencies."""
    result = np.zeros((rows.shape[1], rows.shape[1]))
    weight = np.full(len(spectrum), 2.0)
    weight[0] = 1.0
    if length % 2 == 0:
        weight[-1] = 1.0
    for label in np.unique(runs):
        transform = np.fft.rfft(rows[runs == label], length, axis=0)
        power = (weight * spectrum / length)[:, None]
        stacked = np.concatenate([transform.real, transform.imag])
        result += stacked.T @ (np.concatenate([power, power]) * stacked)
    return result


def covariance_of_estimate(
    rows: Array, residual: Array, runs: IntArray, precision: Array, inverse: Array, base: int, bin_size: int
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
    bin_size : int
        Samples per bin.

    Notes
    -----
    Fitting takes part of the noise into the parameters, so that residuals are smaller than errors;
    their variance is scaled up by the expectation of that part.
    """
    n, own = rows.shape[1], rows.shape[2] - base
    longest = int(np.bincount(runs).max())
    length = 1 << int(np.ceil(np.log2(2 * longest)))
    middles, places, powers, variances = [], [], [], []
    for j in range(n):
        place = np.concatenate([np.arange(base), base + j * own + np.arange(own)])
        leverage = precision[j] / bin_size * inverse[np.ix_(place, place)]
        lags = error_autocovariance(rows[:, j], residual[:, j], runs, leverage, length)
        spectrum = autoregressive_spectrum(lags, len(residual), length)
        middles.append(correlated_scores(rows[:, j], spectrum, runs, length))
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
            expected = max(variances[j] * inflation[j] - absorbed, 0.2 * powers[j])
            inflation[j] = np.clip(inflation[j] * powers[j] / expected, 1.0, 10.0)
    return covariance

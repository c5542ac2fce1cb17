# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Terms of a torque model beside the rigid body, and how well they predict states that were left out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robotid_ros.arrays import Array, BoolArray, IntArray
from robotid_ros.friction import FrictionModel, friction_model
from robotid_ros.identification.bench import Bench, solved
from robotid_ros.identification.covariance import independent_share
from robotid_ros.identification.evidence import Weights, weigh
from robotid_ros.identification.information import BaseRegressor, Information
from robotid_ros.identification.judge import Score
from robotid_ros.identification.prior import Prior
from robotid_ros.identification.samples import Samples

PLAIN = 'coulomb_viscous+offset'
ALL = 'levels+load+offset+position'
_SMOOTH = 0.05  # of a joint's largest speed: the velocity scale
_BUILDS_UP = 1e-3  # of a joint's range: the presliding distance
_LOAD_PASSES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Friction terms with the weights that evidence gives them, or as they are.

    Attributes
    ----------
    base : BaseRegressor
        Of the rigid body.
    friction : FrictionModel
    shape : ndarray, shape (n, s)
        Its shape parameters.
    described : Prior or None
        Of the base parameters; None for plain weighted least squares.
    values : ndarray, shape (b,), or None
        Base parameters that give the load of load-dependent friction; None takes the measured torque.
    independent : float or None
        Independent samples in one second, as the residual shows; None where they were not looked for.
    weighted : bool
        Whether the friction terms have weights, too; those of a model that was asked for are as they are.
    weights : Weights or None
        From where a search for those of nearly the same rows begins.
    """

    base: BaseRegressor
    friction: FrictionModel
    shape: Array
    described: Prior | None = None
    values: Array | None = None
    independent: float | None = None
    weighted: bool = True
    weights: Weights | None = None

    @classmethod
    def plain(cls, base: BaseRegressor, n: int) -> 'Terms':
        """Return plain friction with an exact sign for ``n`` joints."""
        return cls(base=base, friction=friction_model(PLAIN), shape=np.zeros((n, 0)))

    @classmethod
    def all(cls, base: BaseRegressor, described: Prior, samples: Samples) -> 'Terms':
        """Return all terms there are, scaled to the speeds and ranges of some samples."""
        fastest = np.maximum(np.abs(samples.dq).max(axis=0), 1e-9)
        reach = np.maximum(np.ptp(samples.q, axis=0), 1e-9)
        friction = friction_model(ALL, velocity_scale=_SMOOTH * fastest, presliding=_BUILDS_UP * reach)
        return cls(base=base, friction=friction, shape=np.zeros((samples.n, 0)), described=described)

    def past(self, samples: Samples) -> Samples:
        """Return samples with what friction has of its past, before any are left out."""
        return samples.sliding(self.friction.presliding)

    def own(self, samples: Samples, rigid: Array) -> Array:
        """Return the friction columns, shape (N, n, k), before any filter."""
        load = None
        if self.friction.needs_load:
            load = samples.target if self.values is None else rigid @ self.values
        return samples.friction_columns(self.friction, self.shape, load)

    def share(self, samples: Samples) -> float:
        """Return the independent samples in one."""
        least = samples.independent_per_sample
        if self.independent is None:
            return least
        seconds = sum(len(run) / run.rate for run in samples.runs)
        return min(least, self.independent * seconds / len(samples))

    def seen(self, samples: Samples) -> 'Terms':
        """Return the same terms with the load, and with the independent samples that the residual shows."""
        terms = self
        rigid = self.base.regressor(samples.q, samples.dq, samples.ddq)
        filtered, label = samples.filtered(rigid), np.zeros(len(samples), dtype=int)
        seconds = sum(len(run) / run.rate for run in samples.runs)
        for _ in range(_LOAD_PASSES):
            own = samples.filtered(terms.own(samples, rigid))
            info = Bench.of_rows(samples, label, filtered, own, filtered, own).total
            assert terms.described is not None
            weights = self._weights(weigh(info, terms.described, terms.share(samples)))
            values = terms.solved(info, weights.precision, weights.prior)
            base, linear = values[: info.base], values[info.base :].reshape(samples.n, -1)
            residual = samples.target - filtered @ base - np.einsum('Nnk,nk->Nn', own, linear)
            runs = [slice(run.start, run.stop) for run in samples.runs]
            found = independent_share(np.sqrt(samples.weight) * residual, runs) * len(samples) / seconds
            terms = replace(terms, values=base, independent=found, weights=weights)
        return terms

    def _weights(self, found: Weights) -> Weights:
        return found if self.weighted else replace(found, prior=replace(found.prior, own=None))

    def solved(self, info: Information, precision: Array, prior: Prior | None) -> Array:
        """Return the parameters (P,) of some Gram matrices, for given weights."""
        return solved(info, precision, self.friction if self.described is None else None, prior)

    def bench(self, samples: Samples, label: IntArray) -> Bench:
        """Return the Gram matrices in groups."""
        rigid = self.base.regressor(samples.q, samples.dq, samples.ddq)
        return Bench.of(samples, label, rigid, self.own(samples, rigid))

    def judged(
        self, bench: Bench, samples: Samples, without: BoolArray | None = None
    ) -> tuple[Score, Prior | None, Array]:
        """Return the errors in groups that were held out, the weights, and the precision of the joints."""
        if self.described is None:
            score, _, precision = bench.linear(self.friction)
            return score, None, precision
        found = self._weights(weigh(bench.total, self.described, self.share(samples), without, self.weights))
        score = bench.score(lambda info: self.solved(info, found.precision, found.prior))
        return score, found.prior, found.precision

    def score(self, samples: Samples, label: IntArray) -> Score:
        """Return the errors in groups that were held out."""
        return self.judged(self.bench(samples, label), samples)[0]

    def scores(self, samples: Samples, label: IntArray, bandwidths: Sequence[float | None]) -> list[Score]:
        """Return the errors in groups that were held out, for each of some bandwidths of the torque [Hz]."""
        rigid = self.base.regressor(samples.q, samples.dq, samples.ddq)
        own, result = self.own(samples, rigid), []
        for bandwidth in bandwidths:
            each = samples.with_bandwidth(bandwidth)
            result.append(self.judged(Bench.of(each, label, rigid, own), each)[0])
        return result

# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Checks of input arrays, which are copied once, checked, and made read-only; and what many rooms do with arrays."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robotid_ros.errors import RobotIdError

Array: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]

LARGEST = float(np.sqrt(np.finfo(np.float64).max))  # whatever is computed takes a square somewhere


def frozen_array(
    value: ArrayLike,
    name: str,
    shape: tuple[int | None, ...],
    error: type[RobotIdError],
    *,
    finite: bool = True,
    at_least: float = -np.inf,
    above: float = -np.inf,
) -> Array:
    """Return ``value`` as a read-only array after checking its shape and values.

    It is a copy, unless ``value`` is a read-only array already, of its own memory or that of another one. Raises a
    RobotIdError of the given type, if the shape differs, or a value is not finite or too small.

    ``value``: the input. ``name``: its name in messages. ``shape``: expected length of each axis; None takes any
    length. ``error``: class of the error. ``finite``: refuse NaN, infinities, and numbers whose squares are infinite.
    ``at_least``, ``above``: refuse smaller numbers, or these and smaller ones.
    """
    short = name.rpartition(': ')[2]
    try:
        array = value if _is_frozen(value) else np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as cause:
        message = f'{name}: expected numbers of shape {_spell(shape)}, got {value!r:.80}'
        raise error(message, name=short, expected=shape) from cause
    fits = array.ndim == len(shape) and all(
        want is None or want == have for want, have in zip(shape, array.shape, strict=True)
    )
    if not fits:
        message = f'{name}: expected shape {_spell(shape)}, got {array.shape}'
        raise error(message, name=short, expected=shape, found=array.shape)
    if finite and array.size and not (array.max() < LARGEST and array.min() > -LARGEST):
        where = tuple(int(k) for k in np.argwhere(~(np.abs(array) < LARGEST))[0])
        squares = ' whose squares are, too' if np.isfinite(array[where]) else ''
        message = f'{name}: expected finite numbers{squares}, got {array[where]} at index {where}'
        raise error(message, name=short, found=float(array[where]))
    bounded = max(at_least, above) > -np.inf
    if bounded and array.size and not (array.min() >= at_least and array.min() > above):
        bound, words = (above, 'above') if above >= at_least else (at_least, 'of at least')
        message = f'{name}: expected numbers {words} {bound:g}, got {array.min():g}'
        raise error(message, name=short, expected=bound, found=float(array.min()))
    array.flags.writeable = False
    return array


def freeze_fields(
    instance: object,
    error: type[RobotIdError],
    shapes: Mapping[str, tuple[int | None, ...]],
    *,
    what: str = '',
    defaults: Mapping[str, Array] | None = None,
    **limits: Any,
) -> None:
    """Make fields of a frozen dataclass read-only arrays; a field that is None stays, an empty one gets its default.

    ``shapes`` has the shape of each field by its name, ``what`` stands before that name in messages, and ``limits`` are
    those of :func:`frozen_array`.
    """
    for name, shape in shapes.items():
        value = getattr(instance, name)
        if defaults and name in defaults and np.size(value) == 0:
            value = defaults[name]
        if value is not None:
            object.__setattr__(instance, name, frozen_array(value, what + name, shape, error, **limits))


def unset() -> Array:
    """Return the empty array of a field whose default depends on others: see :func:`freeze_fields`."""
    return np.zeros(0)


def require_names(
    wanted: Sequence[str], available: Sequence[str], what: str, where: str, error: type[RobotIdError]
) -> list[int]:
    """Return the position of each wanted name among the available ones: ``available[result[k]] == wanted[k]``.

    Where one is missing, an error of the given type names it and all available ones: "joint 'elbow' is not in the
    URDF", with ``what`` "joint" and ``where`` "the URDF".
    """
    index = {name: k for k, name in enumerate(available)}
    for name in wanted:
        if name not in index:
            have = ', '.join(available) or 'none'
            raise error(f"{what} '{name}' is not in {where}; it has: {have}", name=name, expected=tuple(available))
    return [index[name] for name in wanted]


def rows_of(instance: object, names: Iterable[str], rows: Any) -> dict[str, Any]:
    """Return fields of a dataclass at some rows, by an index, a mask or a slice; those that are None are left out."""
    return {name: value[rows] for name in names if (value := getattr(instance, name)) is not None}


def plain(value: Any) -> Any:
    """Return plain Python numbers, strings, lists and mappings, as a file holds them; a dataclass by its fields."""
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def numerical_slope(function: Callable[[Array], Array], at: Array, steps: Array) -> Array:
    """Return the derivative, shape (m, p), of a function at a place, shape (p,), by central differences of steps."""
    sides = ((function(at + step) - function(at - step)) / (2.0 * step.sum()) for step in np.diag(steps))
    return np.stack(list(sides), axis=1)


def given_away(array: Array) -> Array:
    """Return an array, made read-only, that its maker does not keep: :func:`frozen_array` takes it without a copy."""
    array.flags.writeable = False
    return array


def _is_frozen(value: ArrayLike) -> TypeGuard[Array]:
    """Return whether an array can be changed by nobody: a view could be changed through its base."""
    if type(value) is not np.ndarray or value.dtype != np.float64 or value.flags.writeable:
        return False
    base = value.base
    if base is None:
        return True
    return type(base) is np.ndarray and base.base is None and not base.flags.writeable and value.flags.c_contiguous


def _spell(shape: tuple[int | None, ...]) -> str:
    return '(' + ', '.join('any' if k is None else str(k) for k in shape) + ')'
